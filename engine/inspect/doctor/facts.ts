import type pg from "pg";
import type { Catalog } from "../../catalog/catalog.ts";
import type { Config } from "../../config/config.ts";

/** What the examination looks at. */
export type Facts = {
  readonly catalog: Catalog;
  readonly config: Config;
  /** Roles that requests can have without special rights: strangers and whoever signs in. */
  readonly clients: readonly string[];
  readonly login: Login;
  readonly stream: Stream;
};

export type Login = {
  readonly name: string;
  readonly superuser: boolean;
  readonly bypassesRowSecurity: boolean;
  readonly inherits: boolean;
  /** Whether it owns what is served, and is thereby not bound by policies. */
  readonly ownsTables: boolean;
};

export type Stream = {
  readonly walLevel: string;
  /** In bytes; null: as much as there is, until the disk is full. */
  readonly mostKept: string;
  /** Tables whose changes are published, as `schema.name`. */
  readonly published: ReadonlySet<string> | null;
};

const LOGIN = `
  select rolname as name, rolsuper as superuser, rolbypassrls as "bypassesRowSecurity", rolinherit as inherits,
    exists (
      select from pg_class where relowner = pg_roles.oid and relkind in ('r', 'p') and relnamespace = any ($1::text[]::regnamespace[])
    ) as "ownsTables"
  from pg_roles where rolname = session_user`;

const STREAM = `
  select current_setting('wal_level') as "walLevel", current_setting('max_slot_wal_keep_size') as "mostKept",
    (select array_agg(schemaname || '.' || tablename) from pg_publication_tables where pubname = $1) as published`;

type StreamRow = Omit<Stream, "published"> & { published: string[] | null };

export async function readLogin(login: pg.ClientBase, { catalog }: Pick<Facts, "catalog">): Promise<Login> {
  const exposed = [...catalog.schemas.values()].filter((schema) => schema.exposed).map(({ name }) => `"${name}"`);
  const { rows } = await login.query<Login>(LOGIN, [exposed]);
  return rows[0]!;
}

export async function readStream(owner: pg.ClientBase, publication: string): Promise<Stream> {
  const { rows } = await owner.query<StreamRow>(STREAM, [publication]);
  const { walLevel, mostKept, published } = rows[0]!;
  return { walLevel, mostKept, published: published && new Set(published) };
}
