import { isUtf8 } from "node:buffer";
import { HttpError } from "#http";
import type { CallArgument, JsonValueSpans, NestedRows, ResponseFormat, RowPayload } from "#planner/intent";
import type { Stepwise } from "#runtime/concurrency";
import {
  isExactJsonObject,
  OPEN_BRACE,
  OPEN_BRACKET,
  type RecordVisitor,
  scanJson,
  skipSpace,
  Uint32List,
} from "#runtime/json";
import { csvToJson } from "./csv.ts";
import { parseContentType } from "./headers.ts";
import { parseForm, type UrlParameter } from "./query-string.ts";
import { decodeText, invalidBody, parseWholeJson, unreadableJson } from "./whole-json.ts";

export const EMPTY_PAYLOAD: RowPayload = { json: Buffer.from("[]"), columns: [], isArray: true };
const RAW_BODY_TYPES: Readonly<Record<string, "text" | "xml" | "bytea">> = {
  "text/plain": "text",
  "text/xml": "xml",
  "application/octet-stream": "bytea",
};

/** A body, parsed as far as its media type allows, before the intent is known. */
export type ParsedBody = { readonly body: Buffer; readonly format: ResponseFormat } & (
  | { readonly kind: "json"; readonly outline: JsonOutline }
  | { readonly kind: "csv"; readonly json: Buffer; readonly columns: readonly string[] }
  | { readonly kind: "form"; readonly values: readonly UrlParameter[] }
  /** A body that is passed on unparsed. */
  | { readonly kind: "raw" }
  /** An error that is reported only if the rest of the request is valid. */
  | { readonly kind: "unreadable"; readonly refusal: HttpError }
);

/** The body of a request whose method has none. */
export const NO_BODY: ParsedBody = { body: Buffer.alloc(0), format: parseContentType(undefined), kind: "raw" };

/** The limit of a form, which has one row or the arguments of a function, so it is short. */
const MAX_FORM_BYTES = 2 ** 20;
const MAX_FORM_FIELDS = 10_000;

/** Parses a body. Calls `holdMemory` with the memory used in addition to the body. */
export function* parseBody(
  body: Buffer,
  format: ResponseFormat,
  holdMemory?: (bytes: number) => void,
): Stepwise<ParsedBody> {
  const common = { body, format };
  try {
    switch (format.type) {
      case "application/json":
        return { ...common, kind: "json", outline: yield* outlineJson(body) };
      case "text/csv":
        return { ...common, kind: "csv", ...(yield* csvToJson(decodeText(body), holdMemory)) };
      case "application/x-www-form-urlencoded":
        return { ...common, kind: "form", values: parseFormBody(body) };
      default:
        return { ...common, kind: "raw" };
    }
  } catch (error) {
    if (!(error instanceof HttpError) || error.status !== 400) throw error;
    return { ...common, kind: "unreadable", refusal: error };
  }
}

function parseFormBody(body: Buffer): readonly UrlParameter[] {
  if (body.length > MAX_FORM_BYTES) {
    throw new HttpError(413, "PAYLOAD_TOO_LARGE", `A form may not be larger than ${MAX_FORM_BYTES} bytes.`, {
      hint: "Send JSON.",
    });
  }
  const text = decodeText(body);
  let fields = 1;
  for (let at = 0; at < text.length; at++) if (text[at] === "&" || text[at] === ";") fields++;
  if (fields > MAX_FORM_FIELDS)
    throw new HttpError(400, "PGRST102", `A form may not have more than ${MAX_FORM_FIELDS} fields`);
  return parseForm(text);
}

/** Parses the rows of an insert or an update. With the parameter `columns`, invalid JSON is left to Postgres to report. */
export function parseRows(body: ParsedBody, columns: readonly string[] | null): RowPayload {
  switch (body.kind) {
    case "json":
      return columns === null ? toPayload(body.body, requireReadable(body.outline)) : toNamedRows(body, columns);
    case "csv":
      return { json: body.json, columns: sortedUnique(body.columns), isArray: true };
    case "form": {
      const row = Object.fromEntries(body.values);
      return { json: Buffer.from(JSON.stringify(row)), columns: sortedUnique(Object.keys(row)), isArray: false };
    }
    case "unreadable":
      throw body.refusal;
    case "raw":
      throw contentTypeNotAcceptable(body.format);
  }
}

