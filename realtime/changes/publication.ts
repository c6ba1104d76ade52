import { type QualifiedName, readDistributedTables } from "#catalog";
import type { AsOwner } from "#postgres/database";
import { batchLookups } from "#runtime/concurrency";

/**
 * The tables and columns that are in the change stream. Tables whose rows are elsewhere are not, although they may be in the publication:
 * distributed tables, and those with a foreign table as a partition.
 */
export type Publication = {
  /** Resolves with true if the publication has the table; null stands for any schema or table. */
  has(schema: string | null, table: string | null): Promise<boolean>;
  /** Returns the published columns of a table; null if all are published. */
  columns(table: QualifiedName): Promise<ReadonlySet<string> | null>;
  /** Returns a digest that changes with the set of tables, and when a table was removed and added again. */
  digest(): Promise<string>;
  members(): Promise<readonly PublicationMember[]>;
};

/** `mark` changes when the table was removed and added again. */
export type PublicationMember = QualifiedName & { readonly mark: string };

type PublishedTable = { readonly schema: string; readonly table: string; readonly columns: readonly string[] | null };

// Postgres 15 and later publish column lists.
const PUBLISHED_TABLES = `
  select schemaname as schema, tablename as table, pg_catalog.to_json(published.*) operator(pg_catalog.->) 'attnames' as columns
  from pg_catalog.pg_publication_tables as published
  where pubname = $1 and (schemaname, tablename) not in (
    select namespace.nspname, class.relname
    from pg_catalog.pg_class as part
    cross join lateral pg_catalog.pg_partition_ancestors(part.oid) as ancestor (oid)
    join pg_catalog.pg_class as class on class.oid = ancestor.oid
    join pg_catalog.pg_namespace as namespace on namespace.oid = class.relnamespace
    where part.relkind = 'f' and part.relispartition
  )`;

const MEMBERS = `
  select tables.schemaname as schema, tables.tablename as name,
    pg_catalog.concat_ws(' ', publication.oid, publication.xmin, member.oid, member.xmin) as mark
  from pg_catalog.pg_publication as publication
  join pg_catalog.pg_publication_tables as tables on tables.pubname = publication.pubname
  join pg_catalog.pg_namespace as namespace on namespace.nspname = tables.schemaname
  join pg_catalog.pg_class as class on class.relnamespace = namespace.oid and class.relname = tables.tablename
  left join pg_catalog.pg_publication_rel as member on member.prpubid = publication.oid and member.prrelid = class.oid
  where publication.pubname = $1`;

const DIGEST = `
  select pg_catalog.concat(pg_catalog.count(*), ' ', pg_catalog.bit_xor(pg_catalog.hashtextextended(pg_catalog.concat_ws(' ', schema, name, mark), 0))) as digest
  from (${MEMBERS}) as members`;

/** Makes a publication, in which concurrent calls share one query. */
export function makePublication(asOwner: AsOwner, publication: string): Publication {
  const readWithDistributed = <Row extends object>(text: string) =>
    asOwner(async (client) => {
      const { rows } = await client.query<Row>(text, [publication]);
      return { rows, distributed: await readDistributedTables(async (query) => (await client.query(query)).rows) };
    });
  const tables = batchLookups(async () => {
    const { rows, distributed } = await readWithDistributed<PublishedTable>(PUBLISHED_TABLES);
    return rows.filter(({ schema, table }) => !isAmong({ schema, name: table }, distributed));
  });
  return {
    has: async (schema, table) =>
      (await tables("")).some((row) => (schema ?? row.schema) === row.schema && (table ?? row.table) === row.table),
    columns: async ({ schema, name }) => {
      const row = (await tables("")).find((each) => each.schema === schema && each.table === name);
      return row?.columns ? new Set(row.columns) : null;
    },
    digest: async () => {
      const { rows, distributed } = await readWithDistributed<{ digest: string }>(DIGEST);
      return [rows[0]!.digest, ...distributed.map(({ oid }) => oid).sort()].join(" ");
    },
    members: async () => {
      const { rows, distributed } = await readWithDistributed<PublicationMember>(MEMBERS);
      return rows.filter((member) => !isAmong(member, distributed));
    },
  };
}

function isAmong({ schema, name }: QualifiedName, tables: readonly QualifiedName[]): boolean {
  return tables.some((other) => other.schema === schema && other.name === name);
}
