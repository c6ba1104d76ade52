import type { QualifiedName } from "../../../engine/catalog/qualified-name.ts";
import type { Table } from "../../../engine/catalog/tables.ts";
import { ApiError } from "../../../engine/errors.ts";
import type { Condition, DeleteIntent, InsertIntent, UpdateIntent } from "../intent.ts";
import { planRecords, type Records } from "./records.ts";
import { anotherKey } from "./refusals.ts";
import { tableScope } from "./scope.ts";
import { type Planning, planConditions } from "./select.ts";
import type { Where } from "./selection.ts";
import type { Node } from "./tree.ts";

/** What a write does to its table. The conditions of an insert speak of its records, the others of the table. */
export type Change = { readonly table: QualifiedName; readonly where: readonly Where[] } & (
  | { readonly kind: "insert"; readonly records: Records; readonly conflict: Conflict | null }
  | { readonly kind: "update"; readonly records: Records; readonly findsUnchanged: boolean }
  | { readonly kind: "delete" }
);

/** Rows with the same values in these columns that are there already are changed, or left alone. */
export type Conflict = { readonly columns: readonly string[]; readonly resolution: "merge" | "ignore" };

export type WriteIntent = InsertIntent | UpdateIntent | DeleteIntent;

type Options = { readonly safeWrites: boolean };

/** `node` has the conditions that choose rows, and the relations that they may speak of. */
export function planChange(
  intent: WriteIntent,
  table: Table,
  node: Node,
  planning: Planning,
  { safeWrites }: Options,
): Change {
  const name = { schema: table.schema, name: table.name };
  if (intent.kind === "insert") {
    return intent.single ? planReplacement(intent, table, node, planning) : planInsert(intent, table, planning);
  }
  const scope = tableScope(table, { alias: table.name, depth: 0, taken: new Set() });
  const where = planConditions(node, scope, planning);
  if (intent.kind === "delete") {
    if (safeWrites && where.length === 0) throw needsCondition("DELETE");
    return { kind: "delete", table: name, where };
  }
  const records = planRecords(intent, table, planning.catalog);
  if (safeWrites && where.length === 0 && records.columns.length > 0) throw needsCondition("UPDATE");
  return { kind: "update", table: name, records, findsUnchanged: intent.findsUnchanged === true, where };
}

function planInsert(intent: InsertIntent, table: Table, planning: Planning): Change {
  const { schema, name, primaryKey } = table;
  const columns = intent.upsert?.onConflict ?? primaryKey;
  const conflict = intent.upsert && columns.length > 0 ? { columns, resolution: intent.upsert.resolution } : null;
  const records = planRecords(intent, table, planning.catalog);
  return { kind: "insert", table: { schema, name }, records, where: [], conflict };
}

/** PUT: the one row whose key the conditions name, and the payload repeats. */
function planReplacement(intent: InsertIntent, table: Table, node: Node, planning: Planning): Change {
  if (intent.shape.windows.some(({ path }) => path.length === 0)) throw limited();
  const keys = new Set(node.conditions.flatMap(keyOf));
  const areKeys = node.conditions.every((condition) => keyOf(condition).length > 0);
  if (!areKeys || keys.size === 0 || !isSame(keys, table.primaryKey)) throw notTheKey();
  const records = planRecords({ ...intent, missingAsDefault: false }, table, planning.catalog);
  if (!table.primaryKey.every((name) => records.columns.some((column) => column.name === name))) throw anotherKey();
  const scope = tableScope(table, { alias: records.alias, depth: 0, taken: new Set() });
  return {
    kind: "insert",
    table: { schema: table.schema, name: table.name },
    records,
    where: planConditions({ ...node, children: [] }, scope, planning),
    conflict: { columns: table.primaryKey, resolution: "merge" },
  };
}

/** `id=eq.1` */
function keyOf(condition: Condition): string[] {
  if (condition.kind !== "filter" || condition.negated || condition.field.path.length > 0) return [];
  const { field, operation } = condition;
  const isEqual = operation.kind === "compare" && operation.operator === "eq" && operation.quantifier === null;
  return isEqual ? [field.name] : [];
}

function isSame(names: ReadonlySet<string>, others: readonly string[]): boolean {
  return names.size === others.length && others.every((name) => names.has(name));
}

/** In the words of the extension pg-safeupdate. */
function needsCondition(command: "UPDATE" | "DELETE"): ApiError {
  return new ApiError(400, "21000", `${command} requires a WHERE clause`);
}

function limited(): ApiError {
  return new ApiError(400, "PGRST114", "limit/offset querystring parameters are not allowed for PUT");
}

function notTheKey(): ApiError {
  return new ApiError(405, "PGRST105", "Filters must include all and only primary key columns with 'eq' operators");
}
