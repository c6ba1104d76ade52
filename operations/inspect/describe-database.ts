import type pg from "pg";
import {
  type Catalog,
  type CatalogColumn,
  type CatalogTable,
  type CompositeType,
  type DataType,
  exposedSchemas,
  type Grants,
  makeGrantsParser,
} from "#catalog";
import type {
  DatabaseDescription,
  DescribedColumn,
  DescribedGrant,
  DescribedName,
  DescribedTable,
  DescribedType,
} from "#catalog/database-description";
import {
  assembleCatalog,
  type CatalogOptions,
  inSnapshot,
  queryWithoutKeepingLocks,
  readCatalogRows,
} from "#catalog/loading";
import { REALTIME_PUBLICATION } from "#live/stream";
import { isLockTimeout } from "#postgres/client";
import { unavailable } from "#runtime";
import { forEachInSlices } from "#runtime/concurrency";
import { lacksAdministratorPolicy } from "./administrator-access.ts";
import { readDescriptionRows, readSchemaNames, type TableDetails } from "./description-queries.ts";

/** Schemas of the service and of its tools, unless they are exposed. */
export const INTERNAL_SCHEMAS: ReadonlySet<string> = new Set([
  ...[
    "auth",
    "content_service",
    "content_service_watch",
    "extensions",
    "graphile_migrate",
    "graphile_worker",
    "realtime",
    "storage",
  ],
]);

/** The lock timeout. Definitions cannot be read while a migration has locked their table. */
const LOCK_PATIENCE_MS = 2_000;

type DescriptionOptions = {
  /** The catalogue that serves requests. */
  readonly served: Catalog;
  /** Null for all schemas. */
  readonly schema: string | null;
};

type DescriptionRows = Awaited<ReturnType<typeof readDescriptionRows>>;

/** Describes all schemas but those of Postgres, in one snapshot. Null if there is no such schema. The client must not be in a transaction. */
export async function describeDatabase(
  client: pg.ClientBase,
  { served, schema }: DescriptionOptions,
): Promise<DatabaseDescription | null> {
  const read = <Row extends object>(_subject: string, text: string, values?: readonly unknown[]) =>
    queryWithoutKeepingLocks<Row>(client, text, values);
  const rows = await inSnapshot(
    client,
    async () => {
      const schemas = (await readSchemaNames(read)).filter((name) => schema === null || name === schema);
      // Roles are described separately, since the catalogue has only those that requests can run with.
      const options: CatalogOptions = { schemas, extraSearchPath: [], loginRole: "" };
      return {
        options,
        catalog: await readCatalogRows(read, options),
        details: await readDescriptionRows(read, schemas),
      };
    },
    { lockPatienceMs: LOCK_PATIENCE_MS },
  ).catch(explainLockTimeout);
  if (rows.options.schemas.length === 0) return null;
  const identity = { version: 0, hash: "", timeZones: new Set<string>() };
  const catalog = await assembleCatalog(rows.catalog, rows.options, identity);
  return toDescription(catalog, rows.details, served);
}

function explainLockTimeout(error: unknown): never {
  if (!isLockTimeout(error)) throw error;
  throw unavailable("A migration has locked a table. Try again when it is done.", error);
}

