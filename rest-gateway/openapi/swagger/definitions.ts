import type { Catalog } from "../../../engine/catalog/catalog.ts";
import type { CatalogColumn, CatalogTable } from "../../../engine/catalog/tables.ts";
import { baseTypeOf, type DataType, type TypeAttribute } from "../../../engine/catalog/types.ts";
import { quotedName } from "../../../engine/pg-client/quoted-name.ts";
import { makeColumnDescriber, readComment } from "../comments.ts";
import { parseLiteral } from "../json-schema.ts";
import type { VisibleSchema, VisibleTable } from "../visible-schema.ts";

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

export function toDefinition({ table, columns }: VisibleTable, viewer: VisibleSchema, catalog: Catalog): object {
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

/** As in PostgREST, columns of views are nullable unless their domain is not. */
function isRequired({ nullable, type }: CatalogColumn, { kind }: CatalogTable): boolean {
  const isView = kind === "view" || kind === "materialized view";
  return isView ? type.kind === "domain" && type.notNull : !nullable;
}

/** As in PostgREST: SQL text for strings, even `now()`; for other types only if it is valid JSON. */
function defaultValue(expression: string | null, typeName: string, viewer: VisibleSchema): unknown {
  if (expression === null) return undefined;
  if (swaggerType(typeName) !== "string") return parseLiteral(expression);
  if (namesHiddenObjects(expression, viewer)) return HIDDEN_DEFAULT;
  const cast = `::${typeName}`;
  const text = expression.endsWith(cast) ? expression.slice(0, -cast.length).replace(/^'+|'+$/g, "") : expression;
  return parseLiteral(`"${text}"`);
}

/** Stands for a default that names invisible objects: clients make columns with a default optional. */
const HIDDEN_DEFAULT = "(expression)";
/** `'api.numbers'::regclass` is a name; other literals are not. */
const LITERAL = /'(?:[^']|'')*'(?!::reg)/g;
const QUALIFIER = /(?:"(?<quoted>(?:[^"]|"")+)"|(?<plain>[a-z_][\w$]*))\./gi;

/** Expressions of the catalog qualify all names outside pg_catalog. */
function namesHiddenObjects(expression: string, viewer: VisibleSchema): boolean {
  for (const { groups } of expression.replace(LITERAL, "''").matchAll(QUALIFIER)) {
    const schema = groups!.quoted?.replaceAll('""', '"') ?? groups!.plain!;
    if (!viewer.mayUseSchema(schema)) return true;
  }
  return false;
}

type SwaggerType = "string" | "boolean" | "integer" | "number" | "array";

/** The Swagger type of an SQL type; json has none, because it can be anything. */
export function swaggerType(sqlName: string): SwaggerType | undefined {
  if (sqlName === "json" || sqlName === "jsonb") return undefined;
  return TYPES.get(sqlName) ?? (sqlName.endsWith("[]") ? "array" : "string");
}

/** The SQL type, except for integers, which have formats in Swagger. */
export function swaggerFormat(sqlName: string): string {
  return INTEGER_FORMATS.get(sqlName) ?? sqlName;
}

/** `items` of an array type. */
export function itemsOf(sqlName: string): object | undefined {
  return swaggerType(sqlName) === "array" ? { type: swaggerType(elementOf(sqlName)) } : undefined;
}

export function elementOf(sqlName: string): string {
  return sqlName.slice(0, -2);
}

/** A column's type without modifiers, and the base type of a domain. */
function columnTypeName({ type, sqlType }: Pick<TypeAttribute, "type" | "sqlType">, viewer: VisibleSchema): string {
  const base = baseTypeOf(type);
  return hiddenRowType(base, viewer) ?? (base.schema === "pg_catalog" ? base.sqlName : sqlType);
}

/** An argument's type, unqualified if its schema is on the search path. */
export function argumentTypeName(
  type: DataType,
  { catalog, viewer }: { catalog: Catalog; viewer: VisibleSchema },
): string {
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
