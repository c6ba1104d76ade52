import type { Grants } from "./grants.ts";
import type { Read } from "./reader.ts";
import type { Routine } from "./routines.ts";
import type { Table } from "./tables.ts";
import type { DataType } from "./types.ts";

export type Schema = {
  readonly name: string;
  /** Served to clients; else it is only on the extra search path. */
  readonly exposed: boolean;
  readonly owner: string;
  readonly comment: string | null;
  readonly grants: Grants;
  readonly tables: ReadonlyMap<string, Table>;
  /** By name; the overloads of one name with the fewest arguments first. Exposed schemas only. */
  readonly routines: ReadonlyMap<string, readonly Routine[]>;
  readonly types: ReadonlyMap<string, DataType>;
};

export type SchemaRow = { oid: number; name: string; owner: string; comment: string | null; acl: string };

const SCHEMAS = `
  select n.oid, n.nspname as name, pg_get_userbyid(n.nspowner) as owner, d.description as comment,
    array_to_string(coalesce(n.nspacl, acldefault('n', n.nspowner)), E'\\n') as acl
  from pg_namespace n
    left join pg_description d on d.classoid = 'pg_namespace'::regclass and d.objoid = n.oid
  where n.nspname = any ($1)
  order by n.nspname`;

export function readSchemas(read: Read, names: readonly string[]): Promise<SchemaRow[]> {
  return read("schemas", SCHEMAS, [names]);
}
