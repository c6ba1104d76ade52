import { columnOf, type EditedColumn, type EditedTable } from "./edited-table.ts";
import type { RowValues } from "./row-requests.ts";

/** The service's error about a row that it did not accept. */
export type RowError = {
  readonly code: string;
  readonly message: string;
  readonly details: string | null;
};

/** Returns the columns that an error is about; none if it concerns the row as a whole. */
export function columnsOfError(table: EditedTable, error: RowError, values: RowValues): readonly string[] {
  const named = columnsNamed(table, error);
  if (named.length > 0) return named;
  return Object.keys(values).filter((name) => isRefusedValue(columnOf(table, name), values[name] ?? null, error));
}

/** Returns the constraint or foreign key that an error names. */
export function findViolated<Named extends { readonly name: string }>(
  constraints: readonly Named[],
  { message }: RowError,
): Named | undefined {
  const name = constraintName(message);
  return constraints.find((constraint) => constraint.name === name);
}

function columnsNamed(table: EditedTable, { code, message, details }: RowError): readonly string[] {
  const exists = (name: string) => table.columns.some((column) => column.name === name);
  if (code === "23505" || code === "23503") {
    // The details have the form: Key (lower(email), tenant)=(…) already exists.
    const list = /^Key \((.*?)\)=\(/s.exec(details ?? "")?.[1] ?? "";
    const names = list.split(", ").map((name) => name.replace(/^"(.*)"$/, "$1"));
    // If other rows refer to the row, the named columns are its own, but not the cause.
    if (details?.includes("is still referenced")) return [];
    // For tables with policies, Postgres does not name the key.
    return list === "" ? constraintColumns(table, message) : names.filter(exists);
  }
  if (code === "23514" || code === "23P01") return constraintColumns(table, message);
  const column = /column "((?:[^"]|"")*)"/.exec(message)?.[1];
  return column !== undefined && exists(column) ? [column] : [];
}

function constraintColumns({ constraints }: EditedTable, message: string): readonly string[] {
  const name = constraintName(message);
  return constraints.find((constraint) => constraint.name === name)?.columns ?? [];
}

function constraintName(message: string): string | undefined {
  return /constraint "((?:[^"]|"")*)"/.exec(message)?.[1]?.replaceAll('""', '"');
}

/** The names in messages of Postgres that differ from `format_type`. */
const TYPE_ALIASES: Readonly<Record<string, string>> = { "character varying": "varchar", bpchar: "character" };

/** True if the error can be about this value: it contains the value or its length limit, with the type. */
function isRefusedValue(column: EditedColumn, value: string | null, { code, message }: RowError): boolean {
  if (value === null || !code.startsWith("22")) return false;
  if (code === "22001") return message.includes(`for type ${column.type}`) && value.length > lengthLimit(column.type);
  const quoted = /: "(.*)"$/s.exec(message)?.[1] ?? /^value "(.*)" is out of range/s.exec(message)?.[1];
  const type = TYPE_ALIASES[column.base_type] ?? column.base_type;
  if (quoted !== undefined && quoted !== value) return false;
  return [column.type, column.base_type, type].some((name) => message.includes(`type ${name}`)) || quoted === value;
}

function lengthLimit(type: string): number {
  return Number(/\((\d+)\)/.exec(type)?.[1] ?? Number.POSITIVE_INFINITY);
}
