import type { QualifiedName } from "./data-types.ts";

/** How Citus stores the rows of a table. */
export type Distribution = {
  /**
   * `by column`: in shards on several nodes; `one shard`: with the tables of its schema; `reference`: on every node; `local`: on the
   * coordinator.
   */
  readonly kind: "by column" | "one shard" | "reference" | "local";
  /** The distribution column; null for other kinds, and for a view that does not show it. */
  readonly column: string | null;
  /** Tables with the same number have the rows with equal values of their distribution columns on one node. */
  readonly colocation: number;
};

type DistributedTable = QualifiedName & Distribution & { readonly oid: number };

type RunQuery = <Row extends object>(text: string) => Promise<readonly Row[]>;

const HAS_CITUS = "select pg_catalog.to_regclass('pg_catalog.pg_dist_partition') is not null as \"isDistributed\"";
/** The key is the node tree of a column. A table without one is a reference table if its changes are committed in two phases (`t`). */
const DISTRIBUTED_TABLES = `
  select class.oid::pg_catalog.int8::pg_catalog.float8 as oid, namespace.nspname as schema, class.relname as name,
    case when distributed.partmethod operator(pg_catalog.<>) 'n' then 'by column' when distributed.repmodel operator(pg_catalog.=) 't' then 'reference'
      when distributed.colocationid operator(pg_catalog.>) 0 then 'one shard' else 'local' end as kind,
    attribute.attname as column, distributed.colocationid as colocation
  from pg_catalog.pg_dist_partition as distributed
  join pg_catalog.pg_class as class on class.oid operator(pg_catalog.=) distributed.logicalrelid
  join pg_catalog.pg_namespace as namespace on namespace.oid operator(pg_catalog.=) class.relnamespace
  left join pg_catalog.pg_attribute as attribute on attribute.attrelid operator(pg_catalog.=) class.oid
    and attribute.attnum operator(pg_catalog.=) pg_catalog."substring"(distributed.partkey, ':varattno (\\d+)')::pg_catalog.int2`;

/**
 * Returns the tables whose rows Citus stores: distributed tables, reference tables, and local tables that it manages. Changes of
 * their rows are in the WAL of other nodes, or under the name of a shard.
 */
export async function readDistributedTables(query: RunQuery): Promise<readonly DistributedTable[]> {
  const [server] = await query<{ isDistributed: boolean }>(HAS_CITUS);
  return server!.isDistributed ? query<DistributedTable>(DISTRIBUTED_TABLES) : [];
}
