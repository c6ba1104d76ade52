import type { QualifiedName } from "./types.ts";

export type DistributedTable = QualifiedName & { readonly oid: number };

type RunQuery = <Row extends object>(text: string) => Promise<readonly Row[]>;

const HAS_CITUS = "select pg_catalog.to_regclass('pg_catalog.pg_dist_partition') is not null as \"isDistributed\"";
const DISTRIBUTED_TABLES = `
  select class.oid::pg_catalog.int8::pg_catalog.float8 as oid, namespace.nspname as schema, class.relname as name
  from pg_catalog.pg_dist_partition as distributed
  join pg_catalog.pg_class as class on class.oid operator(pg_catalog.=) distributed.logicalrelid
  join pg_catalog.pg_namespace as namespace on namespace.oid operator(pg_catalog.=) class.relnamespace`;

/**
 * Returns the tables whose rows Citus stores in shards: distributed tables, reference tables, and local tables that it manages. Changes of
 * their rows are in the WAL of other nodes, or under the name of a shard.
 */
export async function readDistributedTables(query: RunQuery): Promise<readonly DistributedTable[]> {
  const [server] = await query<{ isDistributed: boolean }>(HAS_CITUS);
  return server!.isDistributed ? query<DistributedTable>(DISTRIBUTED_TABLES) : [];
}
