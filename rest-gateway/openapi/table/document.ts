import type { Catalog } from "#catalog";
import { BATCH_TYPE } from "#rest-gateway/dialect";
import { readComment } from "../document/comments.ts";
import { type ComponentReference, componentKey } from "../document/components.ts";
import { makeSchemaOfType } from "../document/json-schema.ts";
import type { OpenApiDocument } from "../document/printed-document.ts";
import {
  type TableDocumentOptions,
  type VisibleSchema,
  type VisibleTable,
  viewSchema,
} from "../document/visible-schema.ts";
import components from "./components.json" with { type: "json" };
import {
  EMPTY_RESPONSE,
  EMPTY_RESPONSE_REF,
  makeRowSchemas,
  profileRefs,
  rowFilterRefs,
  rowFilters,
  rowRef,
  rowsRef,
  sharedParameters,
  sharedRefs,
  tableErrorRefs,
  tableErrorResponses,
  tableResponses,
  UNCHANGED_RESPONSE,
  UNCHANGED_RESPONSE_REF,
  unreservedRefs,
  writtenRef,
} from "./components.ts";
import { NestedSchemas } from "./nested-schemas.ts";
import { OperatorSchemas } from "./operator-schemas.ts";
import { routinePaths, routineTag } from "./routine-paths.ts";

/** The table interface in OpenAPI 3.1. */
export async function makeTableDocument(subject: TableDocumentOptions): Promise<OpenApiDocument> {
  const { catalog, serverUrl, requireApiKey, version } = subject;
  const viewer = await viewSchema(subject);
  const typeSchema = makeSchemaOfType(catalog, viewer);
  const rowSchemas = makeRowSchemas({ viewer, catalog, typeSchema });
  const bodies: WriteBodies = {
    operators: new OperatorSchemas({ viewer, catalog, typeSchema }),
    nested: new NestedSchemas({ viewer, catalog, typeSchema }),
  };
  const { summary, description } = readComment(viewer.schema?.comment ?? null);
  return {
    openapi: "3.1.0",
    info: {
      title: summary ?? "Table interface",
      description: summary ? description : "Tables, views and functions, made from the database.",
      version,
    },
    externalDocs: {
      description: "Filtering, ordering, pagination and embedding",
      url: "https://docs.postgrest.org/en/v14/references/api.html",
    },
    servers: [{ url: serverUrl }],
    security: requireApiKey ? [{ apikey: [], JWT: [] }, { apikey: [] }] : [{ JWT: [] }, { apikey: [] }, {}],
    tags: documentTags(viewer),
    paths: function* () {
      yield ["/", { ...ROOT, post: batchOperation() }];
      yield* tablePaths(viewer, catalog, bodies);
      yield* routinePaths({ viewer, catalog, typeSchema });
    },
    components: {
      schemas: function* () {
        yield* Object.entries(components.schemas);
        for (const visible of viewer.tables) {
          yield* rowSchemas(visible);
          yield* bodies.operators.schemasOf(visible);
          yield* bodies.nested.schemasOf(visible);
        }
        yield* bodies.operators.sharedSchemas();
      },
      parameters: function* () {
        yield* sharedParameters(subject);
        for (const visible of viewer.tables) yield* rowFilters(visible);
      },
      responses: function* () {
        yield EMPTY_RESPONSE;
        yield UNCHANGED_RESPONSE;
        yield* tableErrorResponses();
        for (const visible of viewer.tables) yield* tableResponses(visible, { viewer, catalog });
      },
      headers: components.headers,
      securitySchemes: components.securitySchemes,
    },
  };
}

const INTROSPECTION_TAG = "Introspection";
const BATCHES_TAG = "Batches";

/** Returns a tag for each table and function; the comments are in the operations. */
function documentTags({ tables, routines }: VisibleSchema): readonly { readonly name: string }[] {
  const names = [
    ...[INTROSPECTION_TAG, BATCHES_TAG],
    ...tables.map(({ table }) => table.name),
    ...routines.map((overloads) => routineTag(overloads[0]!)),
  ];
  return [...new Set(names)].map((name) => ({ name }));
}

const ROOT = {
  get: {
    operationId: "describe",
    tags: [INTROSPECTION_TAG],
    summary: "OpenAPI description (this document)",
    responses: {
      200: {
        description: "OpenAPI 3.1, or Swagger 2.0 for Accept headers of PostgREST clients",
        content: { "application/vnd.oai.openapi+json": {}, "application/openapi+json": {}, "application/json": {} },
      },
    },
  },
};