async function toDescription(
  catalog: Catalog,
  details: DescriptionRows,
  served: Catalog,
): Promise<DatabaseDescription> {
  const exposed = new Set(exposedSchemas(served).map(({ name }) => name));
  const { database, server } = catalog;
  const schemas = [...catalog.schemas.values()];
  const grantsOf = makeGrantsParser();
  // Projects may have schemas of these names too; only the service's schema has this table.
  const hasVersions = (schema: string) => catalog.schemas.get(schema)?.tables.has("versions") === true;
  const isPlatformApi = (name: string) => name === "api" && hasVersions("api") && !hasVersions("content_service");
  return {
    database: { name: database.name, owner: database.owner, comment: database.comment, version: server.release },
    schemas: schemas.map(({ name, owner, comment, grants }) => ({
      ...{ name, owner, comment, exposed: exposed.has(name) },
      internal: !exposed.has(name) && (INTERNAL_SCHEMAS.has(name) || isPlatformApi(name)),
      grants: toGrants(grants),
    })),
    roles: details.roles.map((role) => ({ ...role, settable: served.roles.has(role.name) })),
    extensions: details.extensions,
    publications: details.publications.map((row) => ({ ...row, realtime: row.name === REALTIME_PUBLICATION })),
    types: schemas.flatMap(({ types }) => [...types.values()].flatMap((type) => toType(type) ?? [])),
    tables: await toTables(catalog, details, served, exposed),
    functions: details.functions.map(({ acl, callable, ...row }) => ({
      ...row,
      exposed: callable && exposed.has(row.schema),
      grants: toGrants(grantsOf(acl)),
    })),
    sequences: details.sequences,
  };
}

async function toTables(
  catalog: Catalog,
  details: DescriptionRows,
  served: Catalog,
  exposed: ReadonlySet<string>,
): Promise<DescribedTable[]> {
  const detailsOf = new Map(details.tables.map((row) => [row.oid, row]));
  const parts = {
    constraints: Map.groupBy(details.constraints, ({ table }) => table),
    indexes: Map.groupBy(details.indexes, ({ table }) => table),
    triggers: Map.groupBy(details.triggers, ({ table }) => table),
    dependents: Map.groupBy(details.dependents, ({ table }) => table),
    collations: Map.groupBy(details.collations, ({ table }) => table),
  };
  const published = new Set(
    details.publications.filter(({ name }) => name === REALTIME_PUBLICATION).flatMap(({ tables }) => tables.map(keyOf)),
  );
  const described: DescribedTable[] = [];
  const tables = [...catalog.schemas.values()].flatMap((schema) => [...schema.tables.values()]);
  await forEachInSlices(tables, (table) => {
    const found = detailsOf.get(table.oid);
    if (!found) return;
    const ofTable = <Part extends { table: number }>(groups: ReadonlyMap<number, readonly Part[]>) =>
      (groups.get(table.oid) ?? []).map(({ table: _, ...part }) => part);
    const collations = new Map(ofTable(parts.collations).map(({ column, collation }) => [column, collation]));
    described.push({
      ...toOwnProperties(table, found),
      lacks_administrator_policy: lacksAdministratorPolicy(served, table),
      exposed: exposed.has(table.schema) && !table.isPartition && table.extension === null,
      columns: [...table.columns.values()].map((column) =>
        toColumn(column, collations.get(column.name) ?? null, catalog),
      ),
      constraints: ofTable(parts.constraints),
      indexes: ofTable(parts.indexes),
      triggers: ofTable(parts.triggers),
      dependents: ofTable(parts.dependents),
      published: published.has(keyOf(table)),
    });
  });
  return addUpPartitions(described);
}

type OwnProperties = Omit<
  DescribedTable,
  | "exposed"
  | "lacks_administrator_policy"
  | "columns"
  | "constraints"
  | "indexes"
  | "triggers"
  | "dependents"
  | "published"
>;

function toOwnProperties(table: CatalogTable, details: TableDetails): OwnProperties {
  const { schema, name, kind, owner, comment, extension } = table;
  const changes = { insert: table.insertable, update: table.updatable, delete: table.deletable };
  return {
    ...{ schema, name, kind, owner, comment, extension },
    unlogged: details.unlogged,
    changes: (["insert", "update", "delete"] as const).filter((change) => changes[change]),
    primary_key: table.primaryKey,
    foreign_keys: table.foreignKeys.map((key) => ({
      ...{ name: key.name, columns: key.columns, target: key.target, target_columns: key.targetColumns },
      ...{ on_update: key.onUpdate, on_delete: key.onDelete },
    })),
    policies: table.policies.map(({ schemaGrants: _, ...policy }) => policy),
    row_security: table.rowSecurity,
    security_invoker: table.securityInvoker,
    replica_identity: table.replicaIdentity,
    grants: toGrants(table.grants),
    parents: details.parents,
    partition_key: details.partitionKey,
    partition_bound: details.partitionBound,
    server: details.server,
    definition: details.definition,
    estimated_rows: details.estimatedRows,
    bytes: details.bytes,
  };
}

