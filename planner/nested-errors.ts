import pg from "pg";
import type { CatalogTable } from "#catalog";
import { PrecedingStatementError } from "#postgres/database";
import { ApiError } from "#runtime";
import { isJsonObject, type JsonObject, parseJsonExactly } from "#runtime/json";
import type { UpdateIntent } from "./intent/intent.ts";
import { joinPath, repeatedKey } from "./plan/nested-rows.ts";
import type { NestedStep } from "./plan/nested-step.ts";
import { keyMismatch, type NestedInsertPlan } from "./plan/plan.ts";
import { NESTED_GUARD } from "./query/build-nested.ts";

/** `Key (id, code)=(1, a) already exists.`, `Failing row contains (id, code) = (1, a).`, in any language. */
const NAMED_VALUES = /^[^(]*\((?<names>.+?)\) ?= ?\((?<values>.*)\)/s;
/** `Failing row contains (1, a).` */
const ALL_VALUES = /^[^(]*\((?<values>.*)\)/s;
/** `invalid input syntax for type integer: "a"` */
const QUOTED_VALUE = /"(?<value>[^"]*)"[^"]*$/s;
/** The class of SQLSTATEs for values that were rejected themselves. */
const DATA_EXCEPTION = /^22/;
/** `value too long for type character varying(5)` */
const LENGTH_LIMIT = /character(?: varying)?\((\d+)\)/;
/** SQLSTATEs of rejected values and violated constraints. */
const CONCERNS_ROWS = /^2[23]/;
/** Parsing takes about ten milliseconds for each megabyte. */
const MAX_EXPLAINED_BYTES = 4 * 2 ** 20;
const NOT_NULL_VIOLATION = "23502";
const FOREIGN_KEY_VIOLATION = "23503";
const UNKNOWN = "*";

/** An error of Postgres with the place in the payload of a nested insert where it occurred. */
type NestedInsertError = pg.DatabaseError & { nestedPath?: string };

/** Null for errors of other statements. */
export function nestedPathOf(error: unknown): string | null {
  return error instanceof pg.DatabaseError ? ((error as NestedInsertError).nestedPath ?? null) : null;
}

/** Explains the error of a nested insert whose statement with the index `failed` (null: the commit) has failed. `nestedPathOf` returns its path. */
export function explainNestedError(error: unknown, steps: readonly NestedStep[], failed: number | null): unknown {
  if (!(error instanceof pg.DatabaseError) || error instanceof PrecedingStatementError) return error;
  // A deferred constraint has failed.
  const ofTable = steps.filter(({ table }) => table.schema === error.schema && table.name === error.table);
  const step = failed === null ? (ofTable.length === 1 ? ofTable[0] : undefined) : steps[failed];
  if (!step) return error;
  const guard = NESTED_GUARD.exec(error.message)?.groups;
  if (error.code === "42704" && guard) return guardError(guard, step);
  return step.rows.length > 0 ? withPath(error, step) : error;
}

function withPath(error: pg.DatabaseError, sent: SentRows): unknown {
  const found = findFailed(error, sent);
  const nestedPath = pathOf(found.rows.length > 0 ? found.rows : sent.rows, found.column);
  return Object.assign(error, { nestedPath } satisfies Partial<NestedInsertError>);
}

/** The error of a write of rows, with the position of the row that may have caused it. */
export function explainRowsError(
  error: unknown,
  { payload }: Pick<UpdateIntent, "payload">,
  table: CatalogTable,
): unknown {
  if (!(error instanceof pg.DatabaseError) || error instanceof PrecedingStatementError) return error;
  if (!CONCERNS_ROWS.test(error.code ?? "") || payload.json.length > MAX_EXPLAINED_BYTES) return error;
  const records = parseRecords(payload.json.toString());
  if (records.length === 0) return error;
  const rows = records.map((record, index) => ({ path: String(index), values: new Map(Object.entries(record)) }));
  return withPath(error, { table, rows });
}

/** Returns no records for an unexpected text: with `columns=` the text has not been read before. */
function parseRecords(text: string): readonly JsonObject[] {
  try {
    const records: unknown = parseJsonExactly(text);
    return Array.isArray(records) && records.every(isJsonObject) ? records : [];
  } catch {
    return [];
  }
}

function guardError({ problem, row, column }: Readonly<Record<string, string>>, step: NestedStep): ApiError {
  const { table, rows, plan } = step;
  switch (problem) {
    case "parent":
      return notOneParent(table.name, Number(row));
    case "refused":
      return new ApiError("forbidden", "42501", `A row of '${table.name}' may not be changed`, {
        details: { path: rows.length > 0 ? pathOf(rows, null) : "" },
        hint: "Policies do not permit it, or a trigger has dropped the change. Nothing was changed.",
      });
    case "missing":
      if ("where" in plan && plan.where.length > 0) return keyMismatch();
      return new ApiError("notFound", "PGRST187", `A row of '${table.name}' was not found by its key`, {
        details: { path: pathOf([rows[Number(row) - 1]!], null) },
        hint: "It does not exist, is not visible, or belongs to another row. Nothing was changed.",
      });
    case "repeated":
      return repeatedKey(table, rows[Number(row) - 1]!);
    case "dropped":
      return new ApiError(
        "conflict",
        "PGRST194",
        `Only ${row} of ${rows.length} rows of '${table.name}' were inserted`,
        {
          details: { path: pathOf(rows, null) },
          hint: "A trigger or a rule of the table has dropped the others. Nothing was changed.",
        },
      );
    case "null": {
      const { name } = (plan as NestedInsertPlan).saved.columns[Number(column)]!;
      return new ApiError("conflict", "PGRST195", `An inserted row of '${table.name}' has no '${name}'`, {
        details: { path: pathOf(rows, name) },
        hint: "Other rows refer to this column, or the response is read by it. Nothing was changed.",
      });
    }
    default: {
      const { name } = (plan as NestedInsertPlan).columns[Number(column)]!;
      return new ApiError("invalid", "PGRST196", `The value of '${name}' is not that of the related row`, {
        details: { path: pathOf([rows[Number(row) - 1]!], name) },
        hint: "Leave it out: it is taken from the related row.",
      });
    }
  }
}

