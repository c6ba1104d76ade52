import { makeAccess } from "./access.ts";
import { assembleTables } from "./assemble-tables.ts";
import { type ByOid, indexByOid } from "./by-oid.ts";
import type { Catalog } from "./catalog.ts";
import type { CatalogOptions, Content } from "./content.ts";
import { toMediaHandlers } from "./media-handlers.ts";
import type { QualifiedName } from "./qualified-name.ts";
import { makeRelationships } from "./relationships.ts";
import { toRoles, toSettings } from "./roles.ts";
import { type Routine, toRoutine } from "./routines.ts";
import type { Schema } from "./schemas.ts";
import { findSurfaces, toStoredKeys } from "./surfaces.ts";
import type { Table } from "./tables.ts";

type Edition = Pick<Catalog, "version" | "hash" | "timeZones">;

/** Rows of the system catalogues -> the catalogue. Oids are followed here and not after. */
export async function assembleCatalog(content: Content, options: CatalogOptions, edition: Edition): Promise<Catalog> {
  const { server, extensions, representations, rowAggregates } = content;
  const byOid = indexByOid(content);
  const routines = content.routines.map((row) => toRoutine(row, byOid.types, byOid.grantsOf(row.acl)));
  const tables = await assembleTables(content, byOid, routines, options.extraSearchPath);
  const schemas = assembleSchemas(content, byOid, routines, tables, options);
  const roles = toRoles(content.roles, options.loginRole);

  const findTable = ({ schema, name }: QualifiedName) => schemas.get(schema)?.tables.get(name);
  const isExposed = ({ schema }: QualifiedName) => schemas.get(schema)?.exposed ?? false;
  return Object.freeze({
    ...edition,
    loadedAt: new Date(),
    server: { version: server.version, release: server.release },
    database: {
      name: server.database,
      owner: server.owner,
      comment: server.comment,
      settings: toSettings(content.roles.settings.filter(({ role }) => role === null)),
    },
    extensions: new Map(extensions.map((extension) => [extension.name, extension])),
    schemas,
    roles: roles.settable,
    mediaHandlers: toMediaHandlers(routines),
    representations,
    rowAggregates: new Set(rowAggregates),
    hiddenJunctions: new Set(content.hiddenJunctions),
    findTable,
    ...makeRelationships({
      keys: toStoredKeys(content.constraints),
      surfaces: findSurfaces(tables, byOid, isExposed),
      isExposed,
      findTable,
    }),
    ...makeAccess(roles),
  });
}

function assembleSchemas(
  content: Content,
  { types, grantsOf }: ByOid,
  routines: readonly Routine[],
  tables: ReadonlyMap<number, Table>,
  { schemas: exposed, extraSearchPath }: CatalogOptions,
): ReadonlyMap<string, Schema> {
  const rows = new Map(content.schemas.map((row) => [row.name, row]));
  const tablesIn = Map.groupBy(tables.values(), ({ schema }) => schema);
  const routinesIn = Map.groupBy(routines, ({ schema }) => schema);
  // Arrays and the row types of tables are found through what they are made of.
  const ownTypes = types.all.filter((type) => type.kind !== "array" && !(type.kind === "composite" && type.table));
  const typesIn = Map.groupBy(ownTypes, ({ schema }) => schema);

  const schemas = new Map<string, Schema>();
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
