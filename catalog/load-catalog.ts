import type pg from "pg";
import { forEachInSlices } from "#runtime/concurrency";
import { makePrivilegeChecks } from "./access.ts";
import type { Catalog } from "./catalog.ts";
import { inSnapshot, makeCatalogReader } from "./catalog-reader.ts";
import {
  type CatalogOptions,
  type CatalogRows,
  indexRowsByOid,
  type RowsByOid,
  readCatalogRows,
} from "./catalog-rows.ts";
import {
  type ConstraintRow,
  type IndexRow,
  toCheck,
  toForeignKey,
  toIndex,
  toUniqueKey,
  type UniqueKey,
} from "./constraints.ts";
import type { QualifiedName } from "./data-types.ts";
import { toDistance } from "./distances.ts";
import type { Distribution } from "./distributed-tables.ts";
import { ExpressionKeeper, type PrintedExpressions, SET_LOCKED_RELATIONS } from "./locked-relations.ts";
import { findProjections, makeRelationships, toStoredForeignKeys } from "./relationships.ts";
import { parseSettings, toRoles } from "./roles.ts";
import { type Routine, toMediaHandlers, toRoutine } from "./routines.ts";
import { type CatalogSchema, readTimeZones } from "./schemas.ts";
import {
  type CatalogColumn,
  type CatalogTable,
  type ColumnRow,
  forbidsNull,
  type TableRow,
  toColumn,
  toPolicy,
  toTableProperties,
} from "./tables.ts";

export type LoadedCatalog = {
  readonly catalog: Catalog;
  /** The milliseconds by subject, and the `total`. */
  readonly timings: Readonly<Record<string, number>>;
  /** True if some expressions are those of an earlier load, because a migration holds their tables. */
  readonly isProvisional: boolean;
};

/** The expressions that the next load falls back on. */
const printedByCatalog = new WeakMap<Catalog, PrintedExpressions>();
/** A reload skips locked relations, so it only waits for locks that were taken meanwhile. */
const RELOAD_LOCK_PATIENCE_MS = 2_000;

const NO_TIME_ZONES: ReadonlySet<string> = new Set();

/** Loads the catalogue; returns `previous` itself if nothing differs. The client must not be in a transaction. */
export async function loadCatalog(
  client: pg.ClientBase,
  options: CatalogOptions,
  previous: Catalog | null = null,
): Promise<LoadedCatalog> {
  const startedAt = performance.now();
  const { content, hash, timeZones, timings, expressions } = await readContent(client, options, previous);
  const catalog =
    previous?.hash === hash
      ? previous
      : await assembleCatalog(content, options, { version: (previous?.version ?? 0) + 1, hash, timeZones });
  printedByCatalog.set(catalog, expressions.printed);
  const total = Math.round(performance.now() - startedAt);
  return { catalog, timings: { ...timings, total }, isProvisional: expressions.skipsRows };
}

function readContent(client: pg.ClientBase, options: CatalogOptions, previous: Catalog | null) {
  const work = async () => {
    const expressions = new ExpressionKeeper((previous && printedByCatalog.get(previous)) ?? new Map());
    const { read, contentHash, timings } = makeCatalogReader(client, options, expressions);
    const content = await readCatalogRows(read, options);
    const hash = contentHash();
    // Listing the time zones is slow, and they only change with the server's version.
    const isKnown = previous?.server.release === content.server.release && previous.timeZones.size > 0;
    const timeZones =
      options.timeZones === false ? NO_TIME_ZONES : isKnown ? previous.timeZones : await readTimeZones(read);
    return { content, hash, timeZones, timings, expressions };
  };
  return inSnapshot(
    client,
    work,
    previous ? { lockPatienceMs: RELOAD_LOCK_PATIENCE_MS, settings: [SET_LOCKED_RELATIONS] } : {},
  );
}

type CatalogIdentity = Pick<Catalog, "version" | "hash" | "timeZones">;

