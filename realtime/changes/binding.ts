import { hash } from "node:crypto";
import { type CatalogColumn, type CatalogTable, type QualifiedName, readTableAccess, type TableAccess } from "#catalog";
import type { CatalogKeeper, CatalogRefresh } from "#catalog/loading";
import { toHttpError } from "#http";
import type { RequestRecorder } from "#http/observability";
import { namesClock } from "#live/matching";
import type { FindMissingPolicyColumns } from "#live/policy-claims";
import { quotedName } from "#postgres/client";
import type { Statement } from "#postgres/statement";
import { ApiError, memoize } from "#runtime";
import { type BindingRequest, stringifyValue } from "../protocol/messages.ts";
import type { Publication } from "./publication.ts";
import {
  type BindingFilter,
  type ComparisonOperator,
  castType,
  comparisonSql,
  type FilterCondition,
  isEvaluatedLocally,
  isPattern,
  makeRowFilter,
  parseFilter,
  type TextRows,
} from "./row-filter.ts";

const MAX_PATTERN_LENGTH = 100;
/** Back references, counted repetitions and groups with options can take exponential time. */
const EXPENSIVE_PATTERN = /\\\d|\{|\(\?|^\*\*\*/;

/** Dates and times, and their arrays, ranges and multiranges. */
const TIME_TYPE = /^_?(?:date|time|timetz|timestamp|timestamptz|(?:date|ts|tstz)(?:multi)?range)$/;

/** The changes that a client subscribes to: one entry of `postgres_changes` in its join. */
export type Binding = {
  readonly id: number;
  readonly event: "*" | "INSERT" | "UPDATE" | "DELETE";
  /** The schema; null for any schema. */
  readonly schema: string | null;
  readonly table: string | null;
  readonly filters: readonly BindingFilter[];
  /** The selected columns. If null, all columns that the subscriber may read; if empty, the key only. */
  readonly select: ReadonlySet<string> | null;
};

type BindingDependencies = {
  readonly catalog: Pick<CatalogKeeper, "current">;
  readonly refreshCatalog: CatalogRefresh;
  readonly role: string;
  readonly publication: Publication;
  readonly findMissingColumns: FindMissingPolicyColumns;
  /** True for anonymous callers, who may only use patterns that are cheap to match. */
  readonly isAnonymous: boolean;
  /** Queries Postgres as the subscriber's role; rejects with Postgres's error. */
  readonly query: (statement: Statement) => Promise<TextRows>;
  /** Queries Postgres for the values of a filter, apart from other queries, because reading a pattern can take long. */
  readonly readValues: (statement: Statement, hasPattern: boolean) => Promise<TextRows>;
};

const BINDING_EVENTS = ["*", "INSERT", "UPDATE", "DELETE"] as const;
const ID_BITS = 27;

/** Returns the id of each binding, stable and distinct for distinct bindings: the client compares them, and none is 0. */
export function assignBindingIds(requests: readonly BindingRequest[]): readonly number[] {
  const taken = new Map<number, string>();
  return requests.map((request) => {
    const text = JSON.stringify(request);
    let id = Number.parseInt(hash("sha256", text, "hex").slice(0, 8), 16) % 2 ** ID_BITS || 1;
    while (taken.has(id) && taken.get(id) !== text) id++;
    taken.set(id, text);
    return id;
  });
}

/** Makes the reader of one join: its bindings of one table send the same queries, which run once. */
export function makeBindingReader(dependencies: BindingDependencies) {
  const queryOnce = memoize((statement: string) => dependencies.query(JSON.parse(statement)));
  const readValuesOnce = memoize((key: string) => {
    const { statement, hasPattern } = JSON.parse(key);
    return dependencies.readValues(statement, hasPattern);
  });
  const memoizedDependencies: BindingDependencies = {
    ...dependencies,
    query: (statement) => queryOnce(JSON.stringify(statement)),
    readValues: (statement, hasPattern) => readValuesOnce(JSON.stringify({ statement, hasPattern })),
  };
  return (request: BindingRequest, id: number) => resolveBinding(request, id, memoizedDependencies);
}

/** Records a subscription that names its table. */
export function recordBinding(
  recorder: RequestRecorder,
  role: string,
  { event, schema, table, filters, select }: Binding,
): void {
  if (schema === null || table === null) return;
  const columns = [...new Set([...filters.map(({ column }) => column), ...(select ?? [])])].sort();
  // A join is rare, so each is described.
  recorder.count("realtime", {}, role, () => ({
    interface: "realtime",
    role,
    request: `${event} ${table}${columns.length > 0 ? `(${columns.join(", ")})` : ""}`,
    relations: { [`${schema}.${table}`]: { select: columns, insert: [], update: [], deletes: false } },
    functions: {},
  }));
}

/** Returns null if the caller may not receive such changes. The reason is not reported: it would disclose which tables exist. */
async function resolveBinding(
  request: BindingRequest,
  id: number,
  {
    catalog,
    refreshCatalog,
    role,
    isAnonymous,
    publication,
    findMissingColumns,
    query,
    readValues,
  }: BindingDependencies,
): Promise<Binding | null> {
  const event = BINDING_EVENTS.find((name) => name === stringifyValue(request.event ?? "*").toUpperCase());
  const schema = parseNameOrWildcard(request.schema, "public");
  const table = parseNameOrWildcard(request.table, null);
  const filter = request.filter ?? "";
  const conditions = typeof filter === "string" ? parseFilter(filter) : null;
  const names = request.select ?? null;
  if (names !== null && !Array.isArray(names)) return null;
  if (isAnonymous && !conditions?.every(isCheapCondition)) return null;
  if (!event || !conditions || !(await publication.has(schema, table))) return null;
  const select = names && new Set(names.map(stringifyValue));
  if (schema === null || table === null) {
    return conditions.length > 0 || select ? null : { id, event, schema, table, filters: [], select: null };
  }
  const columnNames = [...conditions.map(({ column }) => column), ...(select ?? [])];
  const lookup = { catalog, refreshCatalog, role, query };
  const readable =
    findReadableTable(lookup, { schema, name: table }, columnNames) ??
    (await findNewlyReadableTable(lookup, { schema, name: table }, columnNames));
  if (!readable) return null;
  const { table: readableTable, access } = readable;
  const columns = await publication.columns(readableTable);
  if (columns && !columnNames.every((column) => columns.has(column))) return null;
  const isUncheckable =
    columns && typeof access.visibility === "object" && (await findMissingColumns(readableTable, columns)).length > 0;
  if (isUncheckable) return null;
  const filters = await readFilters(conditions, readableTable, readValues);
  return filters && { id, event, schema, table, filters, select };
}

type ReadableTable = { readonly table: CatalogTable; readonly access: TableAccess };
type TableLookup = Pick<BindingDependencies, "catalog" | "refreshCatalog" | "role" | "query">;

/** Finds the table; null unless the catalogue says that the role may read it and all of these columns. */
function findReadableTable(
  { catalog, role }: TableLookup,
  name: QualifiedName,
  columns: readonly string[],
): ReadableTable | null {
  const current = catalog.current();
  const found = current.findTable(name);
  const access = found && readTableAccess(current, found, role);
  return access && columns.every((column) => access.columns.has(column)) ? { table: found, access } : null;
}

// Whoever may select a table has the privilege for its system columns, which are not in the catalogue.
const HAS_SELECT_PRIVILEGE = `
  select pg_catalog.has_any_column_privilege($1::pg_catalog.text, 'select')
    and coalesce(pg_catalog.bool_and(pg_catalog.has_column_privilege($1::pg_catalog.text, name, 'select') and exists (
      select from pg_catalog.pg_attribute
      where attrelid = $1::pg_catalog.regclass and attname = name and attnum > 0 and not attisdropped
    )), true)
  from pg_catalog.json_array_elements_text($2::pg_catalog.json) as name`;

/** Finds a table that was created or granted a moment ago and may not be in the catalogue yet. */
async function findNewlyReadableTable(
  lookup: TableLookup,
  name: QualifiedName,
  columns: readonly string[],
): Promise<ReadableTable | null> {
  const { catalog, refreshCatalog, query } = lookup;
  const current = catalog.current();
  if (!current.schemas.get(name.schema)?.exposed) return null;
  const values = [quotedName(name.schema, name.name), JSON.stringify(columns)];
  try {
    const [row] = await query({ text: HAS_SELECT_PRIVILEGE, values });
    if (row?.[0] !== "t") return null;
  } catch (error) {
    return nullUnlessServerError(error);
  }
  return (await refreshCatalog(current)) ? findReadableTable(lookup, name, columns) : null;
}

/** Parses a name. `*` and an empty name stand for any name. */
function parseNameOrWildcard(value: unknown, absent: string | null): string | null {
  if (value === undefined || value === null || value === "") return absent;
  return value === "*" ? null : stringifyValue(value);
}

/** Has Postgres parse the values and check the operators; null when it rejects one. */
async function readFilters(
  conditions: readonly FilterCondition[],
  table: CatalogTable,
  readValues: BindingDependencies["readValues"],
): Promise<readonly BindingFilter[] | null> {
  if (conditions.length === 0) return [];
  if (conditions.some((condition) => dependsOnClock(condition, table))) return null;
  const values: string[] = [];
  const expressions = conditions.flatMap((condition) =>
    probeCondition(condition, table, (value) => `$${values.push(value)}`),
  );
  try {
    const statement = { text: `select ${expressions.map(({ sql }) => sql).join(", ")}`, values };
    const [row = []] = await readValues(
      statement,
      conditions.some(({ operator }) => isPattern(operator)),
    );
    return conditions.map((condition) => {
      const canonicalValues = expressions.flatMap((probe, at) =>
        probe.condition === condition && probe.isCanonical ? [row[at] ?? null] : [],
      );
      return makeRowFilter(condition, canonicalValues, table.columns.get(condition.column)!.baseType);
    });
  } catch (error) {
    return nullUnlessServerError(error);
  }
}

/** True if the condition means another time at each event, such as `at=lt.now` and `day=eq.today`. */
function dependsOnClock({ column, operator, values }: FilterCondition, table: CatalogTable): boolean {
  const { schema, name } = table.columns.get(column)!.baseType;
  return schema === "pg_catalog" && TIME_TYPE.test(name) && !isPattern(operator) && values.some(namesClock);
}

/** Returns null, since the binding is invalid, but rethrows an error of the server, which does not make the binding invalid. */
function nullUnlessServerError(error: unknown): null {
  if (error instanceof ApiError && toHttpError(error).status >= 500) throw error;
  return null;
}

type FilterProbe = { readonly condition: FilterCondition; readonly sql: string; readonly isCanonical: boolean };

/** Builds the condition applied to null, and its values in the column type's canonical text: a cast would write a boolean differently. */
function probeCondition(
  condition: FilterCondition,
  table: CatalogTable,
  parameter: (value: string) => string,
): readonly FilterProbe[] {
  const { operator, values, column } = condition;
  const tableColumn = table.columns.get(column)!;
  const nullValue = `(null::${tableColumn.sqlType})`;
  const probe = (sql: string, isCanonical = false): FilterProbe => ({ condition, sql, isCanonical });
  if (operator === "is") return [probe(`${nullValue} is ${values[0]}`)];
  const comparisonOperator: ComparisonOperator =
    operator === "neq" || operator === "in" || operator === "isdistinct" ? "eq" : operator;
  return values.flatMap((value) => {
    const parameterSql = parameter(value);
    // A pattern is matched against a text, so that Postgres reports one that is invalid.
    const left =
      comparisonOperator === "match" || comparisonOperator === "imatch" ? `coalesce(${nullValue}, '')` : nullValue;
    const comparison = probe(comparisonSql(left, comparisonOperator, parameterSql, tableColumn));
    return comparisonOperator === "eq" || isEvaluatedLocally(condition, tableColumn.baseType)
      ? [comparison, probe(canonicalText(parameterSql, tableColumn, table), true)]
      : [comparison];
  });
}

/** Returns the canonical text; null if equal texts may be written differently, as by a case-insensitive collation. */
function canonicalText(value: string, { baseType, position }: CatalogColumn, { oid }: CatalogTable): string {
  const text = `pg_catalog.concat(${value}::${castType({ baseType })})`;
  return baseType.name === "text" || baseType.name === "varchar"
    ? `case when (select collisdeterministic from pg_catalog.pg_collation as c join pg_catalog.pg_attribute as a
        on c.oid = attcollation where attrelid = ${oid} and attnum = ${position}) then ${text} end`
    : text;
}

/** True if a condition is cheap to evaluate on any value: a pattern must be short and simple. */
function isCheapCondition({ operator, values }: FilterCondition): boolean {
  if (!isPattern(operator)) return true;
  const isExpression = operator === "match" || operator === "imatch";
  return values.every(
    (value) => value.length <= MAX_PATTERN_LENGTH && !(isExpression && EXPENSIVE_PATTERN.test(value)),
  );
}