const BATCH_REQUEST = {
  type: "object",
  required: ["method", "path"],
  properties: {
    method: { enum: ["GET", "POST", "PATCH", "PUT", "DELETE"] },
    path: {
      description: "A path, or a list of strings and references, which are joined",
      type: ["string", "array"],
      items: { type: ["string", "object"] },
    },
    headers: { type: "object", additionalProperties: { type: "string" } },
    body: { description: 'JSON, in which {"$ref": "0#/0/id"} is a value of an earlier response; or a text' },
  },
};

const BATCH_RESPONSE = {
  type: "object",
  properties: {
    status: { type: "integer" },
    headers: { type: "object" },
    body: { description: "JSON, a text, or null" },
    encoding: { description: "base64, if the body is bytes", const: "base64" },
  },
};

function batchOperation(): TablePathOperation {
  return {
    operationId: "batch",
    tags: [BATCHES_TAG],
    summary: "Several requests in one transaction: all take effect, or none",
    parameters: sharedRefs("idempotencyKey"),
    requestBody: {
      required: true,
      content: { [BATCH_TYPE]: { schema: { type: "array", items: BATCH_REQUEST } } },
    },
    responses: {
      200: {
        description: "The response of each request",
        content: { [BATCH_TYPE]: { schema: { type: "array", items: BATCH_RESPONSE } } },
      },
      ...ERRORS.insert,
    },
  };
}

const ERRORS = {
  read: tableErrorRefs(300, 400, 401, 403, 406, 416),
  insert: tableErrorRefs(300, 400, 401, 403, 406, 409, 413, 422),
  change: tableErrorRefs(300, 400, 401, 403, 406, 409, 412, 413, 422),
  remove: tableErrorRefs(300, 400, 401, 403, 406, 409, 412, 422),
};

type TablePathOperation = { readonly [key: string]: unknown };

/** Yields the paths of all tables with the methods that the role may use. */
function* tablePaths(viewer: VisibleSchema, catalog: Catalog, bodies: WriteBodies): Generator<[string, object]> {
  const schema = viewer.schema?.name ?? "";
  const profiles = {
    read: profileRefs({ catalog, schema }, "Accept-Profile"),
    write: profileRefs({ catalog, schema }, "Content-Profile"),
  };
  for (const visible of viewer.tables) {
    yield [`/${encodeURIComponent(visible.table.name)}`, tablePath(visible, profiles, bodies)];
  }
}

type Profiles = { readonly read: readonly ComponentReference[]; readonly write: readonly ComponentReference[] };

/** The schemas of bodies that need a preference. */
type WriteBodies = { readonly operators: OperatorSchemas; readonly nested: NestedSchemas };

function tablePath(visible: VisibleTable, profiles: Profiles, bodies: WriteBodies): object {
  const { verbs } = visible;
  return {
    get: verbs.has("select") ? readOperation(visible, profiles.read) : undefined,
    post: verbs.has("insert") ? insertOperation(visible, profiles.write, bodies) : undefined,
    put: canReplace(visible) ? replaceOperation(visible, profiles.write, bodies) : undefined,
    patch: verbs.has("update") ? updateOperation(visible, profiles.write, bodies) : undefined,
    delete: verbs.has("delete") ? deleteOperation(visible, profiles.write) : undefined,
  };
}

function readOperation(visible: VisibleTable, profile: readonly ComponentReference[]): TablePathOperation {
  const shared = sharedRefs("select", "order", "limit", "offset", "range", "rangeUnit", "preferRead", "ifNoneMatch");
  const names = visible.selectable.map(({ name }) => name);
  const others = unreservedRefs(names, "search", "distinct", "having", "cursor");
  return {
    ...describeOperation("read", visible),
    parameters: [...filterRefs(visible), ...shared, ...others, ...profile],
    responses: { 200: rowsRef(visible), 206: rowsRef(visible), 304: UNCHANGED_RESPONSE_REF, ...ERRORS.read },
  };
}