/** Builds the catalogue from rows of the system catalogues, and resolves their oids. */
export async function assembleCatalog(
  rows: CatalogRows,
  options: CatalogOptions,
  identity: CatalogIdentity,
): Promise<Catalog> {
  const { server, extensions, representations, rowAggregates } = rows;
  const rowsByOid = indexRowsByOid(rows);
  const routines = rows.routines.map((row) =>
    toRoutine(row, rowsByOid.types, { grants: rowsByOid.grantsOf(row.acl), isOpen: rows.openRoutines.has(row.oid) }),
  );
  const tables = await assembleTables(rows, rowsByOid, routines, options.extraSearchPath);
  const schemas = assembleSchemas(rows, rowsByOid, routines, tables, options);
  const roles = toRoles(rows.roles, options.loginRole);

  const findTable = ({ schema, name }: QualifiedName) => schemas.get(schema)?.tables.get(name);
  const isExposed = ({ schema }: QualifiedName) => schemas.get(schema)?.exposed ?? false;
  return Object.freeze({
    ...identity,
    loadedAt: new Date(),
    server: { version: server.version, release: server.release },
    database: {
      name: server.database,
      owner: server.owner,
      comment: server.comment,
      settings: parseSettings(rows.roles.settings.filter(({ role }) => role === null)),
    },
    extensions: new Map(extensions.map((extension) => [extension.name, extension])),
    schemas,
    roles: roles.settable,
    mediaHandlers: toMediaHandlers(routines),
    representations,
    rowAggregates: new Set(rowAggregates),
    distances: rows.distances.map((row) => toDistance(row, rowsByOid.grantsOf)),
    hiddenJunctions: new Set(rows.hiddenJunctions),
    findTable,
    ...makeRelationships({
      keys: toStoredForeignKeys(rows.constraints),
      projections: findProjections(tables, rowsByOid, isExposed),
      isExposed,
      findTable,
    }),
    ...makePrivilegeChecks(roles),
  });
}

function assembleSchemas(
  catalogRows: CatalogRows,
  { types, grantsOf }: RowsByOid,
  routines: readonly Routine[],
  tables: ReadonlyMap<number, CatalogTable>,
  { schemas: exposed, extraSearchPath }: CatalogOptions,
): ReadonlyMap<string, CatalogSchema> {
  const rows = new Map(catalogRows.schemas.map((row) => [row.name, row]));
  const tablesIn = Map.groupBy(tables.values(), ({ schema }) => schema);
  const routinesIn = Map.groupBy(routines, ({ schema }) => schema);
  // Omits arrays and row types of tables, which can be found through their element type and their table.
  const ownTypes = types.all.filter((type) => type.kind !== "array" && !(type.kind === "composite" && type.table));
  const typesIn = Map.groupBy(ownTypes, ({ schema }) => schema);

  const schemas = new Map<string, CatalogSchema>();
  for (const name of new Set([...exposed, ...extraSearchPath])) {
    const row = rows.get(name);
    if (!row) continue;
    const isExposed = exposed.includes(name);
    schemas.set(name, {
      name,
      exposed: isExposed,
      owner: row.owner,
      comment: row.comment,
      grants: grantsOf(row.acl),
      tables: new Map((tablesIn.get(name) ?? []).map((table) => [table.name, table])),
      routines: Map.groupBy(isExposed ? (routinesIn.get(name) ?? []) : [], (routine) => routine.name),
      types: new Map((typesIn.get(name) ?? []).map((type) => [type.name, type])),
    });
  }
  return schemas;
}

/** Returns the tables, with their columns, keys, indexes, policies and functions, by oid. */
async function assembleTables(
  rows: CatalogRows,
  rowsByOid: RowsByOid,
  routines: readonly Routine[],
  extraSearchPath: readonly string[],
): Promise<ReadonlyMap<number, CatalogTable>> {
  const policies = Map.groupBy(rows.policies, ({ table }) => table);
  const indexes = Map.groupBy(rows.indexes, ({ table }) => table);
  const constraints = Map.groupBy(rows.constraints, ({ table }) => table);
  const rowRoutines = Map.groupBy(routines, (routine) => routine.arguments[0]?.type.oid);
  const primaryKeyAt = (table: number) => constraints.get(table)?.find(({ contype }) => contype === "p")?.columns ?? [];

  const tables = new Map<number, CatalogTable>();
  await forEachInSlices(rows.tables, (row) => {
    const { columnNames, grantsOf, tableName, types } = rowsByOid;
    const ownIndexes = indexes.get(row.oid) ?? [];
    const ownConstraints = constraints.get(row.oid) ?? [];
    const ownRowRoutines = rowRoutines.get(row.rowType) ?? [];
    const columns = toColumns(row, rowsByOid);
    types.fillRowType(row.oid, columns);
    tables.set(row.oid, {
      ...toTableProperties(row),
      distribution: toDistribution(row, rows, rowsByOid),
      showsAllRows: row.relkind === "v" ? rowsByOid.wholeViews.has(row.oid) : row.relkind !== "f",
      columns,
      primaryKey: toPrimaryKey(row, rowsByOid, primaryKeyAt),
      uniqueKeys: toUniqueKeys(ownIndexes, ownConstraints, rowsByOid),
      indexes: ownIndexes.map((index) => toIndex(index, columnNames)),
      checks: ownConstraints
        .filter(({ contype }) => "cx".includes(contype))
        .map((check) => toCheck(check, columnNames)),
      foreignKeys: ownConstraints
        .filter(({ contype }) => contype === "f")
        .map((key) => toForeignKey(key, tableName(key.target), columnNames)),
      policies: (policies.get(row.oid) ?? []).map((policy) => toPolicy(policy, grantsOf)),
      grants: grantsOf(row.acl),
      rowRoutines: ownRowRoutines,
      computedColumns: toComputedColumns(ownRowRoutines, columns, [row.schema, ...extraSearchPath]),
    });
  });
  return tables;
}

