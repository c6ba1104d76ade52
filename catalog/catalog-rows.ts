import type { CatalogQuery } from "./catalog-query.ts";
import { readConstraints, readHiddenJunctions, readIndexes } from "./constraints.ts";
import type { QualifiedName } from "./data-types.ts";
import { readDistances } from "./distances.ts";
import { type Distribution, readDistributedTables } from "./distributed-tables.ts";
import { makeGrantsParser } from "./grants.ts";
import { readRoles } from "./roles.ts";
import { readRoutines, readRowAggregates } from "./routines.ts";
import { readExtensions, readSchemas, readServer } from "./schemas.ts";
import { readOpenRoutines, readWholeViews } from "./shown-rows.ts";
import { readColumns, readPolicies, readTables } from "./tables.ts";
import { readRepresentations, readTypes, toTypes } from "./types.ts";
import { readHiddenTables, readViewColumns, resolveToTables } from "./view-columns.ts";

/** The options that select the part of the database that the catalogue describes. */
export type CatalogOptions = {
  /** The exposed schemas; the first is the default. */
  readonly schemas: readonly string[];
  readonly extraSearchPath: readonly string[];
  /** The login role of requests: callers can have the roles that it is a member of. */
  readonly loginRole: string;
  /** False if names of time zones are not read. */
  readonly timeZones?: boolean;
};

/** The rows of the system catalogues, one subject after another, each read by one query or a few. */
export type CatalogRows = Awaited<ReturnType<typeof readCatalogRows>>;

export async function readCatalogRows(
  read: CatalogQuery,
  { schemas: exposed, extraSearchPath, loginRole }: CatalogOptions,
) {
  const server = await readServer(read);
  const schemas = await readSchemas(read, [...exposed, ...extraSearchPath]);
  const schemaOids = schemas.map(({ oid }) => oid);
  const exposedOids = schemas.filter(({ name }) => exposed.includes(name)).map(({ oid }) => oid);

  const tables = await readTables(read, schemaOids);
  const distributedTables = await readDistributedTables((text) => read("distributed tables", text));
  const columns = await readColumns(read, schemaOids);
  const routines = await readRoutines(read, exposedOids, schemaOids);
  const policies = await readPolicies(read, schemaOids);
  const indexes = await readIndexes(read, schemaOids, server.version);

  const tableOids = new Set(tables.map(({ oid }) => oid));
  const viewTargets = await readViewColumns(read, schemaOids);
  const wholeViews = await readWholeViews(read, schemaOids);
  const openRoutines = await readOpenRoutines(read, schemaOids, wholeViews);
  const tablesBelowViews = [...resolveToTables(viewTargets).values()].flat().map(({ table }) => table);
  const hiddenOids = (oids: readonly number[]) => [...new Set(oids)].filter((oid) => oid !== 0 && !tableOids.has(oid));
  const constraints = await readConstraints(read, schemaOids, hiddenOids(tablesBelowViews), server.version);
  const hiddenTables = await readHiddenTables(
    read,
    hiddenOids([...tablesBelowViews, ...constraints.map(({ target }) => target)]),
  );

  const usedTypes = new Set(columns.map(({ type }) => type));
  for (const { types, returns } of routines) for (const type of [...types, returns]) usedTypes.add(type);
  const types = await readTypes(read, { used: usedTypes, schemas: schemaOids, tables: tableOids });

  return {
    server,
    extensions: await readExtensions(read),
    roles: await readRoles(read, loginRole, server.version),
    representations: await readRepresentations(read),
    rowAggregates: await readRowAggregates(read),
    distances: await readDistances(read),
    hiddenJunctions: await readHiddenJunctions(read, exposedOids),
    schemas,
    tables,
    distributedTables: new Map(
      distributedTables.map(({ oid, kind, column, colocation }): [number, Distribution] => {
        return [oid, { kind, column, colocation }];
      }),
    ),
    columns,
    routines,
    policies,
    indexes,
    constraints,
    hiddenTables,
    viewTargets,
    wholeViews,
    openRoutines,
    types,
  };
}

/** The rows by their oids, which are the references between the system catalogues. */
export type RowsByOid = ReturnType<typeof indexRowsByOid>;

export function indexRowsByOid({ tables, columns, hiddenTables, viewTargets, wholeViews, types }: CatalogRows) {
  const grantsOf = makeGrantsParser();
  const tableRows = new Map(tables.map((row) => [row.oid, row]));
  const columnRows = Map.groupBy(columns, ({ table }) => table);

  const tableName = (table: number): QualifiedName => {
    const { schema, name } = tableRows.get(table) ?? hiddenTables.get(table)!;
    return { schema, name };
  };
  const columnName = (table: number, position: number): string | undefined =>
    columnRows.get(table)?.find((row) => row.position === position)?.name ??
    hiddenTables.get(table)?.columns.get(position)?.name;

  return {
    types: toTypes(types, grantsOf),
    grantsOf,
    tableRows,
    columnRows,
    hiddenTables,
    viewTargets,
    wholeViews,
    /** The columns of tables that the columns of views show. */
    tableTargets: resolveToTables(viewTargets),
    tableName,
    columnName,
    columnNames: (table: number, positions: readonly number[]): string[] =>
      positions.flatMap((position) => columnName(table, position) ?? []),
  };
}
