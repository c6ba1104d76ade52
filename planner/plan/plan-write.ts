import { baseTypeOf, type Catalog, type CatalogColumn, type CatalogTable, type DataType } from "#catalog";
import { ApiError, type ApiErrorOptions } from "#runtime";
import type { DeleteIntent, InsertIntent, ResponseOptions, RowCondition, UpdateIntent } from "../intent.ts";
import { findTable } from "./find-target.ts";
import {
  type ArrayElementPlan,
  type ChangePlan,
  type ColumnDefaultPlan,
  type JsonReader,
  keyMismatch,
  negotiateFormat,
  type PlanOptions,
  type RecordColumn,
  type RecordsPlan,
  type RowCountGuard,
  type WritePlan,
} from "./plan.ts";
import { selectsAllColumns } from "./plan-read.ts";
import { type PlanContext, planConditions, planResultRows } from "./plan-selection.ts";
import { findRepresentation, tableScope } from "./scope.ts";
import { buildSelectTree, type SelectNode } from "./select-tree.ts";

/** Types whose input function reads values from an array as from JSON, and does not depend on a type modifier. */
const ARRAY_READABLE_TYPES = new Set([
  ...["bool", "int2", "int4", "int8", "float4", "float8", "numeric", "text", "varchar", "uuid"],
  ...["date", "time", "timetz", "timestamp", "timestamptz"],
]);

export function planWrite(
  intent: WriteIntent,
  response: ResponseOptions,
  context: PlanContext,
  options: PlanOptions,
): WritePlan {
  const { catalog, role } = context;
  const { selection, returned, count } = intent;
  const table = findTable(intent.target, catalog, role);
  const tree = buildSelectTree(selection, context);
  // The rows to write and the columns to return are planned separately.
  const change = planChange(intent, table, tree, context, options);
  const scope = tableScope(table, { alias: table.name, depth: 0, takenAliases: new Set() }, context);
  const { rows, result } = planResultRows({ ...tree, conditions: [], range: null }, scope, table, context);
  const selectsAll = selectsAllColumns(selection.select);
  const { format, body } = negotiateFormat({
    ...response,
    target: table,
    selectsAll,
    catalog,
    explain: options.explainEnabled,
  });
  const location = intent.kind === "insert" && returned === "headers" ? table.primaryKey : null;
  return {
    kind: "write",
    table,
    change,
    rows,
    keyset: null,
    result: returned === "rows" ? result : { wholeRow: false, names: location ?? [] },
    location,
    format,
    body: returned === "rows" ? body : { kind: "none" },
    total: count === null || count === "planned" ? { kind: "none" } : { kind: "page" },
    readOnly: false,
    guards: planWriteGuards(intent, response, format.kind === "object"),
  };
}

function planWriteGuards(intent: WriteIntent, { maxAffected }: ResponseOptions, isSingular: boolean): RowCountGuard[] {
  if (intent.kind === "insert" && intent.single) return [{ code: "PGRST115", rows: "exactly", count: 1 }];
  const guards: RowCountGuard[] = [];
  if (isSingular) guards.push({ code: "PGRST116", rows: "exactly", count: 1 });
  if (maxAffected !== null && intent.kind !== "insert")
    guards.push({ code: "PGRST124", rows: "at most", count: maxAffected });
  return guards;
}

type WriteIntent = InsertIntent | UpdateIntent | DeleteIntent;

type ChangeOptions = { readonly safeWrites: boolean };

/** `node` has the conditions that choose rows, and the relations that they refer to. */
function planChange(
  intent: WriteIntent,
  table: CatalogTable,
  tree: SelectNode,
  context: PlanContext,
  { safeWrites }: ChangeOptions,
): ChangePlan {
  const name = { schema: table.schema, name: table.name };
  if (intent.kind === "insert") {
    return intent.single ? planReplacement(intent, table, tree, context) : planInsert(intent, table, context);
  }
  const scope = tableScope(table, { alias: table.name, depth: 0, takenAliases: new Set() }, context);
  const where = planConditions(tree, scope, context);
  if (intent.kind === "delete") {
    if (safeWrites && where.length === 0) throw whereRequired("DELETE");
    return { kind: "delete", table: name, where };
  }
  const records = planRecords(intent, table, context.catalog);
  if (safeWrites && where.length === 0 && records.columns.length > 0) throw whereRequired("UPDATE");
  return { kind: "update", table: name, records, findsUnchanged: intent.returnsUnchangedRows === true, where };
}

function planInsert(intent: InsertIntent, table: CatalogTable, context: PlanContext): ChangePlan {
  const { schema, name, primaryKey } = table;
  const columns = intent.upsert?.onConflict ?? primaryKey;
  const conflict = intent.upsert && columns.length > 0 ? { columns, resolution: intent.upsert.resolution } : null;
  const records = planRecords(intent, table, context.catalog);
  return { kind: "insert", table: { schema, name }, records, where: [], conflict };
}

