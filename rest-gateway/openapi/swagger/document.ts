import {
  baseTypeOf,
  type Catalog,
  type CatalogColumn,
  type CatalogTable,
  type DataType,
  type Routine,
  type RoutineArgument,
  type TypeAttribute,
} from "#catalog";
import { quotedName } from "#postgres/client";
import { escapePointer } from "#runtime/json";
import { makeColumnDescriber, readComment } from "../document/comments.ts";
import { parseLiteral } from "../document/json-schema.ts";
import type { OpenApiDocument } from "../document/printed-document.ts";
import {
  type TableDocumentOptions,
  type VisibleSchema,
  type VisibleTable,
  viewSchema,
} from "../document/visible-schema.ts";
import { RESERVED_NAMES } from "../table/components.ts";

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

/** Returns the overload that describes the path: the one with the most arguments, then with the last names. */
function pickOverload(overloads: readonly Routine[]): Routine {
  const namesOf = ({ arguments: given }: Routine) => given.map(({ name }) => name ?? "").join();
  const inOrder = (a: Routine, b: Routine) =>
    a.arguments.length - b.arguments.length || Number(namesOf(a) > namesOf(b)) - Number(namesOf(a) < namesOf(b));
  return overloads.toSorted(inOrder).at(-1)!;
}

/** Returns host and scheme; without an absolute URL, those that served the document. */
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

/** Returns the path of a table, with all writing methods if the table supports any of them, whatever the role's privileges are. */
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
  return { $ref: `#/${section}/${encodeURIComponent(escapePointer(key))}` };
}

function queryTextParameter(name: string, description: string | undefined) {
  return { name, description, required: false, in: "query", type: "string" };
}

function headerTextParameter(name: string, description: string) {
  return { name, description, required: false, in: "header", type: "string" };
}

const TYPES: ReadonlyMap<string, SwaggerType> = new Map([
  ["boolean", "boolean"],
  ["smallint", "integer"],
  ["integer", "integer"],
  ["bigint", "integer"],
  ["numeric", "number"],
  ["real", "number"],
  ["double precision", "number"],
]);

const INTEGER_FORMATS: ReadonlyMap<string, string> = new Map([
  ["smallint", "int32"],
  ["integer", "int32"],
  ["bigint", "int64"],
]);

function toDefinition({ table, columns }: VisibleTable, viewer: VisibleSchema, catalog: Catalog): object {
  const describe = makeColumnDescriber(table, viewer, catalog);
  const required = columns.filter((column) => isRequired(column, table)).map(({ name }) => name);
  const properties = columns.map((column) => [column.name, toProperty(column, describe(column), viewer)]);
  return {
    description: readComment(table.comment).text,
    required: required.length > 0 ? required : undefined,
    properties: columns.length > 0 ? Object.fromEntries(properties) : undefined,
    type: "object",
  };
}

function toProperty(column: CatalogColumn, description: string | undefined, viewer: VisibleSchema): object {
  const typeName = columnTypeName(column, viewer);
  return {
    default: defaultValue(column.default, typeName, viewer),
    description,
    enum: column.baseType.kind === "enum" ? column.baseType.values : undefined,
    format: swaggerFormat(typeName),
    maxLength: column.maxLength ?? undefined,
    type: swaggerType(typeName),
    items: itemsOf(typeName),
  };
}

/** Returns true if the column is required. As in PostgREST, columns of views are nullable unless their domain is not. */
function isRequired({ nullable, type }: CatalogColumn, { kind }: CatalogTable): boolean {
  const isView = kind === "view" || kind === "materialized view";
  return isView ? type.kind === "domain" && type.notNull : !nullable;
}

/** Returns the default as in PostgREST: SQL text for strings, even `now()`; for other types only if it is valid JSON. */
function defaultValue(expression: string | null, typeName: string, viewer: VisibleSchema): unknown {
  if (expression === null) return undefined;
  if (swaggerType(typeName) !== "string") return parseLiteral(expression);
  if (namesHiddenObjects(expression, viewer)) return HIDDEN_DEFAULT;
  const cast = `::${typeName}`;
  const text = expression.endsWith(cast) ? expression.slice(0, -cast.length).replace(/^'+|'+$/g, "") : expression;
  return parseLiteral(`"${text}"`);
}

/** The replacement for a default that names invisible objects: clients make columns with a default optional. */
const HIDDEN_DEFAULT = "(expression)";
/** A literal. `'api.numbers'::regclass` is a name; other literals are not. */
const LITERAL = /'(?:[^']|'')*'(?!::reg)/g;
const QUALIFIER = /(?:"(?<quoted>(?:[^"]|"")+)"|(?<plain>[a-z_][\w$]*))\./gi;

/** Returns true if the expression names invisible objects. Expressions of the catalog qualify all names outside pg_catalog. */
function namesHiddenObjects(expression: string, viewer: VisibleSchema): boolean {
  for (const { groups } of expression.replace(LITERAL, "''").matchAll(QUALIFIER)) {
    const schema = groups!.quoted?.replaceAll('""', '"') ?? groups!.plain!;
    if (!viewer.mayUseSchema(schema)) return true;
  }
  return false;
}

type SwaggerType = "string" | "boolean" | "integer" | "number" | "array";

/** Returns the Swagger type of an SQL type; json has none, because it can be anything. */
function swaggerType(sqlName: string): SwaggerType | undefined {
  if (sqlName === "json" || sqlName === "jsonb") return undefined;
  return TYPES.get(sqlName) ?? (sqlName.endsWith("[]") ? "array" : "string");
}

/** Returns the SQL type, except for integers, which have formats in Swagger. */
function swaggerFormat(sqlName: string): string {
  return INTEGER_FORMATS.get(sqlName) ?? sqlName;
}

/** Returns `items` of an array type. */
function itemsOf(sqlName: string): object | undefined {
  return swaggerType(sqlName) === "array" ? { type: swaggerType(elementOf(sqlName)) } : undefined;
}

function elementOf(sqlName: string): string {
  return sqlName.slice(0, -2);
}

/** Returns a column's type without modifiers, or the base type of a domain. */
function columnTypeName({ type, sqlType }: Pick<TypeAttribute, "type" | "sqlType">, viewer: VisibleSchema): string {
  const base = baseTypeOf(type);
  return hiddenRowType(base, viewer) ?? (base.schema === "pg_catalog" ? base.sqlName : sqlType);
}

/** Returns an argument's type, unqualified if its schema is on the search path. */
function argumentTypeName(type: DataType, { catalog, viewer }: { catalog: Catalog; viewer: VisibleSchema }): string {
  const { schema, sqlName } = type;
  const hidden = hiddenRowType(type, viewer);
  if (hidden) return hidden;
  const isOnPath = schema === viewer.schema?.name || catalog.schemas.get(schema)?.exposed === false;
  if (!isOnPath) return sqlName;
  const qualifier = [`${schema}.`, `${quotedName(schema)}.`].find((prefix) => sqlName.startsWith(prefix));
  return sqlName.slice(qualifier?.length ?? 0);
}

/** Hides the row type of an invisible table, which has the table's name. */
function hiddenRowType(type: DataType, viewer: VisibleSchema): string | null {
  switch (type.kind) {
    case "array":
      return hiddenRowType(type.element, viewer) && "record[]";
    case "domain":
      return hiddenRowType(type.over, viewer);
    case "composite":
      return type.table && !viewer.mayName(type.table) ? "record" : null;
    default:
      return null;
  }
}
