import type { Value } from "../../engine/database/statement.ts";

/** A value of a plan as Postgres's text format has it: what node-postgres would send. */
export function toText(value: unknown): Value {
  switch (typeof value) {
    case "string":
      return value;
    case "number":
    case "bigint":
      return String(value);
    case "boolean":
      return value ? "true" : "false";
    default:
      return value === null || value === undefined ? null : ofObject(value as object);
  }
}

function ofObject(value: object): Value {
  if (Buffer.isBuffer(value)) return `\\x${value.toString("hex")}`;
  if (value instanceof Date) return value.toISOString();
  return Array.isArray(value) ? arrayLiteral(value) : JSON.stringify(value);
}

/** `{1,"a \"quoted\" word",NULL,{2}}` */
function arrayLiteral(items: readonly unknown[]): string {
  return `{${items.map((item) => (Array.isArray(item) ? arrayLiteral(item) : element(toText(item))))}}`;
}

function element(text: Value): string {
  return text === null ? "NULL" : `"${String(text).replace(/["\\]/g, "\\$&")}"`;
}