function insertOperation(
  visible: VisibleTable,
  profile: readonly ComponentReference[],
  { nested }: WriteBodies,
): TablePathOperation {
  const row = rowRef(visible.table.name, "insert");
  const withRelated = nested.refOf(visible, "nestedInsert");
  return {
    ...describeOperation("insert", visible),
    parameters: [...sharedRefs("select", "columns", "on_conflict", "preferInsert", "idempotencyKey"), ...profile],
    requestBody: {
      required: true,
      content: {
        "application/json": { schema: { anyOf: [row, withRelated].flatMap(rowOrRows) } },
        "application/x-www-form-urlencoded": { schema: row },
        "text/csv": { schema: { type: "string" } },
      },
    },
    // 200 if resolution=merge-duplicates updated existing rows.
    responses: { 200: writtenRef(visible), 201: writtenRef(visible), ...ERRORS.insert },
  };
}

function rowOrRows(row: ComponentReference | null): object[] {
  return row ? [row, { type: "array", items: row }] : [];
}

function replaceOperation(
  visible: VisibleTable,
  profile: readonly ComponentReference[],
  { nested }: WriteBodies,
): TablePathOperation {
  const { table, selectable } = visible;
  const key = selectable.filter(({ name }) => table.primaryKey.includes(name));
  const row = rowRef(table.name, "insert");
  const withRelated = nested.refOf(visible, "nestedUpdate");
  return {
    ...describeOperation("replace", visible),
    parameters: [
      ...rowFilterRefs(table.name, key),
      ...sharedRefs("select", "columns", "preferReplace", "ifMatch", "ifNoneMatch", "idempotencyKey"),
      ...profile,
    ],
    requestBody: {
      required: true,
      content: { "application/json": { schema: withRelated ? { anyOf: [row, withRelated] } : row } },
    },
    responses: { 200: rowsRef(visible), 201: rowsRef(visible), 204: EMPTY_RESPONSE_REF, ...ERRORS.change },
  };
}

const ROWS_BY_KEY = {
  type: "array",
  description: "Each row has the primary key, or the columns of on_conflict, and its own values.",
};

function updateOperation(
  visible: VisibleTable,
  profile: readonly ComponentReference[],
  { operators, nested }: WriteBodies,
): TablePathOperation {
  const row = rowRef(visible.table.name, "update");
  const rows = [row, operators.refOf(visible)].flatMap((each) => (each ? [each, { ...ROWS_BY_KEY, items: each }] : []));
  const withRelated = nested.refOf(visible, "nestedUpdate");
  return {
    ...describeOperation("update", visible),
    parameters: [
      ...filterRefs(visible),
      ...sharedRefs("select", "columns", "on_conflict", "preferUpdate", "ifMatch", "idempotencyKey"),
      ...profile,
    ],
    requestBody: {
      required: true,
      content: {
        "application/json": { schema: { anyOf: withRelated ? [...rows, withRelated] : rows } },
        "application/x-www-form-urlencoded": { schema: row },
        "text/csv": { schema: { type: "string" } },
      },
    },
    responses: { ...changeResponses(visible), ...ERRORS.change },
  };
}

function deleteOperation(visible: VisibleTable, profile: readonly ComponentReference[]): TablePathOperation {
  return {
    ...describeOperation("delete", visible),
    parameters: [
      ...filterRefs(visible),
      ...sharedRefs("select", "preferDelete", "ifMatch", "idempotencyKey"),
      ...profile,
    ],
    responses: { ...changeResponses(visible), ...ERRORS.remove },
  };
}

function describeOperation(verb: string, { table }: VisibleTable): TablePathOperation {
  const { summary, description } = readComment(table.comment);
  return { operationId: `${verb}_${componentKey(table.name)}`, tags: [table.name], summary, description };
}

function filterRefs({ table, selectable }: VisibleTable): ComponentReference[] {
  return [...rowFilterRefs(table.name, selectable), ...sharedRefs("and", "or")];
}

function changeResponses(visible: VisibleTable): object {
  return visible.verbs.has("select") ? { 200: rowsRef(visible), 204: EMPTY_RESPONSE_REF } : { 204: EMPTY_RESPONSE_REF };
}

/** Returns true if PUT is possible: it upserts the row of its primary key, which must be filterable and writable. */
function canReplace({ table, verbs, selectable, insertable, updatable }: VisibleTable): boolean {
  const isUsable = (name: string) => {
    const column = table.columns.get(name)!;
    return column.identity !== "always" && [selectable, insertable, updatable].every((list) => list.includes(column));
  };
  const { primaryKey } = table;
  return verbs.has("insert") && verbs.has("update") && primaryKey.length > 0 && primaryKey.every(isUsable);
}
