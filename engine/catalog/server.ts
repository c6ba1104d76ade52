import type { QualifiedName } from "./qualified-name.ts";
import type { Read } from "./reader.ts";

export type Server = {
  /** `server_version_num`: 180004 */
  readonly version: number;
  readonly release: string;
};

export type Extension = QualifiedName & { readonly version: string };

export type ServerRow = {
  version: number;
  release: string;
  database: string;
  owner: string;
  comment: string | null;
};

const SERVER = `
  select current_setting('server_version_num')::int as version, current_setting('server_version') as release,
    d.datname as database, pg_get_userbyid(d.datdba) as owner, shobj_description(d.oid, 'pg_database') as comment
  from pg_database d
  where d.datname = current_database()`;

const EXTENSIONS = `
  select e.extname as name, n.nspname as schema, e.extversion as version
  from pg_extension e join pg_namespace n on n.oid = e.extnamespace
  order by e.extname`;

export async function readServer(read: Read): Promise<ServerRow> {
  const [row] = await read<ServerRow>("server", SERVER);
  return row!;
}

export function readExtensions(read: Read): Promise<Extension[]> {
  return read("extensions", EXTENSIONS);
}
