import { baseTypeOf } from "../../engine/catalog/types.ts";
import { referTo } from "../openapi/table-document/component-key.ts";
import { orNull, type Schema, type TypeSchema } from "../openapi/table-document/type-schema.ts";
import { type Action, type Collection, type Collections, isVisible } from "../resource/collections.ts";
import { refuses } from "./error-responses.ts";
import { type Operation, type PathItem, withoutAbsent } from "./operation.ts";
import { filterParameters, keyParameter, OF_LIST, referToParameters } from "./parameters.ts";
import { referToRow } from "./row-schemas.ts";

/** Where a collection lies, and what its operations are called. */
type Place = { readonly path: string; readonly id: string; readonly parameters: readonly object[] };

type Surroundings = {
  readonly collections: Collections;
  readonly shown: readonly Collection[];
  readonly typeSchema: TypeSchema;
  readonly hasTasks: boolean;
  readonly isDeprecated: boolean;
};

/** Those that lie within another are shown below it; what lies deeper is found the same way. */
export function* collectionPaths(around: Surroundings): Generator<[string, PathItem]> {
  for (const [path, item] of currentPaths(around)) yield [path, around.isDeprecated ? deprecated(item) : item];
}

function deprecated(item: PathItem): PathItem {
  return Object.fromEntries(Object.entries(item).map(([method, said]) => [method, { ...said, deprecated: true }]));
}

function* currentPaths(around: Surroundings): Generator<[string, PathItem]> {
  const { collections, shown } = around;
  for (const collection of shown) {
    const { name } = collection;
    const base = `/api/v${collections.version}`;
    const place = { path: `${base}/${encodeURIComponent(name)}`, id: name, parameters: [] };
    yield* pathsAt(place, collection, around);
    if (collections.version === 1 && collections.findAtRoot(name)) {
      yield* pathsAt({ path: `/${encodeURIComponent(name)}`, id: `root.${name}`, parameters: [] }, collection, around);
    }
    if (collection.key.length === 0) continue;
    for (const nested of collection.nested) {
      const inner = collections.find(nested.target);
      if (!inner || !isVisible(inner)) continue;
      const parent = keyParameter("parentId", collection, around.typeSchema);
      const path = `${place.path}/{parentId}/${encodeURIComponent(nested.name)}`;
      yield* pathsAt({ path, id: `${name}.${nested.name}`, parameters: [parent] }, inner, around);
    }
  }
}

function* pathsAt(place: Place, collection: Collection, around: Surroundings): Generator<[string, PathItem]> {
  const { may, key, actions } = collection;
  const all = withoutAbsent({
    get: may.read ? list(place, collection, around) : undefined,
    post: may.create ? create(place, collection) : undefined,
  });
  if (Object.keys(all).length > 0) yield [place.path, all];
  if (key.length === 0) return;
  const id = keyParameter("id", collection, around.typeSchema);
  const row = { ...place, path: `${place.path}/{id}`, parameters: [...place.parameters, id] };
  const one = withoutAbsent({
    get: may.read ? read(row, collection) : undefined,
    put: may.update ? replace(row, collection) : undefined,
    patch: may.update ? update(row, collection) : undefined,
    delete: may.delete ? remove(row, collection) : undefined,
  });
  if (Object.keys(one).length > 0) yield [row.path, one];
  for (const action of actions) {
    yield [`${row.path}/${encodeURIComponent(action.name)}`, { post: act(row, collection, action, around) }];
  }
}

function about(verb: string, { id, parameters }: Place, { name }: Collection, more: readonly object[] = []): Operation {
  return { operationId: `${id}.${verb}`, tags: [name], parameters: [...parameters, ...more] };
}

const ETAG = { ETag: { description: "Of what was answered", schema: { type: "string" } } };
const CACHED = { 304: { description: "Nothing has changed since", headers: ETAG } };

function list(place: Place, collection: Collection, { typeSchema }: Surroundings): Operation {
  return {
    ...about("list", place, collection, [...OF_LIST, ...filterParameters(collection, typeSchema)]),
    summary: `List ${collection.name}`,
    responses: {
      200: answer("The rows", referToRow(collection, "list"), ETAG),
      ...CACHED,
      ...refuses(403, 404),
    },
  };
}

