import type { Catalog } from "../../../engine/catalog/catalog.ts";
import { type Attribute, baseTypeOf, type DataType } from "../../../engine/catalog/types.ts";
import { quotedName } from "../../../engine/quoted-name.ts";
import type { Viewer } from "../viewer.ts";

type SwaggerType = "string" | "boolean" | "integer" | "number" | "array";

const TYPES: ReadonlyMap<string, SwaggerType> = new Map([
  ["boolean", "boolean"],
  ["smallint", "integer"],
  ["integer", "integer"],
  ["bigint", "integer"],
  ["numeric", "number"],
  ["real", "number"],
  ["double precision", "number"],
]);

/** By the name of the type in SQL; json can be anything, and has none. */
export function swaggerType(sqlName: string): SwaggerType | undefined {
  if (sqlName === "json" || sqlName === "jsonb") return undefined;
  return TYPES.get(sqlName) ?? (sqlName.endsWith("[]") ? "array" : "string");
}

const INTEGER_FORMATS: ReadonlyMap<string, string> = new Map([
  ["smallint", "int32"],
  ["integer", "int32"],
  ["bigint", "int64"],
]);

/** The name of the type in SQL, but for integers, of which Swagger itself knows formats. */
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

/** A column's type without modifiers: clients know `character varying`, whatever its length, and a domain by what it is made of. */
export function columnTypeName({ type, sqlType }: Pick<Attribute, "type" | "sqlType">, viewer: Viewer): string {
  const base = baseTypeOf(type);
  return hiddenRow(base, viewer) ?? (base.schema === "pg_catalog" ? base.sqlName : sqlType);
}

/** An argument's type as it is called where the function is: not qualified when it is on the search path. */
export function argumentTypeName(type: DataType, { catalog, viewer }: { catalog: Catalog; viewer: Viewer }): string {
  const { schema, sqlName } = type;
  const hidden = hiddenRow(type, viewer);
  if (hidden) return hidden;
  const isOnPath = schema === viewer.schema?.name || catalog.schemas.get(schema)?.exposed === false;
  if (!isOnPath) return sqlName;
  const qualifier = [`${schema}.`, `${quotedName(schema)}.`].find((prefix) => sqlName.startsWith(prefix));
  return sqlName.slice(qualifier?.length ?? 0);
}

/** The row type of a table that is not to be seen bears its name. */
function hiddenRow(type: DataType, viewer: Viewer): string | null {
  switch (type.kind) {
    case "array":
      return hiddenRow(type.element, viewer) && "record[]";
    case "domain":
      return hiddenRow(type.over, viewer);
    case "composite":
      return type.table && !viewer.mayKnow(type.table) ? "record" : null;
    default:
      return null;
  }
}
