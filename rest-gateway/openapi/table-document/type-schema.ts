import type { Catalog } from "../../../engine/catalog/catalog.ts";
import type { Attribute, BaseType, CompositeType, DataType } from "../../../engine/catalog/types.ts";
import { memoized } from "../../../engine/memoized.ts";
import type { Viewer } from "../viewer.ts";

export type Schema = { readonly [keyword: string]: unknown };
export type TypeSchema = (type: DataType) => Schema;

/** What Postgres's JSON of a value looks like, null aside. */
const BASE_TYPES: Readonly<Record<string, Schema>> = {
  bool: { type: "boolean" },
  int2: { type: "integer", format: "int16" },
  int4: { type: "integer", format: "int32" },
  int8: { type: "integer", format: "int64" },
  float4: { type: "number", format: "float" },
  float8: { type: "number", format: "double" },
  numeric: { type: "number", format: "decimal" },
  text: { type: "string" },
  varchar: { type: "string" },
  bpchar: { type: "string" },
  name: { type: "string" },
  uuid: { type: "string", format: "uuid" },
  date: { type: "string", format: "date" },
  timestamptz: { type: "string", format: "date-time" },
  timestamp: { type: "string", format: "date-time-local" },
  time: { type: "string", format: "time-local" },
  json: {},
  jsonb: {},
};

/** Types of extensions, wherever those were put. */
const EXTENSION_TYPES: Readonly<Record<string, Schema>> = {
  citext: { type: "string" },
  hstore: { type: "object", additionalProperties: { type: ["string", "null"] } },
  geometry: { type: "object", description: "GeoJSON" },
};

export function makeTypeSchemas({ representations }: Pick<Catalog, "representations">, viewer: Viewer): TypeSchema {
  // A cast to json makes anything of a value.
  const represented = new Set(representations.filter(({ target }) => target === "json").map(({ source }) => source));

  const schemaOf: TypeSchema = memoized((type: DataType): Schema => {
    switch (type.kind) {
      case "base":
        return baseSchema(type);
      case "pseudo":
        return type.name === "record" ? { type: "object" } : {};
      case "enum":
        return { type: "string", enum: type.values };
      case "array":
        return { type: "array", items: orNull(schemaOf(type.element)) };
      case "range":
      case "multirange":
        return { type: "string", format: type.sqlName };
      case "domain":
        return represented.has(type.sqlName) ? {} : withMaxLength(schemaOf(type.over), type.maxLength);
      case "composite":
        return objectSchema(visibleAttributes(type, viewer), schemaOf);
    }
  });
  return schemaOf;
}

/** Of a table's row type: the columns that the role may know. */
function visibleAttributes({ table, attributes }: CompositeType, viewer: Viewer): Iterable<Attribute> {
  if (!table || !viewer.mayKnow(table)) return table ? [] : attributes.values();
  return viewer.see(table)?.columns ?? attributes.values();
}

export function objectSchema(attributes: Iterable<Attribute>, schemaOf: TypeSchema): Schema {
  const properties = [...attributes].map(({ name, type }) => [name, orNull(schemaOf(type))]);
  return { type: "object", properties: Object.fromEntries(properties) };
}

function baseSchema({ schema, name, sqlName }: BaseType): Schema {
  const known = schema === "pg_catalog" ? BASE_TYPES : EXTENSION_TYPES;
  return Object.hasOwn(known, name) ? known[name]! : { type: "string", format: sqlName };
}

export function withMaxLength(schema: Schema, maxLength: number | null): Schema {
  return maxLength === null || schema.type !== "string" ? schema : { ...schema, maxLength };
}

/** The schema of a value that may be null as well. */
export function orNull(schema: Schema): Schema {
  if (schema.type === undefined) return schema;
  const nullable = { ...schema, type: [schema.type, "null"] };
  return Array.isArray(schema.enum) ? { ...nullable, enum: [...schema.enum, null] } : nullable;
}
