import type { ByOid } from "./by-oid.ts";
import { type Column, type ColumnRow, forbidsNull, toColumn } from "./columns.ts";
import { type ConstraintRow, toCheck, toForeignKey } from "./constraints.ts";
import type { Content } from "./content.ts";
import { type IndexRow, toIndex, toUniqueKey, type UniqueKey } from "./indexes.ts";
import { toPolicy } from "./policies.ts";
import type { Routine } from "./routines.ts";
import { inSlices } from "./slices.ts";
import { type Table, type TableRow, toTableFacts } from "./tables.ts";

/** Each table with all that is its own, by its oid. */
export async function assembleTables(
  content: Content,
  byOid: ByOid,
  routines: readonly Routine[],
  extraSearchPath: readonly string[],
): Promise<ReadonlyMap<number, Table>> {
  const policies = Map.groupBy(content.policies, ({ table }) => table);
  const indexes = Map.groupBy(content.indexes, ({ table }) => table);
  const constraints = Map.groupBy(content.constraints, ({ table }) => table);
  const rowRoutines = Map.groupBy(routines, (routine) => routine.arguments[0]?.type.oid);
  const primaryKeyAt = (table: number) => constraints.get(table)?.find(({ contype }) => contype === "p")?.columns ?? [];

  const tables = new Map<number, Table>();
  await inSlices(content.tables, (row) => {
    const { columnNames, grantsOf, tableName, types } = byOid;
    const ownIndexes = indexes.get(row.oid) ?? [];
    const ownConstraints = constraints.get(row.oid) ?? [];
    const takingRows = rowRoutines.get(row.rowType) ?? [];
    const columns = toColumns(row, byOid);
    types.fillRowType(row.oid, columns);
    tables.set(row.oid, {
      ...toTableFacts(row),
      columns,
      primaryKey: toPrimaryKey(row, byOid, primaryKeyAt),
      uniqueKeys: toUniqueKeys(ownIndexes, ownConstraints, byOid),
      indexes: ownIndexes.map((index) => toIndex(index, columnNames)),
      checks: ownConstraints
        .filter(({ contype }) => "cx".includes(contype))
        .map((check) => toCheck(check, columnNames)),
      foreignKeys: ownConstraints
        .filter(({ contype }) => contype === "f")
        .map((key) => toForeignKey(key, tableName(key.target), columnNames)),
      policies: (policies.get(row.oid) ?? []).map((policy) => toPolicy(policy, grantsOf)),
      grants: grantsOf(row.acl),
      rowRoutines: takingRows,
      computedColumns: toComputedColumns(takingRows, columns, [row.schema, ...extraSearchPath]),
    });
  });
  return tables;
}

function toColumns(table: TableRow, byOid: ByOid): ReadonlyMap<string, Column> {
  const { columnName, columnRows, grantsOf, tableName, tableTargets, types } = byOid;
  const targets = tableTargets.get(table.oid) ?? [];
  const columns = new Map<string, Column>();
  for (const row of columnRows.get(table.oid) ?? []) {
    const target = targets.find(({ position }) => position === row.position);
    const column = target && columnName(target.table, target.column);
    const shows = column ? { table: tableName(target.table), column } : null;
    const nullable = isNullable(row, table, byOid);
    columns.set(row.name, toColumn(row, { type: types.of(row.type), nullable, shows, grants: grantsOf(row.acl) }));
  }
  return columns;
}

/** A view that Postgres itself can update shows the rows of one table as they are: what is never null there is never null here. */
function isNullable(row: ColumnRow, table: TableRow, byOid: ByOid): boolean {
  if (row.notNull || forbidsNull(byOid.types.of(row.type))) return false;
  if (!table.showsOneTable) return true;
  const target = byOid.viewTargets.get(table.oid)?.find(({ position }) => position === row.position);
  if (!target) return true;
  const beneath = byOid.tableRows.get(target.table);
  const column = byOid.columnRows.get(target.table)?.find(({ position }) => position === target.column);
  if (beneath && column) return isNullable(column, beneath, byOid);
  return byOid.hiddenTables.get(target.table)?.columns.get(target.column)?.nullable ?? true;
}

function toPrimaryKey(
  { oid }: TableRow,
  { columnNames, tableTargets }: ByOid,
  primaryKeyAt: (table: number) => readonly number[],
): string[] {
  const targets = tableTargets.get(oid);
  if (!targets) return columnNames(oid, primaryKeyAt(oid));
  return [...new Set(targets.map(({ table }) => table))].flatMap((table) => {
    const shown = primaryKeyAt(table).map((column) =>
      targets.find((target) => target.table === table && target.column === column),
    );
    const isWhole = shown.every((target) => target !== undefined);
    return isWhole
      ? columnNames(
          oid,
          shown.map(({ position }) => position),
        )
      : [];
  });
}

function toUniqueKeys(indexes: readonly IndexRow[], constraints: readonly ConstraintRow[], byOid: ByOid): UniqueKey[] {
  return indexes.flatMap((index) => {
    // A foreign key names the index that it relies on, too.
    const constraint = constraints.find((row) => row.index === index.oid && row.contype !== "f");
    return toUniqueKey(index, constraint, byOid.columnNames) ?? [];
  });
}

/** Postgres takes `row.name` for a column if there is one, else for a function on the search path. */
function toComputedColumns(
  takingRows: readonly Routine[],
  columns: ReadonlyMap<string, Column>,
  searchPath: readonly string[],
): ReadonlyMap<string, Routine> {
  const candidates = takingRows
    .filter((routine) => searchPath.includes(routine.schema) && !columns.has(routine.name) && givesOneValue(routine))
    .sort((a, b) => searchPath.indexOf(b.schema) - searchPath.indexOf(a.schema));
  // Of two by the same name the later one stays in a map: that of the schema which is first on the path.
  return new Map(candidates.map((routine) => [routine.name, routine]));
}

function givesOneValue({ kind, arguments: given, returns: { type, set, shape } }: Routine): boolean {
  const isRelated = type.kind === "composite" && type.table !== null;
  return kind === "function" && given.length === 1 && !set && shape !== "void" && !isRelated;
}
