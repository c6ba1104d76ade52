import type { Collection } from "../../resource/collections.ts";
import type { CollectionField } from "../../resource/fields.ts";
import { fieldNamed, filterNames } from "../../resource/parse/filters.ts";
import { RESERVED_PARAMETERS } from "../../resource/parse/parameters.ts";
import { componentRef } from "../components.ts";
import type { JsonSchema, SchemaOfType } from "../json-schema.ts";
import components from "./components.json" with { type: "json" };

export type ResourceParameter = keyof typeof components.parameters;

export function parameterRefs(...names: readonly ResourceParameter[]): readonly object[] {
  return names.map((name) => componentRef("parameters", name));
}

export const LIST_PARAMETER_REFS = parameterRefs(
  ...(["fields", "links", "sort", "order", "page", "limit", "size", "skip", "envelope", "ifNoneMatch"] as const),
);

/** Filters: fields and references by equality, and search functions. */
export function filterParameters(collection: Collection, typeSchema: SchemaOfType): readonly object[] {
  const names = filterNames(collection).filter((name) => !RESERVED_PARAMETERS.includes(name));
  return names.map((name) => {
    const field = fieldNamed(name, collection);
    if (!field) return queryParameter(name, "The search text", { type: "string" });
    const items = schemaOfText(field, typeSchema);
    const description = `Rows whose ${field.name} ${field.column.baseType.kind === "array" ? "contains" : "equals"} this value`;
    return { ...queryParameter(name, description, { type: "array", items }), style: "form", explode: true };
  });
}

/** Numbers, booleans and enums have their types; any other value is a text that Postgres parses. */
function schemaOfText({ column }: CollectionField, typeSchema: SchemaOfType): JsonSchema {
  const type = column.baseType.kind === "array" ? column.baseType.element : column.type;
  const { type: kind, enum: choices } = typeSchema(type);
  if (choices) return { type: "string", enum: choices };
  return kind === "integer" || kind === "boolean" || kind === "number" ? { type: kind } : { type: "string" };
}

/** The key of a row in a path: one column, or several separated by commas. */
export function keyParameter(name: string, { key }: Collection, typeSchema: SchemaOfType): object {
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
