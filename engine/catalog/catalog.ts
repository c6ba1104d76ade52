import type { Access } from "./access.ts";
import type { MediaHandler } from "./media-handlers.ts";
import type { QualifiedName } from "./qualified-name.ts";
import type { Relationships } from "./relationships.ts";
import type { Representation } from "./representations.ts";
import type { Role } from "./roles.ts";
import type { Schema } from "./schemas.ts";
import type { Extension, Server } from "./server.ts";
import type { Table } from "./tables.ts";

/**
 * What every interface is generated from: the database as Postgres described it in one snapshot. It never changes;
 * when the database does, there is a new one with the next version.
 */
export type Catalog = Access &
  Relationships & {
    /** Counts from 1 in this process: a key for whatever is derived from the catalogue. */
    readonly version: number;
    /** Of the content: equal in every process that sees the same database, and after a restart. */
    readonly hash: string;
    readonly loadedAt: Date;
    readonly server: Server;
    readonly database: Database;
    readonly extensions: ReadonlyMap<string, Extension>;
    /** The exposed schemas in the order they were configured, then those of the extra search path. */
    readonly schemas: ReadonlyMap<string, Schema>;
    /** The roles that the login can become, itself included. */
    readonly roles: ReadonlyMap<string, Role>;
    readonly mediaHandlers: readonly MediaHandler[];
    readonly representations: readonly Representation[];
    /** The oids of tables that are related to others through junctions in schemas that are not served. */
    readonly hiddenJunctions: ReadonlySet<number>;
    /** The names of the aggregates that take a whole row. */
    readonly rowAggregates: ReadonlySet<string>;
    readonly timeZones: ReadonlySet<string>;
    findTable(name: QualifiedName): Table | undefined;
  };

export type Database = {
  readonly name: string;
  readonly owner: string;
  readonly comment: string | null;
  /** `alter database … set`, and `alter role all set`. */
  readonly settings: ReadonlyMap<string, string>;
};
