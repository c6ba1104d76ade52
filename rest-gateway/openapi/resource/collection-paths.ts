import { baseTypeOf } from "#catalog";
import {
  type Collection,
  type CollectionField,
  type Collections,
  isVisibleCollection,
  type RowAction,
} from "#rest-gateway/resource/collections";
import { fieldNamed, filterNames, isSearchable, RESERVED_PARAMETERS, SEARCH } from "#rest-gateway/resource/parse";
import { componentRef } from "../document/components.ts";
import { type JsonSchema, orNull, type SchemaOfType } from "../document/json-schema.ts";
import components from "./components.json" with { type: "json" };
import { type PathItem, type PathOperation, resourceErrorRefs, rowSchemaRef, withoutAbsent } from "./components.ts";

/** The path of a collection and the prefix of its operation ids. */
type OperationPlace = { readonly path: string; readonly id: string; readonly parameters: readonly object[] };

type CollectionPathsContext = {
  readonly collections: Collections;
  readonly shown: readonly Collection[];
  readonly typeSchema: SchemaOfType;
  readonly hasTasks: boolean;
  readonly isDeprecated: boolean;
};

/** Yields the paths of all collections, and of those nested one level deep. */
export function* collectionPaths(context: CollectionPathsContext): Generator<[string, PathItem]> {
  for (const [path, item] of pathsOfCollections(context)) yield [path, context.isDeprecated ? deprecated(item) : item];
}

function deprecated(item: PathItem): PathItem {
  return Object.fromEntries(
    Object.entries(item).map(([method, operation]) => [method, { ...operation, deprecated: true }]),
  );
}

function* pathsOfCollections(context: CollectionPathsContext): Generator<[string, PathItem]> {
  const { collections, shown } = context;
  for (const collection of shown) {
    const { name } = collection;
    const base = `/api/v${collections.version}`;
    const place = { path: `${base}/${encodeURIComponent(name)}`, id: name, parameters: [] };
    yield* pathsAt(place, collection, context);
    if (collections.version === 1 && collections.findAtRoot(name)) {
      yield* pathsAt({ path: `/${encodeURIComponent(name)}`, id: `root.${name}`, parameters: [] }, collection, context);
    }
    if (collection.key.length === 0) continue;
    for (const nested of collection.nested) {
      const inner = collections.find(nested.target);
      if (!inner || !isVisibleCollection(inner)) continue;
      const parent = {
        ...keyParameter("parentId", collection, context.typeSchema),
        ...referencesOfNested(nested, inner, collection),
      };
      const path = `${place.path}/{parentId}/${encodeURIComponent(nested.name)}`;
      yield* pathsAt({ path, id: `${name}.${nested.name}`, parameters: [parent] }, inner, context);
    }
  }
}

/** The fields of the nested rows that have the values of the parent's fields: `{ "author_id": "id" }`. */
function referencesOfNested(
  { relationship: { columns } }: Collection["nested"][number],
  inner: Collection,
  parent: Collection,
): { readonly "x-references"?: Readonly<Record<string, string>> } {
  const nameIn = ({ fields }: Collection, name: string) =>
    fields.find(({ column, readable }) => readable && column.name === name)?.name;
  const pairs = columns.map(({ source, target }) => [nameIn(inner, target), nameIn(parent, source)] as const);
  const isShown = pairs.every((pair): pair is [string, string] => pair.every((name) => name !== undefined));
  return isShown ? { "x-references": Object.fromEntries(pairs) } : {};
}

function* pathsAt(
  place: OperationPlace,
  collection: Collection,
  context: CollectionPathsContext,
): Generator<[string, PathItem]> {
  const { privileges, key, actions } = collection;
  const all = withoutAbsent({
    get: privileges.read ? listOperation(place, collection, context) : undefined,
    post: privileges.create ? createOperation(place, collection) : undefined,
  });
  if (Object.keys(all).length > 0) yield [place.path, all];
  if (key.length === 0) return;
  const id = keyParameter("id", collection, context.typeSchema);
  const row = { ...place, path: `${place.path}/{id}`, parameters: [...place.parameters, id] };
  const one = withoutAbsent({
    get: privileges.read ? readOperation(row, collection) : undefined,
    put: privileges.update ? replaceOperation(row, collection) : undefined,
    patch: privileges.update ? updateOperation(row, collection) : undefined,
    delete: privileges.delete ? deleteOperation(row, collection) : undefined,
  });
  if (Object.keys(one).length > 0) yield [row.path, one];
  for (const action of actions) {
    yield [
      `${row.path}/${encodeURIComponent(action.name)}`,
      { post: actionOperation(row, collection, action, context) },
    ];
  }
}

