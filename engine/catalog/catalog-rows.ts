import type { CatalogQuery } from "./catalog-reader.ts";
import { readConstraints, readHiddenJunctions, readIndexes } from "./constraints.ts";
import { makeGrantsParser, readRoles } from "./roles.ts";
import { readRoutines, readRowAggregates } from "./routines.ts";
import { readExtensions, readSchemas, readServer } from "./schemas.ts";
import { readColumns, readPolicies, readTables } from "./tables.ts";
import { type QualifiedName, readRepresentations, readTypes, toTypes } from "./types.ts";
import { readHiddenTables, readViewColumns, resolveToTables } from "./view-columns.ts";

/** What of the database is read. */
export type CatalogOptions = {
  /** Served to clients; the first is the default. */
  readonly schemas: readonly string[];
  readonly extraSearchPath: readonly string[];
  /** Whose roles matter: what it can become is what callers can be. */
  readonly loginRole: string;
  /** False: their names are not read, and none is known. */
  readonly timeZones?: boolean;
};

/** The rows that the catalogue is made of, one subject after another: each is one bounded query, or a few. */
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
  const columns = await readColumns(read, schemaOids);
  const routines = await readRoutines(read, exposedOids, schemaOids);
  const policies = await readPolicies(read, schemaOids);
  const indexes = await readIndexes(read, schemaOids, server.version);

  const tableOids = new Set(tables.map(({ oid }) => oid));
  const viewTargets = await readViewColumns(read, schemaOids);
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
    hiddenJunctions: await readHiddenJunctions(read, exposedOids),
    schemas,
    tables,
    columns,
    routines,
    policies,
    indexes,
    constraints,
    hiddenTables,
    viewTargets,
    types,
  };
}

/** What was read, to be found by the numbers under which the system catalogues point to each other. */
export type RowsByOid = ReturnType<typeof indexRowsByOid>;

export function indexRowsByOid({ tables, columns, hiddenTables, viewTargets, types }: CatalogRows) {
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
    /** What views show, followed down to the tables. */
    tableTargets: resolveToTables(viewTargets),
    tableName,
    columnName,
    columnNames: (table: number, positions: readonly number[]): string[] =>
      positions.flatMap((position) => columnName(table, position) ?? []),
  };
}