function create(place: Place, collection: Collection): Operation {
  const row = referToRow(collection, "create");
  const made = referToRow(collection, "row");
  const created = answer("Created", { anyOf: [made, { type: "array", items: made }] }, LOCATION);
  return {
    ...about("create", place, collection, referToParameters("links", "idempotencyKey")),
    summary: `Create one of ${collection.name}, or several`,
    requestBody: body({ anyOf: [row, { type: "array", items: row, minItems: 1 }] }),
    responses: {
      201: collection.showsNew ? created : { description: "Created, and not for whoever asks to read" },
      ...refuses(403, 404, 409, 413, 415, 422, 501),
    },
  };
}

const LOCATION = { Location: { description: "Where the row is", schema: { type: "string" } } };

function read(place: Place, collection: Collection): Operation {
  const parameters = referToParameters(
    "fields",
    "links",
    "ifNoneMatch",
    "ifModifiedSince",
    "ifMatch",
    "ifUnmodifiedSince",
  );
  return {
    ...about("get", place, collection, parameters),
    summary: `One of ${collection.name}`,
    responses: { 200: answer("The row", referToRow(collection, "row"), ETAG), ...CACHED, ...refuses(403, 404, 412) },
  };
}

const WRITING = referToParameters("fields", "links", "ifMatch", "ifNoneMatch", "ifUnmodifiedSince", "idempotencyKey");
const WRITE_REFUSALS = refuses(403, 404, 409, 412, 413, 415, 422, 501);

function replace(place: Place, collection: Collection): Operation {
  return {
    ...about("replace", place, collection, WRITING),
    summary: `Replace one of ${collection.name}`,
    requestBody: body(referToRow(collection, "replace")),
    responses: { 200: answer("As it is now", referToRow(collection, "row"), ETAG), ...WRITE_REFUSALS },
  };
}

function update(place: Place, collection: Collection): Operation {
  return {
    ...about("update", place, collection, WRITING),
    summary: `Change one of ${collection.name}`,
    requestBody: body(referToRow(collection, "update")),
    responses: { 200: answer("As it is now", referToRow(collection, "row"), ETAG), ...WRITE_REFUSALS },
  };
}

function remove(place: Place, collection: Collection): Operation {
  return {
    ...about("delete", place, collection, WRITING),
    summary: `Delete one of ${collection.name}`,
    responses: { 204: { description: "Deleted" }, ...WRITE_REFUSALS },
  };
}

const ACTING = referToParameters("links", "ifMatch", "ifNoneMatch", "ifUnmodifiedSince", "idempotencyKey");

function act(place: Place, collection: Collection, action: Action, { typeSchema, hasTasks }: Surroundings): Operation {
  const given = argumentsSchema(action, typeSchema);
  return {
    ...about(OWN_VERBS.has(action.name) ? `action.${action.name}` : action.name, place, collection, [
      ...ACTING,
      ...referToParameters(...(hasTasks ? (["preferLater"] as const) : [])),
    ]),
    summary: action.description ?? `Do ${action.name} with one of ${collection.name}`,
    requestBody: { ...body(given), required: given.required !== undefined },
    responses: {
      200: answer("Done", resultSchema(collection, action, typeSchema)),
      ...(hasTasks && { 202: referTo("responses", "accepted") }),
      204: { description: "Done, and nothing to be told" },
      ...WRITE_REFUSALS,
    },
  };
}

/** An action may be called like what can be done with any row. */
const OWN_VERBS: ReadonlySet<string> = new Set(["list", "create", "get", "replace", "update", "delete"]);

function argumentsSchema({ arguments: given }: Action, typeSchema: TypeSchema): Schema {
  const properties = given.map(({ name, argument }) => [name, orNull(typeSchema(argument.type))]);
  const required = given.filter(({ argument }) => argument.required).map(({ name }) => name);
  return { type: "object", properties: Object.fromEntries(properties), ...(required.length > 0 && { required }) };
}

function resultSchema(collection: Collection, { routine }: Action, typeSchema: TypeSchema): Schema {
  const type = baseTypeOf(routine.returns.type);
  const { table } = collection;
  const isOwnRow = type.kind === "composite" && type.table?.name === table.name && type.table.schema === table.schema;
  const one = isOwnRow ? referToRow(collection, "row") : orNull(typeSchema(routine.returns.type));
  return routine.returns.set ? { type: "array", items: one } : one;
}

function body(schema: Schema) {
  return { required: true, content: { "application/json": { schema } } };
}

function answer(description: string, schema: Schema, headers?: object): object {
  return {
    description,
    ...(headers && { headers }),
    content: { "application/json": { schema }, "application/hal+json": { schema } },
  };
}
