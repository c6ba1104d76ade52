import type { PrivilegeChecks } from "./access.ts";
import type { Relationships } from "./relationships.ts";
import type { CatalogRole } from "./roles.ts";
import type { MediaHandler } from "./routines.ts";
import type { CatalogSchema, DatabaseExtension, ServerVersion } from "./schemas.ts";
import type { CatalogTable } from "./tables.ts";
import type { DomainRepresentation, QualifiedName } from "./types.ts";

/**
 * What every interface is generated from: the database as Postgres described it in one snapshot. It never changes;
 * when the database does, there is a new one with the next version.
 */
export type Catalog = PrivilegeChecks &
  Relationships & {
    /** Counts from 1 in this process: a key for whatever is derived from the catalogue. */
    readonly version: number;
    /** Of the content: equal in every process that sees the same database, and after a restart. */
    readonly hash: string;
    readonly loadedAt: Date;
    readonly server: ServerVersion;
    readonly database: CatalogDatabase;
    readonly extensions: ReadonlyMap<string, DatabaseExtension>;
    /** The exposed schemas in the order they were configured, then those of the extra search path. */
    readonly schemas: ReadonlyMap<string, CatalogSchema>;
    /** The roles that the login can become, itself included. */
    readonly roles: ReadonlyMap<string, CatalogRole>;
    readonly mediaHandlers: readonly MediaHandler[];
    readonly representations: readonly DomainRepresentation[];
    /** The oids of tables that are related to others through junctions in schemas that are not served. */
    readonly hiddenJunctions: ReadonlySet<number>;
    /** The names of the aggregates that take a whole row. */
    readonly rowAggregates: ReadonlySet<string>;
    readonly timeZones: ReadonlySet<string>;
    findTable(name: QualifiedName): CatalogTable | undefined;
  };

type CatalogDatabase = {
  readonly name: string;
  readonly owner: string;
  readonly comment: string | null;
  /** `alter database … set`, and `alter role all set`. */
  readonly settings: ReadonlyMap<string, string>;
};

/** Those that are served to clients, in the order in which they were configured. */
export function exposedSchemas({ schemas }: Pick<Catalog, "schemas">): CatalogSchema[] {
  return [...schemas.values()].filter(({ exposed }) => exposed);
}

/** What clients could ask for, if they are let; the parts of a partitioned table are reached by the whole. */
export function exposedTables(catalog: Pick<Catalog, "schemas">): CatalogTable[] {
  return exposedSchemas(catalog)
    .flatMap(({ tables }) => [...tables.values()])
    .filter(({ isPartition, extension }) => !isPartition && extension === null);
}
