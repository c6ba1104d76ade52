import {
  type BaseType,
  baseTypeOf,
  type Catalog,
  type CatalogColumn,
  type CompositeType,
  type DataType,
  type TypeAttribute,
} from "#catalog";
import { memoize } from "#runtime";
import type { VisibleSchema } from "./visible-schema.ts";

/** Matches `'draft'::character varying`, `'-1'::integer`, `0` and `true`. */
const LITERAL =
  /^(?:'(?<quoted>(?:[^'\\]|'')*)'|(?<bare>-?\d+(?:\.\d+)?|true|false))(?:::[^'()]+(?:\(\d+(?:,\d+)?\))?(?:\[\])?)?$/;

export type JsonSchema = { readonly [keyword: string]: unknown };
export type SchemaOfType = (type: DataType) => JsonSchema;

/** The schema of Postgres's JSON for a type, except null. */
const BASE_TYPES: Readonly<Record<string, JsonSchema>> = {
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

/** Types of extensions, in whatever schema. */
const EXTENSION_TYPES: Readonly<Record<string, JsonSchema>> = {
  citext: { type: "string" },
  hstore: { type: "object", additionalProperties: { type: ["string", "null"] } },
  geometry: { type: "object", description: "GeoJSON" },
};

export function makeSchemaOfType(
  { representations }: Pick<Catalog, "representations">,
  viewer: VisibleSchema,
): SchemaOfType {
  // A cast to json can return anything.
  const represented = new Set(representations.filter(({ target }) => target === "json").map(({ source }) => source));

  const schemaOf: SchemaOfType = memoize((type: DataType): JsonSchema => {
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
        return attributesSchema(visibleAttributes(type, viewer), schemaOf);
    }
  });
  return schemaOf;
}

/** Returns the columns of a table's row type that the role may know. */
function visibleAttributes({ table, attributes }: CompositeType, viewer: VisibleSchema): Iterable<TypeAttribute> {
  if (!table || !viewer.mayName(table)) return table ? [] : attributes.values();
  return viewer.findVisible(table)?.columns ?? attributes.values();
}

export function attributesSchema(attributes: Iterable<TypeAttribute>, schemaOf: SchemaOfType): JsonSchema {
  const properties = [...attributes].map(({ name, type }) => [name, orNull(schemaOf(type))]);
  return { type: "object", properties: Object.fromEntries(properties) };
}

function baseSchema({ schema, name, sqlName }: BaseType): JsonSchema {
  const schemasByType = schema === "pg_catalog" ? BASE_TYPES : EXTENSION_TYPES;
  return Object.hasOwn(schemasByType, name) ? schemasByType[name]! : { type: "string", format: sqlName };
}

export function withMaxLength(schema: JsonSchema, maxLength: number | null): JsonSchema {
  return maxLength === null || schema.type !== "string" ? schema : { ...schema, maxLength };
}

/** The schema of a nullable value. */
export function orNull(schema: JsonSchema): JsonSchema {
  if (schema.type === undefined) return schema;
  const nullable = { ...schema, type: [schema.type, "null"] };
  return Array.isArray(schema.enum) ? { ...nullable, enum: [...schema.enum, null] } : nullable;
}

/** The schema of a column's values. */
export function columnSchema({ type, maxLength, nullable }: CatalogColumn, typeSchema: SchemaOfType): JsonSchema {
  const value = withMaxLength(typeSchema(type), maxLength);
  return nullable ? orNull(value) : value;
}

/** A constant default as JSON; undefined for expressions. */
export function defaultValue(expression: string | null, type: DataType): unknown {
  const literal = LITERAL.exec(expression ?? "")?.groups;
  if (!literal) return undefined;
  const text = literal.quoted?.replaceAll("''", "'") ?? literal.bare!;
  return readLiteral(text, baseTypeOf(type));
}

/** Describes the default in the text: openapi-typescript and others make a property with `default` required. */
export function describeDefault(description: string | undefined, value: unknown): string | undefined {
  if (value === undefined) return description;
  return [description, `Default: \`${JSON.stringify(value)}\``].filter((part) => part !== undefined).join("\n\n");
}

function readLiteral(text: string, type: DataType): unknown {
  if (type.kind === "enum" || type.kind === "range" || type.kind === "multirange") return text;
  if (type.kind === "array") return text === "{}" ? [] : undefined;
  if (type.kind !== "base") return undefined;
  switch (type.name) {
    case "bool":
      return /^(true|t)$/.test(text) ? true : /^(false|f)$/.test(text) ? false : undefined;
    case "int2":
    case "int4":
    case "int8":
    case "float4":
    case "float8":
    case "numeric":
      // A number that JavaScript would round is omitted.
      return String(Number(text)) === text ? Number(text) : undefined;
    case "json":
    case "jsonb":
      return parseLiteral(text);
    default:
      return text;
  }
}

/** Parses JSON; undefined if it is invalid. */
export function parseLiteral(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The schema of a JSON object. */
export function objectOf(
  required: Readonly<Record<string, JsonSchema>>,
  optional: Readonly<Record<string, JsonSchema>> = {},
): JsonSchema {
  return { type: "object", properties: { ...required, ...optional }, required: Object.keys(required) };
}