/** Parses the rows of a nested insert. Their keys may differ, and keys other than columns name relations. */
export function parseNestedRows(content: ParsedBody, columns: readonly string[] | null): NestedRows {
  if (content.kind === "unreadable") throw content.refusal;
  if (content.kind !== "json") throw invalidBody("Prefer: nested=insert requires a JSON body");
  const value = parseWholeJson(content.body, "A nested insert");
  const { kind } = requireReadable(content.outline);
  const rows = kind === "object" ? [value] : kind === "scalar" ? [] : (value as readonly unknown[]);
  if (!rows.every(isExactJsonObject)) throw invalidBody("All elements of the list must be objects");
  return { rows, isList: kind !== "object", columns: columns && sortedUnique(columns) };
}

/** Parses the arguments of a function that is called by POST. */
export function parseArgument(content: ParsedBody, columns: readonly string[] | null): CallArgument {
  const { body, format } = content;
  switch (content.kind) {
    case "json":
      if (columns !== null) return { kind: "json", body, names: sortedUnique(columns) };
      return body.length === 0
        ? { kind: "json", body: Buffer.from("{}"), names: [] }
        : { kind: "json", body, names: argumentNamesOf(requireReadable(content.outline)) };
    case "csv":
      return { kind: "json", body: content.json, names: sortedUnique(content.columns), isCsv: true };
    case "form":
      return { kind: "query", values: content.values };
    case "unreadable":
      throw content.refusal;
    case "raw": {
      const type = RAW_BODY_TYPES[format.type];
      if (type === undefined) throw contentTypeNotAcceptable(format);
      return { kind: "raw", body, type };
    }
  }
}

type ReadableOutline = Exclude<JsonOutline, { readonly kind: "invalid" | "too deep" }>;

function requireReadable(outline: JsonOutline): ReadableOutline {
  if (outline.kind === "invalid") throw unreadableJson();
  if (outline.kind === "too deep") throw invalidBody(`The json has more than ${outline.maxLevels} levels`);
  return outline;
}

function toPayload(body: Buffer, outline: ReadableOutline): RowPayload {
  switch (outline.kind) {
    case "object":
      return { json: body, columns: payloadColumns(outline.keys), isArray: false };
    case "rows": {
      const { keys, valueSpans } = outline;
      return { json: body, columns: payloadColumns(keys), isArray: true, ...(valueSpans && { valueSpans }) };
    }
    case "mixed":
      throw invalidBody("All object keys must match");
    case "scalar":
      return EMPTY_PAYLOAD;
  }
}

function payloadColumns(keys: JsonKeys): readonly string[] {
  if (keys === null) throw invalidBody("A row has more keys than a table can have columns");
  return sortedUnique(keys);
}

/** Returns rows for any text that does not begin as an object; Postgres reports errors in it. */
function toNamedRows({ body, outline }: ParsedBody & { readonly kind: "json" }, names: readonly string[]): RowPayload {
  const columns = sortedUnique(names);
  if (body[skipSpace(body, 0)] === OPEN_BRACE) return { json: body, columns, isArray: false };
  const valueSpans = outline.kind === "rows" ? outline.valueSpans : null;
  const hasAll = valueSpans !== null && columns.every((name) => valueSpans.keys.includes(name));
  return { json: body, columns, isArray: true, ...(hasAll && { valueSpans }) };
}

/**
 * Returns the names; null without names, or with more names than a function can have parameters: then only a single unnamed parameter can
 * take the body.
 */
function argumentNamesOf(outline: ReadableOutline): readonly string[] | null {
  const { keys } = outline.kind === "object" || outline.kind === "rows" ? outline : { keys: null };
  return keys && sortedUnique(keys);
}

/** Returns the names in a fixed order, so that the order of the columns does not change the statement. */
function sortedUnique(names: readonly string[]): readonly string[] {
  return [...new Set(names)].sort();
}

function contentTypeNotAcceptable({ type }: ResponseFormat): HttpError {
  return invalidBody(`Content-Type not acceptable: ${type}`);
}

/** The structure of a JSON text that the statement depends on: one object or several, and their keys. */
type JsonOutline =
  | { readonly kind: "object"; readonly keys: JsonKeys }
  /** Objects that all have the same keys. */
  | { readonly kind: "rows"; readonly keys: JsonKeys; readonly valueSpans: JsonValueSpans | null }
  /** Any other array. */
  | { readonly kind: "mixed" }
  | { readonly kind: "scalar" }
  | { readonly kind: "invalid" }
  | { readonly kind: "too deep"; readonly maxLevels: number };