function describeOperation(
  verb: string,
  { id, parameters }: OperationPlace,
  { name }: Collection,
  more: readonly object[] = [],
): PathOperation {
  return { operationId: `${id}.${verb}`, tags: [name], parameters: [...parameters, ...more] };
}

const ETAG_HEADER = { ETag: { description: "The version of the response", schema: { type: "string" } } };
const NOT_MODIFIED = { 304: { description: "Not modified", headers: ETAG_HEADER } };

function listOperation(
  place: OperationPlace,
  collection: Collection,
  { typeSchema }: CollectionPathsContext,
): PathOperation {
  return {
    ...describeOperation("list", place, collection, [
      ...LIST_PARAMETER_REFS,
      ...filterParameters(collection, typeSchema),
    ]),
    summary: `List ${collection.name}`,
    responses: {
      200: jsonResponses("The rows", rowSchemaRef(collection, "list"), ETAG_HEADER),
      ...NOT_MODIFIED,
      ...resourceErrorRefs(403, 404),
    },
  };
}

function createOperation(place: OperationPlace, collection: Collection): PathOperation {
  const row = rowSchemaRef(collection, "create");
  const made = rowSchemaRef(collection, "row");
  const created = jsonResponses("Created", { anyOf: [made, { type: "array", items: made }] }, LOCATION_HEADER);
  return {
    ...describeOperation("create", place, collection, parameterRefs("links", "idempotencyKey")),
    summary: `Create one or several ${collection.name}`,
    requestBody: jsonBody({ anyOf: [row, { type: "array", items: row, minItems: 1 }] }),
    responses: {
      201: collection.returnsInserted ? created : { description: "Created; the caller may not read the row" },
      ...resourceErrorRefs(403, 404, 409, 413, 415, 422, 501),
    },
  };
}

const LOCATION_HEADER = { Location: { description: "The path of the row", schema: { type: "string" } } };

function readOperation(place: OperationPlace, collection: Collection): PathOperation {
  const parameters = parameterRefs("fields", "links", "ifNoneMatch", "ifModifiedSince", "ifMatch", "ifUnmodifiedSince");
  return {
    ...describeOperation("get", place, collection, parameters),
    summary: `Get one of ${collection.name}`,
    responses: {
      200: jsonResponses("The row", rowSchemaRef(collection, "row"), ETAG_HEADER),
      ...NOT_MODIFIED,
      ...resourceErrorRefs(403, 404, 412),
    },
  };
}

const WRITE_PARAMETERS = parameterRefs(
  "fields",
  "links",
  "ifMatch",
  "ifNoneMatch",
  "ifUnmodifiedSince",
  "idempotencyKey",
);
const WRITE_ERRORS = resourceErrorRefs(403, 404, 409, 412, 413, 415, 422, 501);

function replaceOperation(place: OperationPlace, collection: Collection): PathOperation {
  return {
    ...describeOperation("replace", place, collection, WRITE_PARAMETERS),
    summary: `Replace one of ${collection.name}`,
    requestBody: jsonBody(rowSchemaRef(collection, "replace")),
    responses: { 200: jsonResponses("The changed row", rowSchemaRef(collection, "row"), ETAG_HEADER), ...WRITE_ERRORS },
  };
}

function updateOperation(place: OperationPlace, collection: Collection): PathOperation {
  return {
    ...describeOperation("update", place, collection, WRITE_PARAMETERS),
    summary: `Update one of ${collection.name}`,
    requestBody: jsonBody(rowSchemaRef(collection, "update")),
    responses: { 200: jsonResponses("The changed row", rowSchemaRef(collection, "row"), ETAG_HEADER), ...WRITE_ERRORS },
  };
}

function deleteOperation(place: OperationPlace, collection: Collection): PathOperation {
  return {
    ...describeOperation("delete", place, collection, WRITE_PARAMETERS),
    summary: `Delete one of ${collection.name}`,
    responses: { 204: { description: "Deleted" }, ...WRITE_ERRORS },
  };
}

const ACTION_PARAMETERS = parameterRefs("links", "ifMatch", "ifNoneMatch", "ifUnmodifiedSince", "idempotencyKey");

