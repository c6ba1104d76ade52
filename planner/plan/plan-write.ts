import type { CatalogTable } from "#catalog";
import { ApiError } from "#runtime";
import type { DeleteIntent, InsertIntent, ResponseOptions, RowCondition, UpdateIntent } from "../intent/intent.ts";
import { findTable } from "./find-target.ts";
import {
  type ChangePlan,
  keyMismatch,
  negotiateFormat,
  type PlanOptions,
  type RecordsPlan,
  type RowCountGuard,
  type WritePlan,
} from "./plan.ts";
import { planConditions, planResultRows } from "./plan-selection.ts";
import { planUpdate } from "./plan-update.ts";
import { planRecords } from "./records.ts";
import { placeCountConditions } from "./related-count.ts";
import { tableScope } from "./scope.ts";
import { buildSelectTree, type SelectNode, selectsAllColumns } from "./select-tree.ts";
import type { PlanContext } from "./selection-context.ts";

export function planWrite(
  intent: WriteIntent,
  response: ResponseOptions,
  context: PlanContext,
  options: PlanOptions,
): WritePlan {
  const { catalog, role } = context;
  const { selection, returned, count } = intent;
  const table = findTable(intent.target, catalog, role);
  const tree = buildSelectTree(placeCountConditions(selection, table, context), context);
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
    ...(response.keepsBodyIn !== undefined && { keepsBodyIn: response.keepsBodyIn }),
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
  const isUnlimited = safeWrites && where.length === 0;
  const update = planUpdate(intent, table, { ...context, requiresKey: isUnlimited });
  if (!update || (isUnlimited && intent.nested)) throw whereRequired("UPDATE");
  return { kind: "update", table: name, ...update, where };
}

function planInsert(intent: InsertIntent, table: CatalogTable, context: PlanContext): ChangePlan {
  const { schema, name, primaryKey } = table;
  const { upsert } = intent;
  const columns = upsert?.onConflict ?? primaryKey;
  const records = planRecords(intent, table, context.catalog);
  const kept = upsert?.keepsKey ? [...columns, ...primaryKey] : [];
  const changed = namesOf(records).filter((column) => !kept.includes(column));
  // If nothing were set in the rows, they would not be returned.
  const set = upsert?.keepsKey && changed.length === 0 ? columns : changed;
  const countsInserted = upsert?.resolution === "merge" && table.distribution === null;
  const conflict =
    upsert && columns.length > 0 ? { columns, resolution: upsert.resolution, set, countsInserted } : null;
  return { kind: "insert", table: { schema, name }, records, where: [], conflict };
}

function namesOf({ columns }: RecordsPlan): string[] {
  return columns.map(({ name }) => name);
}

/** Plans a PUT, which writes the one row whose key is in the conditions and in the payload. */
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
    conflict: {
      columns: table.primaryKey,
      resolution: "merge",
      set: namesOf(records),
      countsInserted: table.distribution === null,
    },
  };
}

/** `id=eq.1` */
function equalityColumns(condition: RowCondition): string[] {
  if (condition.kind !== "filter" || condition.negated) return [];
  const { field, operation } = condition;
  if (field.path.length > 0 || field.measure) return [];
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
