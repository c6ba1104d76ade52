import type { DatabaseError } from "pg";
import { type Catalog, exposedTables, mayNameColumn, mayNameTable, publicComment } from "./catalog.ts";
import type { CatalogTable } from "./tables.ts";

/** The message of a Postgres error for users, and the input column that causes it. */
type DatabaseErrorMessage = { readonly message: string; readonly column?: string; readonly hint?: string };

/** The message for invalid values without a better explanation. */
export const INVALID_VALUE = "A value is not acceptable.";

/** The messages by SQLSTATE, or by its class, for errors whose text in Postgres would name tables, roles or SQL. */
const MESSAGES_BY_SQLSTATE: Readonly<Record<string, string>> = {
  "21": "This cannot be done in one statement.",
  "22008": "There is no such day or time.",
  "23502": "A required value is missing.",
  "23503": "This refers to something that does not exist, or something else still refers to it.",
  "23505": "There is one with this value already.",
  "23514": INVALID_VALUE,
  "23P01": "This is in conflict with another one.",
  "25006": "Nothing can be changed: you, or the database, may only read.",
  "40": "Somebody else changed the same thing at the same moment; try again.",
  "42501": "You may not do this.",
  "44": INVALID_VALUE,
  "55P03": "Somebody else is changing the same thing; try again.",
  "57014": "This took too long and was given up.",
};

/** Returns null for errors that the client did not cause and should not see. */
export function databaseErrorMessage(
  error: DatabaseError,
  catalog: Catalog,
  role: string,
): DatabaseErrorMessage | null {
  const code = error.code ?? "";
  if (code.startsWith("23")) return constraintMessage(error, catalog, role);
  if (code === "55P03" && error.table)
    return { message: `"${error.table}" is locked by another transaction; try again.` };
  const sentence = MESSAGES_BY_SQLSTATE[code] ?? MESSAGES_BY_SQLSTATE[code.slice(0, 2)];
  if (sentence) return { message: sentence };
  if (!isMeantForUsers(code)) return null;
  return { message: error.message, ...namedColumn(error.detail), ...(error.hint && { hint: error.hint }) };
}

/** Returns the message for a value whose error has a SQLSTATE that other faults have too; null for other errors. */
export function invalidValueMessage(error: DatabaseError): string | null {
  const { code, message, where = "" } = error;
  // An index entry has at most a third of a page, a tsvector 1 MB.
  if (code === "54000") return "A value is too long.";
  if (TYPE_NAME_CONTEXT.test(where) || UNKNOWN_TEXT_SEARCH.test(message)) return INVALID_VALUE;
  // An invalid tsquery, for example, raises this error.
  return code === "42601" && !isOfSqlText(error) ? message : null;
}

/** The error names a client's text search configuration. A regconfig may be a number, which Postgres does not check when it reads it. */
const UNKNOWN_TEXT_SEARCH =
  /^(cache lookup failed for text search configuration \d+|text search configuration ".*" does not exist)$/s;
/** Postgres parses the name of a type in the same way as SQL. */
const TYPE_NAME_CONTEXT = /^invalid type name "/;

/** Errors in SQL text have a position; errors in values do not. */
export function isOfSqlText({ position, internalPosition, where = "" }: DatabaseError): boolean {
  return (position !== undefined || internalPosition !== undefined) && !TYPE_NAME_CONTEXT.test(where);
}

/**
 * True for errors raised by functions, and Postgres's data exceptions (class 22). Postgres's own classes with letters are
 * F0, HV, P0 and XX.
 */
function isMeantForUsers(code: string): boolean {
  return code.startsWith("22") || code === "P0001" || (/^[A-Z]/.test(code) && !/^(F0|HV|P0|XX)/.test(code));
}

/** The constraint's comment is the message for its violation. */
function constraintMessage(
  { code = "", schema, table, column, constraint }: DatabaseError,
  catalog: Catalog,
  role: string,
): DatabaseErrorMessage {
  const broken = schema && table ? catalog.findTable({ schema, name: table }) : undefined;
  const found = broken && constraint ? findConstraint(broken, constraint) : undefined;
  const message = publicComment(found?.comment ?? null) ?? MESSAGES_BY_SQLSTATE[code] ?? INVALID_VALUE;
  const columns = column ? [column] : found ? constraintColumns(found) : [];
  if (columns.length !== 1 || !schema || !table) return { message };
  return { message, ...namedColumn(findVisibleColumn({ schema, table, column: columns[0]! }, catalog, role)) };
}

type BrokenColumn = { readonly schema: string; readonly table: string; readonly column: string };

/** Returns the name by which the role may know the column: in its table, in that of the partition, or in a view that shows it. */
function findVisibleColumn(
  { schema, table: name, column }: BrokenColumn,
  catalog: Catalog,
  role: string,
): string | null {
  const broken = catalog.findTable({ schema, name });
  const mayName = (table: CatalogTable, known: string) =>
    table.columns.has(known) && mayNameTable(catalog, role, table) && mayNameColumn(catalog, role, table, known);
  if (broken && mayName(broken, column)) return column;
  for (const table of exposedTables(catalog)) {
    if (broken?.isPartition && table.kind === "partitioned table" && mayName(table, column)) return column;
    for (const { name: shown, origin } of table.columns.values()) {
      const isShown = origin?.column === column && origin.table.name === name && origin.table.schema === schema;
      if (isShown && mayName(table, shown)) return shown;
    }
  }
  return null;
}

type MessageConstraint = {
  readonly name: string;
  readonly columns: readonly (string | null)[];
  readonly dependencies?: readonly string[];
  readonly comment: string | null;
};

/** The column of a unique index on `lower(email)` is `email`. */
function constraintColumns({ columns, dependencies = [] }: MessageConstraint): readonly string[] {
  const named = columns.filter((name) => name !== null);
  return named.length === columns.length ? named : [...new Set([...named, ...dependencies])];
}

function findConstraint(
  { checks, foreignKeys, uniqueKeys, indexes }: CatalogTable,
  name: string,
): MessageConstraint | undefined {
  return [...checks, ...foreignKeys, ...uniqueKeys, ...indexes].find((constraint) => constraint.name === name);
}

function namedColumn(column: string | null | undefined): { column: string } | null {
  return column && /^[a-z]\w*$/i.test(column) ? { column } : null;
}