function notOneParent(table: string, rows: number): ApiError {
  return new ApiError(
    rows === 0 ? "notFound" : "invalid",
    "PGRST185",
    `A nested update changes one row of '${table}'`,
    {
      details: `The filters find ${rows} rows.`,
      hint: "Filter by the primary key. Nothing was changed.",
    },
  );
}

type Row = NestedStep["rows"][number];
type SentRows = Pick<NestedStep, "table" | "rows">;
type Failed = { readonly rows: readonly Row[]; readonly column: string | null };

/** The rows that the error may concern, by the values in it, and the column. */
function findFailed(error: pg.DatabaseError, sent: SentRows): Failed {
  const { rows, table } = sent;
  if (DATA_EXCEPTION.test(error.code ?? "")) return findRejectedValue(error, sent);
  // The error is one of another table, which a trigger writes.
  if (error.where !== undefined && error.table !== table.name) return { rows, column: null };
  const detail = error.detail ?? "";
  const named = NAMED_VALUES.exec(detail)?.groups;
  if (named) {
    const names = named.names!.split(", ").map((name) => name.replace(/^"(.*)"$/, "$1"));
    return { rows: rowsWith(rows, names, named.values!), column: error.column ?? onlyColumn(names, table) };
  }
  // Postgres does not show values of tables with policies.
  const column = error.column ?? onlyColumn(constrainedColumns(error, table), table);
  if (error.code === NOT_NULL_VIOLATION && column !== null) {
    return { rows: rows.filter(({ values }) => (values.get(column) ?? null) === null), column };
  }
  if (error.code === FOREIGN_KEY_VIOLATION && column !== null) {
    return { rows: rows.filter(({ values }) => values.get(column) !== null), column };
  }
  const all = ALL_VALUES.exec(detail)?.groups;
  return { rows: all ? rowsWith(rows, [...table.columns.keys()], all.values!) : rows, column };
}

function onlyColumn(names: readonly string[], { columns }: CatalogTable): string | null {
  return names.length === 1 && columns.has(names[0]!) ? names[0]! : null;
}

function constrainedColumns(error: pg.DatabaseError, table: CatalogTable): readonly string[] {
  const { constraint, dataType } = error;
  // The constraint is one of a domain.
  if (dataType) return [...table.columns].flatMap(([name, { type }]) => (type.name === dataType ? [name] : []));
  const known = [...table.foreignKeys, ...table.uniqueKeys, ...table.checks].find(({ name }) => name === constraint);
  return known?.columns ?? [];
}

/** Values that contain commas cannot be separated: then all rows are possible. */
function rowsWith(rows: readonly Row[], names: readonly string[], list: string): readonly Row[] {
  const values = names.length === 1 ? [list] : list.split(", ");
  if (values.length !== names.length) return rows;
  return rows.filter((row) =>
    names.every((name, index) => {
      const text = textOf(row.values.get(name));
      return text === null || text === values[index] || isCut(values[index]!, text);
    }),
  );
}

/** True if the text is shown cut: Postgres shortens long values. */
function isCut(shown: string, text: string): boolean {
  return shown.endsWith("...") && text.startsWith(shown.slice(0, -3));
}

/** The message contains a rejected value, such as `"many"`; for a value that is too long it has only the type. */
function findRejectedValue(error: pg.DatabaseError, { rows, table }: SentRows): Failed {
  const quoted = QUOTED_VALUE.exec(error.message)?.groups?.value;
  const [type, length] = LENGTH_LIMIT.exec(error.message) ?? [];
  const isRejected = (column: string, given: unknown) => {
    if (quoted !== undefined) return textOf(given) === quoted;
    if (type === undefined || table.columns.get(column)?.sqlType !== type) return false;
    return [...(textOf(given) ?? "")].length > Number(length);
  };
  const found = rows.flatMap((row) =>
    [...row.values].flatMap(([column, given]) => (isRejected(column, given) ? [{ row, column }] : [])),
  );
  const columns = new Set(found.map(({ column }) => column));
  return { rows: found.map(({ row }) => row), column: columns.size === 1 ? [...columns][0]! : null };
}

/** The text of a value as Postgres writes it in errors; null if that depends on its type. */
function textOf(value: unknown): string | null {
  if (value === null) return "null";
  if (typeof value === "string" || typeof value === "number") return String(value);
  return typeof value === "boolean" ? (value ? "t" : "f") : null;
}

/** The common path of the rows: `lines/2/sku`, or `lines/*` followed by `/sku` if the row is not known. */
function pathOf(rows: readonly Row[], column: string | null): string {
  const common = rows
    .map(({ path }) => path.split("/"))
    .reduce((one, other) => one.map((part, index) => (part === other[index] ? part : UNKNOWN)));
  return column === null ? common.join("/") : joinPath(common.join("/"), column);
}