function toColumn(column: CatalogColumn, collation: string | null, catalog: Catalog): DescribedColumn {
  const { name, position, sqlType, baseType, type, origin } = column;
  return {
    ...{ name, position, type: sqlType, base_type: baseType.sqlName },
    type_kind: baseType.kind as DescribedColumn["type_kind"],
    labels: labelsOf(baseType),
    type_name: catalog.schemas.get(type.schema)?.types.has(type.name) ? nameOf(type) : null,
    max_length: column.maxLength,
    ...{ nullable: column.nullable, default: column.default, identity: column.identity, generated: column.generated },
    ...{ collation, comment: column.comment, grants: toGrants(column.grants) },
    origin: origin && { ...nameOf(origin.table), column: origin.column },
  };
}

function labelsOf(type: DataType): readonly string[] | null {
  if (type.kind === "enum") return type.values;
  return type.kind === "array" || type.kind === "domain"
    ? labelsOf(type.kind === "array" ? type.element : type.over)
    : null;
}

const NO_DETAILS = { labels: [], base_type: null, not_null: false, default: null, checks: [], attributes: [] };

/** Returns null for the base types of extensions. */
function toType(type: DataType): DescribedType | null {
  const { comment } = type;
  const named = { ...nameOf(type), comment, ...NO_DETAILS };
  switch (type.kind) {
    case "enum":
      return { ...named, kind: type.kind, labels: type.values };
    case "domain": {
      const { overSql, notNull, default: initial, checks } = type;
      return { ...named, kind: type.kind, base_type: overSql, not_null: notNull, default: initial, checks };
    }
    case "range":
    case "multirange":
      return { ...named, kind: type.kind, base_type: type.element.sqlName };
    case "composite":
      return { ...named, kind: type.kind, attributes: attributesOf(type) };
    default:
      return null;
  }
}

function attributesOf({ attributes }: CompositeType): DescribedType["attributes"] {
  return [...attributes.values()].map(({ name, sqlType, comment }) => ({ name, type: sqlType, comment }));
}

/** Adds up the rows and bytes of partitions, because Postgres has none for partitioned tables. */
function addUpPartitions(tables: readonly DescribedTable[]): DescribedTable[] {
  const children = Map.groupBy(
    tables.flatMap((table) => (table.partition_bound === null ? [] : [{ table, parent: keyOf(table.parents[0]!) }])),
    ({ parent }) => parent,
  );
  const totalOf = (table: DescribedTable, size: "estimated_rows" | "bytes"): number | null => {
    if (table.kind !== "partitioned table") return table[size];
    const sizes = (children.get(keyOf(table)) ?? []).map((child) => totalOf(child.table, size));
    return sizes.includes(null) ? null : sizes.reduce<number>((sum, each) => sum + each!, 0);
  };
  return tables.map((table) =>
    table.kind === "partitioned table"
      ? { ...table, estimated_rows: totalOf(table, "estimated_rows"), bytes: totalOf(table, "bytes") }
      : table,
  );
}

function toGrants(grants: Grants): DescribedGrant[] {
  return [...grants].map(([role, privileges]) => ({ role, privileges: [...privileges] }));
}

function nameOf({ schema, name }: DescribedName): DescribedName {
  return { schema, name };
}

function keyOf({ schema, name }: DescribedName): string {
  return JSON.stringify([schema, name]);
}
