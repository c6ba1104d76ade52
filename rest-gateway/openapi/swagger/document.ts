import type { Catalog } from "../../../engine/catalog/catalog.ts";
import type { Routine, RoutineArgument } from "../../../engine/catalog/routines.ts";
import type { CatalogColumn, CatalogTable } from "../../../engine/catalog/tables.ts";
import { readComment } from "../comments.ts";
import { RESERVED_NAMES } from "../table/parameters.ts";
import { type TableDocumentOptions, type VisibleSchema, viewSchema } from "../visible-schema.ts";
import type { OpenApiDocument } from "../written-document.ts";
import { argumentTypeName, elementOf, itemsOf, swaggerFormat, swaggerType, toDefinition } from "./definitions.ts";

const RETURN_PREFERENCES = ["return=representation", "return=minimal", "return=none"];

/** Names and descriptions are PostgREST's. */
const SHARED_PARAMETERS: readonly (readonly [string, object])[] = [
  ["preferParams", headerTextParameter("Prefer", "Preference")],
  ["preferReturn", { ...headerTextParameter("Prefer", "Preference"), enum: RETURN_PREFERENCES }],
  ["preferCount", { ...headerTextParameter("Prefer", "Preference"), enum: ["count=none"] }],
  [
    "preferPost",
    {
      ...headerTextParameter("Prefer", "Preference"),
      enum: [...RETURN_PREFERENCES, "resolution=ignore-duplicates", "resolution=merge-duplicates"],
    },
  ],
  ["select", queryTextParameter("select", "Filtering Columns")],
  ["on_conflict", queryTextParameter("on_conflict", "On Conflict")],
  ["order", queryTextParameter("order", "Ordering")],
  ["range", headerTextParameter("Range", "Limiting and Pagination")],
  ["rangeUnit", { ...headerTextParameter("Range-Unit", "Limiting and Pagination"), default: "items" }],
  ["offset", queryTextParameter("offset", "Limiting and Pagination")],
  ["limit", queryTextParameter("limit", "Limiting and Pagination")],
]; /** The PostgREST release that responses are compatible with. supabase-js infers types by it. */
export const POSTGREST_VERSION = "14.0";

const ROUTINE_MEDIA_TYPES = [
  "application/json",
  "application/vnd.pgrst.object+json;nulls=stripped",
  "application/vnd.pgrst.object+json",
];

const MEDIA_TYPES = [
  "application/json",
  "application/vnd.pgrst.object+json;nulls=stripped",
  "application/vnd.pgrst.object+json",
  "text/csv",
];

/** The table interface in Swagger 2.0, as PostgREST describes itself; docs/table-interface.md lists the differences. */
export async function makeSwaggerDocument(subject: TableDocumentOptions): Promise<OpenApiDocument> {
  const { catalog, serverUrl, securityActive } = subject;
  const viewer = await viewSchema(subject);
  const { summary, description } = readComment(viewer.schema?.comment ?? null);
  return {
    swagger: "2.0",
    info: {
      title: summary ?? "Table interface",
      description: summary ? (description ?? "") : "Tables, views and functions, made from the database.",
      version: POSTGREST_VERSION,
    },
    ...serverFields(serverUrl),
    consumes: MEDIA_TYPES,
    produces: MEDIA_TYPES,
    paths: function* () {
      yield ["/", ROOT];
      for (const { table, columns } of viewer.tables) yield [`/${table.name}`, tablePath(table, columns)];
      for (const overloads of viewer.routines) {
        yield [`/rpc/${overloads[0]!.name}`, routinePath(pickOverload(overloads), { catalog, viewer })];
      }
    },
    definitions: function* () {
      for (const visible of viewer.tables) yield [visible.table.name, toDefinition(visible, viewer, catalog)];
    },
    parameters: function* () {
      yield* SHARED_PARAMETERS;
      for (const { table, columns } of viewer.tables) yield* tableParameters(table, columns);
    },
    securityDefinitions: securityActive ? SECURITY_DEFINITIONS : undefined,
    security: securityActive ? [{ JWT: [] }] : undefined,
    externalDocs: {
      description: "PostgREST Documentation",
      url: "https://postgrest.org/en/v14/references/api.html",
    },
  };
}

/** A path has one description: that of the overload with the most arguments, then with the last names. */
function pickOverload(overloads: readonly Routine[]): Routine {
  const namesOf = ({ arguments: given }: Routine) => given.map(({ name }) => name ?? "").join();
  const inOrder = (a: Routine, b: Routine) =>
    a.arguments.length - b.arguments.length || Number(namesOf(a) > namesOf(b)) - Number(namesOf(a) < namesOf(b));
  return overloads.toSorted(inOrder).at(-1)!;
}

/** Without an absolute URL, host and scheme are those that served the document. */
function serverFields(serverUrl: string): object {
  const url = URL.parse(serverUrl);
  if (!url) return { basePath: serverUrl };
  const scheme = url.protocol.slice(0, -1);
  const port = url.port || (scheme === "https" ? "443" : "80");
  return { host: `${url.hostname}:${port}`, basePath: url.pathname, schemes: [scheme] };
}

