import { shortenText } from "#runtime";
import { isJsonObject, type JsonObject } from "#runtime/json";
import { callGeneric } from "./catalogue-tools.ts";
import type { McpSurface, ToolOperation } from "./surface.ts";
import { ArgumentError } from "./tool-requests.ts";

const MAX_VALUE_LENGTH = 100;

/**
 * Returns the question for the user before a call, or null. An update or delete whose conditions are not the key of one row
 * may change more than the user expects.
 */
export function confirmationOf(operation: ToolOperation, given: JsonObject, surface: McpSurface): string | null {
  if (operation.kind === "generic") {
    const found = findOperation(operation.name, given, surface);
    return found && confirmationOf(found.operation, found.given, surface);
  }
  if (operation.kind !== "table" || (operation.verb !== "update" && operation.verb !== "delete")) return null;
  const { table } = operation.visible;
  const where = Array.isArray(given.where) ? given.where.filter(isJsonObject) : [];
  if (where.length === 0 || namesOneRow(where, table.primaryKey)) return null;
  const set = operation.verb === "update" ? ` Set ${setText(given.set)}.` : "";
  const verb = operation.verb === "update" ? "Update" : "Delete";
  return `${verb} all rows of ${table.schema}.${table.name} where ${where.map(conditionText).join(" and ")}?${set}`;
}

/** Finds the operation; null if the arguments are wrong, which the call reports. */
function findOperation(name: Parameters<typeof callGeneric>[0], given: JsonObject, surface: McpSurface) {
  try {
    const found = callGeneric(name, given, surface);
    return found.kind === "operation" ? found : null;
  } catch (error) {
    if (error instanceof ArgumentError) return null;
    throw error;
  }
}

function namesOneRow(where: readonly JsonObject[], key: readonly string[]): boolean {
  const isFixed = (name: string) => where.some(({ column, operator = "eq" }) => column === name && operator === "eq");
  return key.length > 0 && key.every(isFixed);
}

function conditionText({ column, operator = "eq", value }: JsonObject): string {
  return `${column} ${operator} ${valueText(value)}`;
}

function setText(set: unknown): string {
  const values = isJsonObject(set) ? Object.entries(set) : [];
  return `{${values.map(([column, value]) => `${JSON.stringify(column)}:${valueText(value)}`).join(",")}}`;
}

/** Shortens each value by itself: a long one must not hide those behind it. */
function valueText(value: unknown): string {
  const text = JSON.stringify(value) ?? "";
  if (text.length <= MAX_VALUE_LENGTH) return text;
  return `${shortenText(text, MAX_VALUE_LENGTH)}… (${text.length} characters)`;
}
