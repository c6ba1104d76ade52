import { isJsonObject, type JsonObject } from "#runtime/json";
import type { SurfaceChange } from "./contract.ts";
import { compareJsonSchemas, type DocumentPair, resolveReference } from "./json-schema-changes.ts";

const METHODS = ["get", "put", "post", "delete", "options", "head", "patch", "trace"];

/** Changes between the OpenAPI documents of each version. */
export function openapiChanges(
  before: Readonly<Record<string, unknown>>,
  after: Readonly<Record<string, unknown>>,
): SurfaceChange[] {
  const changes: SurfaceChange[] = [];
  for (const [version, document] of Object.entries(before)) {
    const now = after[version];
    if (now === undefined)
      changes.push({ level: "breaking", object: version, message: "The version is no longer served." });
    else {
      const ofDocument = documentChanges({ before: asObject(document), after: asObject(now) });
      changes.push(...ofDocument.map((change) => ({ ...change, object: `${version} ${change.object}` })));
    }
  }
  for (const version of Object.keys(after))
    if (before[version] === undefined)
      changes.push({ level: "compatible", object: version, message: "The version is new." });
  return changes;
}

/** Gives all parameters of the path the same name: `GET /items/{}`. */
export function normalizeEndpoint(endpoint: string): string {
  return endpoint.replaceAll(/\{[^}]*\}/g, "{}");
}

function documentChanges(documents: DocumentPair): SurfaceChange[] {
  const [before, after] = [listOperations(documents.before), listOperations(documents.after)];
  const changes: SurfaceChange[] = [];
  for (const [name, operation] of before) {
    const now = after.get(name);
    if (now) changes.push(...operationChanges(name, operation, now, documents));
    else changes.push({ level: "breaking", object: name, message: "The operation is no longer there." });
  }
  for (const name of after.keys())
    if (!before.has(name)) changes.push({ level: "compatible", object: name, message: "The operation is new." });
  return deduplicate(changes);
}

function listOperations(document: JsonObject): Map<string, JsonObject> {
  const operations = new Map<string, JsonObject>();
  for (const [path, item] of Object.entries(asObject(document.paths))) {
    for (const [method, operation] of Object.entries(asObject(item)))
      if (METHODS.includes(method)) operations.set(`${method.toUpperCase()} ${path}`, asObject(operation));
  }
  return operations;
}

function operationChanges(object: string, was: JsonObject, now: JsonObject, documents: DocumentPair): SurfaceChange[] {
  return [
    ...parameterChanges(object, was, now, documents),
    ...bodyChanges(object, was, now, documents),
    ...responseChanges(object, was, now, documents),
  ];
}

function parameterChanges(object: string, was: JsonObject, now: JsonObject, documents: DocumentPair): SurfaceChange[] {
  const [before, after] = [listParameters(was, documents.before), listParameters(now, documents.after)];
  const changes: SurfaceChange[] = [];
  for (const [name, parameter] of before) {
    const next = after.get(name);
    if (!next) changes.push({ level: "breaking", object, message: `The parameter ${name} is no longer there.` });
    else {
      if (next.required && !parameter.required)
        changes.push({ level: "breaking", object, message: `The parameter ${name} is required.` });
      changes.push(...referenceChanges(object, parameter, next));
      const place = { object, name, direction: "request", documents } as const;
      changes.push(...compareJsonSchemas(place, parameter.schema, next.schema));
    }
  }
  for (const [name, { required }] of after)
    if (!before.has(name) && required)
      changes.push({ level: "breaking", object, message: `The parameter ${name} is new and required.` });
  return changes;
}

/** Says that the same path leads to other rows, since they refer to its row by other fields. */
function referenceChanges(object: string, was: JsonObject, now: JsonObject): SurfaceChange[] {
  const [before, after] = [was, now].map((parameter) => Object.keys(asObject(parameter["x-references"])).join(", "));
  // Documents of older snapshots do not tell.
  if (!before || !after || before === after) return [];
  return [{ level: "breaking", object, message: `The rows are found by ${after} instead of ${before}.` }];
}

function listParameters(operation: JsonObject, document: JsonObject): Map<string, JsonObject> {
  const parameters = Array.isArray(operation.parameters) ? operation.parameters : [];
  const resolved = parameters.map((each) => resolveReference(asObject(each), document));
  return new Map(resolved.map((parameter) => [String(parameter.name), parameter]));
}

function bodyChanges(object: string, was: JsonObject, now: JsonObject, documents: DocumentPair): SurfaceChange[] {
  const before = resolveReference(asObject(was.requestBody), documents.before);
  const after = resolveReference(asObject(now.requestBody), documents.after);
  const isRequired = after.required === true && before.required !== true;
  return [
    ...(isRequired ? [{ level: "breaking", object, message: "The body is required." } as const] : []),
    ...contentChanges({ object, name: "body", direction: "request", documents }, before, after),
  ];
}

function responseChanges(object: string, was: JsonObject, now: JsonObject, documents: DocumentPair): SurfaceChange[] {
  const [before, after] = [asObject(was.responses), asObject(now.responses)];
  return Object.keys(before)
    .filter((status) => status.startsWith("2"))
    .flatMap((status): SurfaceChange[] => {
      if (after[status] === undefined)
        return [{ level: "breaking", object, message: `The response ${status} is no longer there.` }];
      const place = { object, name: `response ${status}`, direction: "response", documents } as const;
      const [one, other] = [before, after].map((responses) => asObject(responses[status]));
      return contentChanges(place, resolveReference(one!, documents.before), resolveReference(other!, documents.after));
    });
}

function contentChanges(
  place: Parameters<typeof compareJsonSchemas>[0],
  was: JsonObject,
  now: JsonObject,
): SurfaceChange[] {
  const [before, after] = [asObject(was.content), asObject(now.content)];
  return Object.keys(before).flatMap((type): SurfaceChange[] => {
    if (after[type] !== undefined)
      return compareJsonSchemas(place, asObject(before[type]).schema, asObject(after[type]).schema);
    return [{ level: "breaking", object: place.object, message: `${place.name}: ${type} is no longer there.` }];
  });
}

function asObject(value: unknown): JsonObject {
  return isJsonObject(value) ? value : {};
}

/** Removes duplicates, which come from schemas that operations share. */
function deduplicate(changes: readonly SurfaceChange[]): SurfaceChange[] {
  return [...new Map(changes.map((change) => [JSON.stringify(change), change])).values()];
}
