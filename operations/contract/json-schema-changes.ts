import { isJsonObject, type JsonObject } from "#runtime/json";
import type { ChangeLevel, SurfaceChange } from "./contract.ts";

export type DocumentPair = { readonly before: JsonObject; readonly after: JsonObject };

type SchemaPlace = {
  readonly object: string;
  /** The name of the value: `body.title`. */
  readonly name: string;
  /** The direction of the value: the client writes a request, the service a response. */
  readonly direction: "request" | "response";
  readonly documents: DocumentPair;
  /** The references under comparison, because schemas can contain themselves. */
  readonly within?: readonly string[];
};

/** Finds the changes for clients that send or receive a value when its JSON Schema changes. Knows the keywords that our documents use. */
export function compareJsonSchemas(place: SchemaPlace, was: unknown, now: unknown): SurfaceChange[] {
  const { documents, within = [] } = place;
  const [before, after] = [toObject(was), toObject(now)];
  const key = JSON.stringify([before.$ref, after.$ref]);
  if (before.$ref !== undefined && within.includes(key)) return [];
  return compareResolved(
    typeof before.$ref === "string" ? placeOfComponent(place, before.$ref, [...within, key]) : place,
    resolveReference(before, documents.before),
    resolveReference(after, documents.after),
  );
}

/** A change of a shared schema is reported once, not for each operation that refers to it. */
function placeOfComponent(place: SchemaPlace, reference: string, within: readonly string[]): SchemaPlace {
  return { ...place, object: reference.slice(reference.lastIndexOf("/") + 1), name: place.direction, within };
}

export function resolveReference(value: JsonObject, document: JsonObject): JsonObject {
  if (typeof value.$ref !== "string") return value;
  const found = value.$ref
    .slice("#/".length)
    .split("/")
    .map((part) => decodeURIComponent(part).replaceAll("~1", "/").replaceAll("~0", "~"))
    .reduce((parent: JsonObject, part) => toObject(parent[part]), document);
  return resolveReference(found, document);
}

function compareResolved(place: SchemaPlace, was: JsonObject, now: JsonObject): SurfaceChange[] {
  const types = compareTypeNames(place, typesOf(was), typesOf(now));
  return [
    ...types,
    ...(types.length === 0 ? compareFormats(place, was, now) : []),
    ...compareEnums(place, was, now),
    ...compareLimits(place, was, now),
    ...compareProperties(place, was, now),
    ...(was.items === undefined ? [] : compareJsonSchemas({ ...place, name: `${place.name}[]` }, was.items, now.items)),
    ...["oneOf", "anyOf", "allOf"].flatMap((keyword) => compareVariants(place, was[keyword], now[keyword])),
  ];
}

function change({ object, name }: SchemaPlace, level: ChangeLevel, message: string): SurfaceChange {
  return { level, object, message: `${name}: ${message}` };
}

/** Returns the type names; none means any type. An integer is a number too. */
function typesOf({ type }: JsonObject): string[] {
  return [type].flat(Number.POSITIVE_INFINITY).filter((each): each is string => typeof each === "string");
}

function compareTypeNames(place: SchemaPlace, was: readonly string[], now: readonly string[]): SurfaceChange[] {
  if (was.toSorted().join() === now.toSorted().join()) return [];
  const takes = (all: readonly string[], type: string) =>
    all.length === 0 || all.includes(type) || (type === "integer" && all.includes("number"));
  const [needed, given] = place.direction === "request" ? [was, now] : [now, was];
  const isCompatible = given.length === 0 || (needed.length > 0 && needed.every((type) => takes(given, type)));
  const isNullable = place.direction === "response" && now.includes("null") && was.length > 0;
  const onlyNull = isNullable && now.every((type) => type === "null" || takes(was, type));
  const text = (all: readonly string[]) => all.join(" or ") || "any";
  const level = isCompatible ? "compatible" : onlyNull ? "dangerous" : "breaking";
  return [change(place, level, `the type is ${text(now)}; it was ${text(was)}`)];
}