/** The keys of an object; null if there are more than a row can have columns. */
type JsonKeys = readonly string[] | null;

/** The limit of keys, which is Postgres's limit of columns; a function has fewer arguments. */
const MAX_KEYS = 1_600;
/** The size above which Postgres reads values faster. */
const MAX_VALUE_BYTES = 256 * 1024;

export function* outlineJson(bytes: Buffer): Stepwise<JsonOutline> {
  const records = new RecordOutline(bytes);
  const scan = yield* scanJson(bytes, records);
  switch (scan.kind) {
    case "object":
      return { kind: "object", keys: records.keys };
    case "list":
      return records.areAlike
        ? { kind: "rows", keys: records.keys, valueSpans: records.valueSpans }
        : { kind: "mixed" };
    case "scalar":
      return { kind: "scalar" };
    default:
      return scan;
  }
}

/** Start and end positions of the keys of an object, alternating, including the quotes. */
type KeyPositions = number[];

class RecordOutline implements RecordVisitor {
  areAlike = true;
  readonly #bytes: Buffer;
  readonly #places: KeyPositions = [];
  #first: KeyPositions | null = null;
  #firstNames: ReadonlySet<string> | null = null;
  #values: Uint32List | null;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
    this.#values = bytes[skipSpace(bytes, 0)] === OPEN_BRACKET ? new Uint32List() : null;
  }

  get keys(): JsonKeys {
    if (this.#first === null) return [];
    return this.#hasTooMany ? null : [...this.#names];
  }

  /** Returns the spans; null if the text of a value may differ from its value: duplicate keys, invalid UTF-8, escapes that Postgres rejects. */
  get valueSpans(): JsonValueSpans | null {
    const { keys } = this;
    if (keys === null || keys.length === 0 || this.#values === null || 2 * keys.length !== this.#first!.length)
      return null;
    return isUtf8(this.#bytes) && !this.#bytes.includes("\\u") ? { keys, spans: this.#values.numbers } : null;
  }

  beginRecord(): void {
    this.#places.length = 0;
  }

  member(nameStart: number, nameEnd: number, valueStart: number, valueEnd: number): void {
    if (!this.areAlike || this.#places.length > 2 * MAX_KEYS) return;
    this.#places.push(nameStart, nameEnd);
    if (valueEnd - valueStart > MAX_VALUE_BYTES) this.#values = null;
    this.#values?.push(valueStart);
    this.#values?.push(valueEnd);
  }

  endRecord(): void {
    if (!this.areAlike) return;
    if (this.#first === null) this.#first = [...this.#places];
    else if (!haveSameKeyText(this.#bytes, this.#first, this.#places)) {
      this.#values = null;
      this.areAlike = this.#haveSameNames();
    }
  }

  other(): void {
    this.areAlike = false;
  }

  get #hasTooMany(): boolean {
    return this.#first!.length > 2 * MAX_KEYS;
  }

  get #names(): ReadonlySet<string> {
    this.#firstNames ??= keyNames(this.#bytes, this.#first!);
    return this.#firstNames;
  }

  /** Returns true if all rows have the same names. Rows with too many names are rejected anyway, so they are not compared. */
  #haveSameNames(): boolean {
    if (this.#hasTooMany || this.#places.length > 2 * MAX_KEYS) return this.#hasTooMany;
    const others = keyNames(this.#bytes, this.#places);
    return this.#names.size === others.size && this.#names.isSubsetOf(others);
  }
}

/** Returns true for the same keys in the same order, as in most rows, which one program writes. */
function haveSameKeyText(bytes: Buffer, first: KeyPositions, places: KeyPositions): boolean {
  if (first.length !== places.length) return false;
  for (let index = 0; index < first.length; index += 2) {
    const length = first[index + 1]! - first[index]!;
    if (places[index + 1]! - places[index]! !== length) return false;
    for (let offset = 0; offset < length; offset += 1) {
      if (bytes[first[index]! + offset] !== bytes[places[index]! + offset]) return false;
    }
  }
  return true;
}

function keyNames(bytes: Buffer, places: KeyPositions): ReadonlySet<string> {
  const names = new Set<string>();
  for (let index = 0; index < places.length; index += 2) {
    names.add(JSON.parse(bytes.toString("utf8", places[index], places[index + 1])));
  }
  return names;
}