function toDistribution(
  { oid }: TableRow,
  { distributedTables }: CatalogRows,
  { columnName, tableTargets }: RowsByOid,
): Distribution | null {
  const own = distributedTables.get(oid);
  if (own) return own;
  const shown = (tableTargets.get(oid) ?? []).filter(({ table }) => distributedTables.has(table));
  if (shown.length === 0) return null;
  const { kind, colocation } = distributedTables.get(shown[0]!.table)!;
  const target = shown.find(({ table, column }) => columnName(table, column) === distributedTables.get(table)!.column);
  return { kind, colocation, column: target ? columnName(oid, target.position)! : null };
}

function toColumns(table: TableRow, rowsByOid: RowsByOid): ReadonlyMap<string, CatalogColumn> {
  const { columnName, columnRows, grantsOf, tableName, tableTargets, types } = rowsByOid;
  const targets = tableTargets.get(table.oid) ?? [];
  const columns = new Map<string, CatalogColumn>();
  for (const row of columnRows.get(table.oid) ?? []) {
    const target = targets.find(({ position }) => position === row.position);
    const column = target && columnName(target.table, target.column);
    const origin = column ? { table: tableName(target.table), column } : null;
    const nullable = isNullable(row, table, rowsByOid);
    columns.set(row.name, toColumn(row, { type: types.of(row.type), nullable, origin, grants: grantsOf(row.acl) }));
  }
  return columns;
}

/** A view that is automatically updatable shows rows of one table, so its columns have that table's nullability. */
function isNullable(row: ColumnRow, table: TableRow, rowsByOid: RowsByOid): boolean {
  if (row.notNull || forbidsNull(rowsByOid.types.of(row.type))) return false;
  if (!table.showsOneTable) return true;
  const target = rowsByOid.viewTargets.get(table.oid)?.find(({ position }) => position === row.position);
  if (!target) return true;
  const tableBelow = rowsByOid.tableRows.get(target.table);
  const column = rowsByOid.columnRows.get(target.table)?.find(({ position }) => position === target.column);
  if (tableBelow && column) return isNullable(column, tableBelow, rowsByOid);
  return rowsByOid.hiddenTables.get(target.table)?.columns.get(target.column)?.nullable ?? true;
}

function toPrimaryKey(
  { oid }: TableRow,
  { columnNames, tableTargets }: RowsByOid,
  primaryKeyAt: (table: number) => readonly number[],
): string[] {
  const targets = tableTargets.get(oid);
  if (!targets) return columnNames(oid, primaryKeyAt(oid));
  return [...new Set(targets.map(({ table }) => table))].flatMap((table) => {
    const viewColumns = primaryKeyAt(table).map((column) =>
      targets.find((target) => target.table === table && target.column === column),
    );
    const isComplete = viewColumns.every((target) => target !== undefined);
    return isComplete
      ? columnNames(
          oid,
          viewColumns.map(({ position }) => position),
        )
      : [];
  });
}

function toUniqueKeys(
  indexes: readonly IndexRow[],
  constraints: readonly ConstraintRow[],
  rowsByOid: RowsByOid,
): UniqueKey[] {
  return indexes.flatMap((index) => {
    // A foreign key refers to the unique index of its target as well.
    const constraint = constraints.find((row) => row.index === index.oid && row.contype !== "f");
    return toUniqueKey(index, constraint, rowsByOid.columnNames) ?? [];
  });
}

/** Postgres resolves `row.name` to a column, or else to a function on the search path. */
function toComputedColumns(
  rowRoutines: readonly Routine[],
  columns: ReadonlyMap<string, CatalogColumn>,
  searchPath: readonly string[],
): ReadonlyMap<string, Routine> {
  const candidates = rowRoutines
    .filter((routine) => searchPath.includes(routine.schema) && !columns.has(routine.name) && returnsOneValue(routine))
    .sort((a, b) => searchPath.indexOf(b.schema) - searchPath.indexOf(a.schema));
  // Candidates are sorted so that the map keeps the function that is first on the search path if several have the same name.
  return new Map(candidates.map((routine) => [routine.name, routine]));
}

function returnsOneValue({ kind, arguments: inputs, returns: { type, set, shape } }: Routine): boolean {
  const isRelated = type.kind === "composite" && type.table !== null;
  return kind === "function" && inputs.length === 1 && !set && shape !== "void" && !isRelated;
}