function actionOperation(
  place: OperationPlace,
  collection: Collection,
  action: RowAction,
  { typeSchema, hasTasks }: CollectionPathsContext,
): PathOperation {
  const bodySchema = argumentsSchema(action, typeSchema);
  return {
    ...describeOperation(RESERVED_VERBS.has(action.name) ? `action.${action.name}` : action.name, place, collection, [
      ...ACTION_PARAMETERS,
      ...parameterRefs(...(hasTasks ? (["preferLater"] as const) : [])),
    ]),
    summary: action.description ?? `Call ${action.name} on one of ${collection.name}`,
    requestBody: { ...jsonBody(bodySchema), required: bodySchema.required !== undefined },
    responses: {
      200: jsonResponses("The result", resultSchema(collection, action, typeSchema)),
      ...(hasTasks && { 202: componentRef("responses", "accepted") }),
      204: { description: "Done; no content" },
      ...WRITE_ERRORS,
    },
  };
}

/** Names with which an action gets a prefix in its operation id. */
const RESERVED_VERBS: ReadonlySet<string> = new Set(["list", "create", "get", "replace", "update", "delete"]);

function argumentsSchema({ arguments: parameters }: RowAction, typeSchema: SchemaOfType): JsonSchema {
  const properties = parameters.map(({ name, argument }) => [name, orNull(typeSchema(argument.type))]);
  const required = parameters.filter(({ argument }) => argument.required).map(({ name }) => name);
  return { type: "object", properties: Object.fromEntries(properties), ...(required.length > 0 && { required }) };
}

function resultSchema(collection: Collection, { routine }: RowAction, typeSchema: SchemaOfType): JsonSchema {
  const type = baseTypeOf(routine.returns.type);
  const { table } = collection;
  const isOwnRow = type.kind === "composite" && type.table?.name === table.name && type.table.schema === table.schema;
  const one = isOwnRow ? rowSchemaRef(collection, "row") : orNull(typeSchema(routine.returns.type));
  return routine.returns.set ? { type: "array", items: one } : one;
}

function jsonBody(schema: JsonSchema) {
  return { required: true, content: { "application/json": { schema } } };
}

function jsonResponses(description: string, schema: JsonSchema, headers?: object): object {
  return {
    description,
    ...(headers && { headers }),
    content: { "application/json": { schema }, "application/hal+json": { schema } },
  };
}

type ResourceParameter = keyof typeof components.parameters;

function parameterRefs(...names: readonly ResourceParameter[]): readonly object[] {
  return names.map((name) => componentRef("parameters", name));
}

const LIST_PARAMETER_REFS = parameterRefs(
  ...(["fields", "links", "sort", "order", "page", "limit", "size", "skip", "envelope", "ifNoneMatch"] as const),
);

/** Returns filter parameters: fields and references by equality, and search functions. */
function filterParameters(collection: Collection, typeSchema: SchemaOfType): readonly object[] {
  const names = filterNames(collection).filter((name) => !RESERVED_PARAMETERS.includes(name));
  return names.map((name) => {
    const field = fieldNamed(name, collection);
    if (!field && name === SEARCH && isSearchable(collection)) return componentRef("parameters", SEARCH);
    if (!field) return queryParameter(name, "The search text", { type: "string" });
    const items = schemaOfText(field, typeSchema);
    const description = `Rows whose ${field.name} ${field.column.baseType.kind === "array" ? "contains" : "equals"} this value`;
    return { ...queryParameter(name, description, { type: "array", items }), style: "form", explode: true };
  });
}

/** Returns the schema of a parameter. Numbers, booleans and enums have their types; any other value is a text that Postgres parses. */
function schemaOfText({ column }: CollectionField, typeSchema: SchemaOfType): JsonSchema {
  const type = column.baseType.kind === "array" ? column.baseType.element : column.type;
  const { type: kind, enum: choices } = typeSchema(type);
  if (choices) return { type: "string", enum: choices };
  return kind === "integer" || kind === "boolean" || kind === "number" ? { type: kind } : { type: "string" };
}

/** Returns the parameter for the key of a row in a path: one column, or several separated by commas. */
function keyParameter(name: string, { key }: Collection, typeSchema: SchemaOfType): object {
  const [only, ...others] = key;
  const isOne = only !== undefined && others.length === 0;
  return {
    name,
    in: "path",
    required: true,
    description: isOne ? `The ${only.name} of the row` : `${key.map((field) => field.name).join(",")} of the row`,
    schema: isOne ? schemaOfText(only, typeSchema) : { type: "string" },
  };
}

function queryParameter(name: string, description: string, schema: JsonSchema) {
  return { name, in: "query", description, schema };
}
