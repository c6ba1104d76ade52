import { readColumns } from "./columns.ts";
import { readConstraints } from "./constraints.ts";
import { readHiddenJunctions } from "./hidden-junctions.ts";
import { readHiddenTables } from "./hidden-tables.ts";
import { readIndexes } from "./indexes.ts";
import { readPolicies } from "./policies.ts";
import type { Read } from "./reader.ts";
import { readRepresentations } from "./representations.ts";
import { readRoles } from "./roles.ts";
import { readRoutines } from "./routines.ts";
import { readRowAggregates } from "./row-aggregates.ts";
import { readSchemas } from "./schemas.ts";
import { readExtensions, readServer } from "./server.ts";
import { readTables } from "./tables.ts";
import { readTypes } from "./types.ts";
import { readViewTargets, toTableTargets } from "./view-columns.ts";

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
export type Content = Awaited<ReturnType<typeof readContent>>;

export async function readContent(read: Read, { schemas: exposed, extraSearchPath, loginRole }: CatalogOptions) {
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
  const viewTargets = await readViewTargets(read, schemaOids);
  const beneathViews = [...toTableTargets(viewTargets).values()].flat().map(({ table }) => table);
  const hiddenOids = (oids: readonly number[]) => [...new Set(oids)].filter((oid) => oid !== 0 && !tableOids.has(oid));
  const constraints = await readConstraints(read, schemaOids, hiddenOids(beneathViews), server.version);
  const hiddenTables = await readHiddenTables(
    read,
    hiddenOids([...beneathViews, ...constraints.map(({ target }) => target)]),
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