/** For each format, the formats that include all its values. */
const WIDER_FORMATS: Readonly<Record<string, readonly string[]>> = {
  int16: ["int32", "int64"],
  int32: ["int64"],
  float: ["double"],
};

function compareFormats(place: SchemaPlace, { format: was }: JsonObject, { format: now }: JsonObject): SurfaceChange[] {
  if (was === now) return [];
  const isWider = now === undefined || WIDER_FORMATS[String(was)]?.includes(String(now)) === true;
  const level = !isWider ? "breaking" : place.direction === "request" ? "compatible" : "dangerous";
  return [change(place, level, `the format is ${now ?? "any"}; it was ${was ?? "any"}`)];
}

function compareEnums(place: SchemaPlace, { enum: was }: JsonObject, { enum: now }: JsonObject): SurfaceChange[] {
  const isSent = place.direction === "request";
  if (!Array.isArray(was) && !Array.isArray(now)) return [];
  if (!Array.isArray(was)) return [change(place, isSent ? "breaking" : "compatible", "only listed values are there")];
  if (!Array.isArray(now)) return [change(place, isSent ? "compatible" : "dangerous", "any value can be there")];
  return [
    ...was
      .filter((value) => !now.includes(value))
      .map((value) => change(place, isSent ? "breaking" : "compatible", `the value ${value} is no longer there`)),
    ...now
      .filter((value) => !was.includes(value))
      .map((value) => change(place, isSent ? "compatible" : "dangerous", `the value ${value} is new`)),
  ];
}

function compareLimits(
  place: SchemaPlace,
  { maxLength: was }: JsonObject,
  { maxLength: now }: JsonObject,
): SurfaceChange[] {
  if (was === now) return [];
  const isNarrower = now !== undefined && (was === undefined || Number(now) < Number(was));
  const level = isNarrower === (place.direction === "request") ? "breaking" : "compatible";
  return [
    change(
      place,
      isNarrower ? level : "compatible",
      `at most ${now ?? "any number of"} characters; it was ${was ?? "any number"}`,
    ),
  ];
}

function compareProperties(place: SchemaPlace, was: JsonObject, now: JsonObject): SurfaceChange[] {
  const [before, after] = [toObject(was.properties), toObject(now.properties)];
  const [needed, needs] = [requiredOf(was), requiredOf(now)];
  const isSent = place.direction === "request";
  const inner = (name: string) => ({ ...place, name: `${place.name}.${name}` });
  const changes: SurfaceChange[] = [];
  for (const [name, schema] of Object.entries(before)) {
    if (after[name] === undefined) changes.push(change(inner(name), "breaking", "the field is no longer there"));
    else changes.push(...compareJsonSchemas(inner(name), schema, after[name]));
  }
  for (const name of Object.keys(after)) {
    if (before[name] !== undefined) continue;
    if (isSent && needs.includes(name)) changes.push(change(inner(name), "breaking", "the field is new and required"));
    else changes.push(change(inner(name), "compatible", "the field is new"));
  }
  for (const name of isSent ? needs : needed) {
    if (before[name] === undefined || after[name] === undefined) continue;
    if (isSent && !needed.includes(name)) changes.push(change(inner(name), "breaking", "the field is required"));
    if (!isSent && !needs.includes(name)) changes.push(change(inner(name), "breaking", "the field may be missing"));
  }
  return changes;
}

function requiredOf({ required }: JsonObject): readonly string[] {
  return Array.isArray(required) ? required.map(String) : [];
}

/** Compares variants in order, which our documents keep. */
function compareVariants(place: SchemaPlace, was: unknown, now: unknown): SurfaceChange[] {
  if (!Array.isArray(was)) return [];
  if (!Array.isArray(now) || now.length < was.length)
    return [change(place, "breaking", "a variant is no longer there")];
  return was.flatMap((variant, index) => compareJsonSchemas(place, variant, now[index]));
}

function toObject(value: unknown): JsonObject {
  return isJsonObject(value) ? value : {};
}
