import { hasAnyColumnPrivilege, type PrivilegeChecks } from "./access.ts";
import type { DomainRepresentation, QualifiedName } from "./data-types.ts";
import type { DistanceFunction } from "./distances.ts";
import type { Relationships } from "./relationships.ts";
import type { CatalogRole } from "./roles.ts";
import type { MediaHandler, Routine } from "./routines.ts";
import type { CatalogSchema, DatabaseExtension, ServerVersion } from "./schemas.ts";
import type { CatalogTable } from "./tables.ts";

/** Smart tags of PostGraphile, such as `@behavior -insert`, at the start of a comment. */
const SMART_TAGS = /^(?:@[a-z]\w*(?:[^\S\n][^\n]*)?(?:\n|$))+/i;

/**
 * The schema of the database, read in one snapshot, from which all interfaces are generated. Immutable: when the
 * schema changes, there is a new object with the next version.
 */
export type Catalog = PrivilegeChecks &
  Relationships & {
    /** The number of the version, counted from 1 in this process; used as a cache key. */
    readonly version: number;
    /** The hash of the content: it is the same in all processes and after a restart. */
    readonly hash: string;
    readonly loadedAt: Date;
    readonly server: ServerVersion;
    readonly database: CatalogDatabase;
    readonly extensions: ReadonlyMap<string, DatabaseExtension>;
    /** The exposed schemas in the order they were configured, then those of the extra search path. */
    readonly schemas: ReadonlyMap<string, CatalogSchema>;
    /** The login role of requests and the roles that it can `set role` to. */
    readonly roles: ReadonlyMap<string, CatalogRole>;
    readonly mediaHandlers: readonly MediaHandler[];
    readonly representations: readonly DomainRepresentation[];
    /** The oids of tables that have a relationship through a junction table in a schema that is not exposed. */
    readonly hiddenJunctions: ReadonlySet<number>;
    /** The names of aggregates whose argument can be a whole row. */
    readonly rowAggregates: ReadonlySet<string>;
    /** The operators and functions for distances, with those of extensions. */
    readonly distances: readonly DistanceFunction[];
    readonly timeZones: ReadonlySet<string>;
    findTable(name: QualifiedName): CatalogTable | undefined;
  };

type CatalogDatabase = {
  readonly name: string;
  readonly owner: string;
  readonly comment: string | null;
  /** The settings of `alter database … set` and `alter role all set`. */
  readonly settings: ReadonlyMap<string, string>;
};

/** The exposed schemas, in the configured order. */
export function exposedSchemas({ schemas }: Pick<Catalog, "schemas">): CatalogSchema[] {
  return [...schemas.values()].filter(({ exposed }) => exposed);
}

/** The tables and views of exposed schemas, without partitions and objects of extensions. */
export function exposedTables(catalog: Pick<Catalog, "schemas">): CatalogTable[] {
  return exposedSchemas(catalog)
    .flatMap(({ tables }) => [...tables.values()])
    .filter(({ isPartition, extension }) => !isPartition && extension === null);
}

/** Returns the comment without smart tags; null if nothing remains. */
export function publicComment(comment: string | null): string | null {
  return comment?.replace(SMART_TAGS, "") || null;
}

/** True if the comment has the smart tag, such as `@notNull`. */
export function hasSmartTag(comment: string | null, tag: string): boolean {
  return readSmartTag(comment, tag) !== null;
}

/** Returns the text after the smart tag in its line, which may be empty; null without the tag. */
export function readSmartTag(comment: string | null, tag: string): string | null {
  const lines = (SMART_TAGS.exec(comment ?? "")?.[0] ?? "").split("\n");
  const line = lines.find((each) => each.split(/\s/, 1)[0] === `@${tag}`);
  return line === undefined ? null : line.slice(tag.length + 1).trim();
}

/** Returns the function of the cast between the types; null if there is none. */
export function findRepresentation(catalog: Catalog, source: string | null, target: string | null): string | null {
  return catalog.representations.find((known) => known.source === source && known.target === target)?.function ?? null;
}

const COLUMN_PRIVILEGES = ["select", "insert", "update"] as const;
const TABLE_PRIVILEGES = [...COLUMN_PRIVILEGES, "delete"] as const;

/** True if an error may name the table to the role: only if the role has a privilege on it. */
export function mayNameTable(catalog: Catalog, role: string, table: CatalogTable): boolean {
  if (!mayUseSchema(catalog, role, table.schema)) return false;
  return TABLE_PRIVILEGES.some((privilege) => hasAnyColumnPrivilege(catalog, role, privilege, table));
}

/** True if an error may name the column to the role: only if the role has a privilege on it. */
export function mayNameColumn(catalog: Catalog, role: string, table: CatalogTable, column: string): boolean {
  return COLUMN_PRIVILEGES.some((privilege) => catalog.hasPrivilege(role, privilege, table, column));
}

/** True if an error may name the function to the role: only if the role may call it. */
export function mayCallRoutine(catalog: Catalog, role: string, routine: Routine): boolean {
  return mayUseSchema(catalog, role, routine.schema) && catalog.hasPrivilege(role, "execute", routine);
}

function mayUseSchema(catalog: Catalog, role: string, name: string): boolean {
  const schema = catalog.schemas.get(name);
  return schema !== undefined && catalog.hasPrivilege(role, "usage", schema);
}
