import type { Catalog } from "../../../engine/catalog/catalog.ts";
import type { Column } from "../../../engine/catalog/columns.ts";
import type { Table } from "../../../engine/catalog/tables.ts";
import { readComment } from "../comment.ts";
import { parseLiteral } from "../json-literal.ts";
import { makeColumnDescriber } from "../key-note.ts";
import type { Viewer, VisibleTable } from "../viewer.ts";
import { columnTypeName, itemsOf, swaggerFormat, swaggerType } from "./swagger-type.ts";

export function definition({ table, columns }: VisibleTable, viewer: Viewer, catalog: Catalog): object {
  const describe = makeColumnDescriber(table, viewer, catalog);
  const required = columns.filter((column) => isRequired(column, table)).map(({ name }) => name);
  const properties = columns.map((column) => [column.name, property(column, describe(column), viewer)]);
  return {
    description: readComment(table.comment).text,
    required: required.length > 0 ? required : undefined,
    properties: columns.length > 0 ? Object.fromEntries(properties) : undefined,
    type: "object",
  };
}

function property(column: Column, description: string | undefined, viewer: Viewer): object {
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

/** To PostgREST a view's columns are nullable, unless their domain says otherwise. */
function isRequired({ nullable, type }: Column, { kind }: Table): boolean {
  const isView = kind === "view" || kind === "materialized view";
  return isView ? type.kind === "domain" && type.notNull : !nullable;
}

/** Text as it stands in SQL, even `now()`; anything else when it happens to be JSON. */
function defaultValue(expression: string | null, typeName: string, viewer: Viewer): unknown {
  if (expression === null) return undefined;
  if (swaggerType(typeName) !== "string") return parseLiteral(expression);
  if (namesHiddenThings(expression, viewer)) return HIDDEN;
  const cast = `::${typeName}`;
  const text = expression.endsWith(cast) ? expression.slice(0, -cast.length).replace(/^'+|'+$/g, "") : expression;
  return parseLiteral(`"${text}"`);
}

/** That there is a default may be told: clients take a column with one for optional. */
const HIDDEN = "(expression)";
/** `'api.numbers'::regclass` is a name; other literals are not. */
const LITERAL = /'(?:[^']|'')*'(?!::reg)/g;
const QUALIFIER = /(?:"(?<quoted>(?:[^"]|"")+)"|(?<plain>[a-z_][\w$]*))\./gi;

/** The catalogue's expressions qualify whatever is not Postgres's own. */
function namesHiddenThings(expression: string, viewer: Viewer): boolean {
  for (const { groups } of expression.replace(LITERAL, "''").matchAll(QUALIFIER)) {
    const schema = groups!.quoted?.replaceAll('""', '"') ?? groups!.plain!;
    if (!viewer.maySeeInto(schema)) return true;
  }
  return false;
}
