import type { Schema } from "../openapi/table-document/type-schema.ts";

/** A JSON object of these fields. */
export function object(
  required: Readonly<Record<string, Schema>>,
  optional: Readonly<Record<string, Schema>> = {},
): Schema {
  return { type: "object", properties: { ...required, ...optional }, required: Object.keys(required) };
}