/** For PUT: the one row whose key is in the conditions and in the payload. */
function planReplacement(
  intent: InsertIntent,
  table: CatalogTable,
  tree: SelectNode,
  context: PlanContext,
): ChangePlan {
  if (intent.selection.ranges.some(({ path }) => path.length === 0)) throw limitNotAllowed();
  const keys = new Set(tree.conditions.flatMap(equalityColumns));
  const areKeys = tree.conditions.every((condition) => equalityColumns(condition).length > 0);
  if (!areKeys || keys.size === 0 || !haveSameNames(keys, table.primaryKey)) throw filtersMustBeKey();
  const records = planRecords({ ...intent, missingAsDefault: false }, table, context.catalog);
  if (!table.primaryKey.every((name) => records.columns.some((column) => column.name === name))) throw keyMismatch();
  const scope = tableScope(table, { alias: records.alias, depth: 0, takenAliases: new Set() }, context);
  return {
    kind: "insert",
    table: { schema: table.schema, name: table.name },
    records,
    where: planConditions({ ...tree, children: [] }, scope, context),
    conflict: { columns: table.primaryKey, resolution: "merge" },
  };
}

/** `id=eq.1` */
function equalityColumns(condition: RowCondition): string[] {
  if (condition.kind !== "filter" || condition.negated || condition.field.path.length > 0) return [];
  const { field, operation } = condition;
  const isEqual = operation.kind === "compare" && operation.operator === "eq" && operation.quantifier === null;
  return isEqual ? [field.name] : [];
}

function haveSameNames(names: ReadonlySet<string>, others: readonly string[]): boolean {
  return names.size === others.length && others.every((name) => names.has(name));
}

/** The error message of the extension pg-safeupdate. */
function whereRequired(command: "UPDATE" | "DELETE"): ApiError {
  return new ApiError("invalid", "21000", `${command} requires a WHERE clause`);
}

function limitNotAllowed(): ApiError {
  return new ApiError("invalid", "PGRST114", "limit/offset querystring parameters are not allowed for PUT");
}

function filtersMustBeKey(): ApiError {
  return new ApiError(
    "notAllowed",
    "PGRST105",
    "Filters must include all and only primary key columns with 'eq' operators",
  );
}

type IntentWithPayload = Pick<InsertIntent | UpdateIntent, "payload" | "missingAsDefault">;

/** Throws PGRST204 for unknown columns. */
function planRecords(
  { payload, missingAsDefault }: IntentWithPayload,
  table: CatalogTable,
  catalog: Catalog,
): RecordsPlan {
  const columns = payload.columns.map((name): RecordColumn => {
    const column = table.columns.get(name);
    if (!column) throw columnNotFound(name, table);
    return planRecordColumn(column, missingAsDefault ? planMissingValue(column, table) : null, catalog);
  });
  return {
    // The table and its records are in one statement.
    alias: table.name === "payload" ? "records" : "payload",
    isArray: payload.isArray,
    byColumn: payload.valueSpans !== undefined && columns.every(canBeReadFromArray),
    columns,
  };
}

export function planRecordColumn(
  column: CatalogColumn,
  missingValue: ColumnDefaultPlan | null,
  catalog: Catalog,
): RecordColumn {
  const { name, sqlType, type } = column;
  return { name, sqlType, element: planArrayElement(type), reader: findJsonReader(column, catalog), missingValue };
}

/** In arrays every row has the column, so its default is not used. */
function canBeReadFromArray({ element, reader }: RecordColumn): boolean {
  return element !== null && reader === null;
}

export function findJsonReader({ sqlType, baseType }: CatalogColumn, catalog: Catalog): JsonReader | null {
  const name = findRepresentation(catalog, "json", sqlType);
  if (name !== null) return { kind: "function", name };
  const isList = baseType.kind === "array";
  const type = isList ? baseTypeOf(baseType.element) : baseType;
  const isHstore = type.name === "hstore" && catalog.extensions.get("hstore")?.schema === type.schema;
  return isHstore ? { kind: "hstore", schema: type.schema, isList } : null;
}

function planArrayElement({ kind, schema, name, sqlName }: DataType): ArrayElementPlan | null {
  // A prepared statement keeps its parameter types, but an enum may be dropped and recreated.
  if (kind === "enum") return { sqlType: "text", cast: sqlName, isJson: false };
  if (kind !== "base" || schema !== "pg_catalog") return null;
  // Memory for reading an element is kept until all are read: 3 kB each for JSON.
  if (name === "json" || name === "jsonb") return { sqlType: "text", cast: name, isJson: true };
  return ARRAY_READABLE_TYPES.has(name) ? { sqlType: sqlName, cast: null, isJson: false } : null;
}

export function planMissingValue(column: CatalogColumn, { schema, name }: CatalogTable): ColumnDefaultPlan | null {
  if (column.identity === "by default") return { kind: "identity", table: { schema, name }, column: column.name };
  return column.default === null ? null : { kind: "expression", text: column.default };
}

export function columnNotFound(name: string, table: CatalogTable, options: ApiErrorOptions = {}): ApiError {
  return new ApiError(
    "invalid",
    "PGRST204",
    `Could not find the '${name}' column of '${table.name}' in the schema cache`,
    options,
  );
}