const ROOT = {
  get: {
    tags: ["Introspection"],
    summary: "OpenAPI description (this document)",
    produces: ["application/openapi+json", "application/json"],
    responses: { 200: { description: "OK" } },
  },
};

const SECURITY_DEFINITIONS = {
  JWT: {
    description: 'Add the token prepending "Bearer " (without quotes) to it',
    type: "apiKey",
    name: "Authorization",
    in: "header",
  },
};

/** All writing methods if the table supports any of them, whatever the role may do. */
function tablePath(table: CatalogTable, columns: readonly CatalogColumn[]): object {
  const { name, comment, insertable, updatable, deletable } = table;
  const { summary, description } = readComment(comment);
  const about = { tags: [name], summary, description };
  const parameters = (...keys: readonly string[]) => keys.map((key) => swaggerRef("parameters", key));
  const filters = rowFilterKeys(table, columns);

  const get = {
    ...about,
    parameters: parameters(...filters, "select", "order", "range", "rangeUnit", "offset", "limit", "preferCount"),
    responses: {
      200: { description: "OK", schema: { items: swaggerRef("definitions", name), type: "array" } },
      206: { description: "Partial Content" },
    },
  };
  if (!insertable && !updatable && !deletable) return { get };

  const post = {
    ...about,
    parameters: parameters(`body.${name}`, "select", "preferPost"),
    responses: { 201: { description: "Created" } },
  };
  const done = { 204: { description: "No Content" } };
  const remove = { ...about, parameters: parameters(...filters, "preferReturn"), responses: done };
  const patch = { ...about, parameters: parameters(...filters, `body.${name}`, "preferReturn"), responses: done };
  return { get, post, delete: remove, patch };
}

type SwaggerContext = { readonly catalog: Catalog; readonly viewer: VisibleSchema };

function routinePath(routine: Routine, context: SwaggerContext): object {
  const { name, comment, volatility, arguments: given } = routine;
  const { summary, description } = readComment(comment);
  const typeNameOf = ({ type }: RoutineArgument) => argumentTypeName(type, context);
  const about = { tags: [`(rpc) ${name}`], summary, description, produces: ROUTINE_MEDIA_TYPES };
  const responses = { 200: { description: "OK" } };
  const args = { in: "body", name: "args", required: true, schema: bodySchema(routine, typeNameOf) };
  const post = { ...about, parameters: [args, swaggerRef("parameters", "preferParams")], responses };
  if (volatility === "volatile") return { post };

  const parameters = given.map((argument) => argumentParameter(argument, typeNameOf(argument)));
  return { get: { ...about, parameters: parameters.length > 0 ? parameters : undefined, responses }, post };
}

function bodySchema({ comment, arguments: given }: Routine, typeNameOf: (argument: RoutineArgument) => string): object {
  const required = given.filter((argument) => argument.required).map(argumentName);
  const properties = given.map((argument) => {
    const typeName = typeNameOf(argument);
    return [
      argumentName(argument),
      { format: swaggerFormat(typeName), type: swaggerType(typeName), items: itemsOf(typeName) },
    ];
  });
  return {
    description: readComment(comment).text,
    required: required.length > 0 ? required : undefined,
    properties: given.length > 0 ? Object.fromEntries(properties) : undefined,
    type: "object",
  };
}

function argumentParameter(argument: RoutineArgument, typeName: string): object {
  const base = { name: argumentName(argument), required: argument.required, in: "query" };
  if (argument.mode === "variadic") {
    const element = elementOf(typeName);
    const items = { format: swaggerFormat(element), type: swaggerType(element) };
    return { ...base, type: "array", items, collectionFormat: "multi" };
  }
  const type = swaggerType(typeName) ?? "string";
  // Arrays are written {a,b} in a query.
  return { ...base, format: swaggerFormat(typeName), type: type === "array" ? "string" : type };
}

function argumentName({ name }: RoutineArgument): string {
  return name ?? "";
}

function* tableParameters({ name }: CatalogTable, columns: readonly CatalogColumn[]): Generator<[string, object]> {
  const schema = swaggerRef("definitions", name);
  yield [`body.${name}`, { name, description: name, required: false, in: "body", schema }];
  for (const column of filterable(columns)) {
    yield [rowFilterKey(name, column.name), queryTextParameter(column.name, readComment(column.comment).text)];
  }
}

function rowFilterKeys({ name }: CatalogTable, columns: readonly CatalogColumn[]): string[] {
  return filterable(columns).map((column) => rowFilterKey(name, column.name));
}

function filterable(columns: readonly CatalogColumn[]): readonly CatalogColumn[] {
  return columns.filter(({ name }) => !RESERVED_NAMES.has(name));
}

function rowFilterKey(table: string, column: string): string {
  return `rowFilter.${table}.${column}`;
}

type SwaggerReference = { readonly $ref: string };

function swaggerRef(section: "definitions" | "parameters", key: string): SwaggerReference {
  const pointer = key.replaceAll("~", "~0").replaceAll("/", "~1");
  return { $ref: `#/${section}/${encodeURIComponent(pointer)}` };
}

function queryTextParameter(name: string, description: string | undefined) {
  return { name, description, required: false, in: "query", type: "string" };
}

function headerTextParameter(name: string, description: string) {
  return { name, description, required: false, in: "header", type: "string" };
}
