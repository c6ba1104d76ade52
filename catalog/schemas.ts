import type { CatalogQuery } from "./catalog-query.ts";
import type { DataType, QualifiedName } from "./data-types.ts";
import type { Grants } from "./privileges.ts";
import type { Routine } from "./routines.ts";
import type { CatalogTable } from "./tables.ts";

const SERVER = `
  select current_setting('server_version_num')::int as version, current_setting('server_version') as release,
    d.datname as database, pg_get_userbyid(d.datdba) as owner, shobj_description(d.oid, 'pg_database') as comment
  from pg_database d
  where d.datname = current_database()`;

const EXTENSIONS = `
  select e.extname as name, n.nspname as schema, e.extversion as version
  from pg_extension e join pg_namespace n on n.oid = e.extnamespace
  order by e.extname`;

export type CatalogSchema = {
  readonly name: string;
  /** False for a schema that is only on the extra search path. */
  readonly exposed: boolean;
  readonly owner: string;
  readonly comment: string | null;
  readonly grants: Grants;
  readonly tables: ReadonlyMap<string, CatalogTable>;
  /** The functions by name, overloads with the fewest arguments first; for exposed schemas only. */
  readonly routines: ReadonlyMap<string, readonly Routine[]>;
  readonly types: ReadonlyMap<string, DataType>;
};

type NamespaceRow = { oid: number; name: string; owner: string; comment: string | null; acl: string };

const SCHEMAS = `
  select n.oid, n.nspname as name, pg_get_userbyid(n.nspowner) as owner, d.description as comment,
    array_to_string(coalesce(n.nspacl, acldefault('n', n.nspowner)), E'\\n') as acl
  from pg_namespace n
    left join pg_description d on d.classoid = 'pg_namespace'::regclass and d.objoid = n.oid
  where n.nspname = any ($1)
  order by n.nspname`;

export function readSchemas(read: CatalogQuery, names: readonly string[]): Promise<NamespaceRow[]> {
  return read("schemas", SCHEMAS, [names]);
}

export type ServerVersion = {
  /** The value of `server_version_num`: 180004. */
  readonly version: number;
  readonly release: string;
};

export type DatabaseExtension = QualifiedName & { readonly version: string };

type ServerRow = {
  version: number;
  release: string;
  database: string;
  owner: string;
  comment: string | null;
};

export async function readServer(read: CatalogQuery): Promise<ServerRow> {
  const [row] = await read<ServerRow>("server", SERVER);
  return row!;
}

export function readExtensions(read: CatalogQuery): Promise<DatabaseExtension[]> {
  return read("extensions", EXTENSIONS);
}

type ZoneRow = { name: string };

/**
 * Reads the names that `set timezone` and `Prefer: timezone=…` accept. Postgres reads some 600 files for it, so this is slow
 * and done once per server version.
 */
export async function readTimeZones(read: CatalogQuery): Promise<ReadonlySet<string>> {
  const rows = await read<ZoneRow>("timeZones", "select name from pg_timezone_names order by name");
  return new Set(rows.map(({ name }) => name));
}
