import type { ParameterValue } from "#postgres/statement";

/** Converts a value to Postgres's text format, as node-postgres does. */
export function toPgText(value: unknown): ParameterValue {
  switch (typeof value) {
    case "string":
      return value;
    case "number":
    case "bigint":
      return String(value);
    case "boolean":
      return value ? "true" : "false";
    default:
      return value === null || value === undefined ? null : objectToPgText(value as object);
  }
}

function objectToPgText(value: object): ParameterValue {
  if (Buffer.isBuffer(value)) return `\\x${value.toString("hex")}`;
  if (value instanceof Date) return value.toISOString();
  return Array.isArray(value) ? arrayLiteral(value) : JSON.stringify(value);
}

/** `{1,"a \"quoted\" word",NULL,{2}}` */
function arrayLiteral(items: readonly unknown[]): string {
  return `{${items.map((item) => (Array.isArray(item) ? arrayLiteral(item) : arrayElement(toPgText(item))))}}`;
}

function arrayElement(text: ParameterValue): string {
  return text === null ? "NULL" : `"${String(text).replace(/["\\]/g, "\\$&")}"`;
}
