import type { QualifiedName } from "../../engine/catalog/types.ts";
import { batchLookups } from "../../engine/concurrency/batched-lookup.ts";
import type { AsOwner } from "../../engine/database/owner-pool.ts";

/** The tables and columns that are in the change stream. */
export type Publication = {
  /** Whether it has the table; null stands for any. */
  has(schema: string | null, table: string | null): Promise<boolean>;
  /** The columns of a table that are published. Null: all. */
  columns(table: QualifiedName): Promise<ReadonlySet<string> | null>;
};

type PublishedTable = { readonly schema: string; readonly table: string; readonly columns: readonly string[] | null };

// Postgres 15 and later publish column lists.
const PUBLISHED_TABLES = `
  select schemaname as schema, tablename as table, to_json(published) -> 'attnames' as columns
  from pg_publication_tables as published where pubname = $1`;

/** Concurrent calls share one query. */
export function makePublication(asOwner: AsOwner, publication: string): Publication {
  const tables = batchLookups(async () => {
    const { rows } = await asOwner((client) => client.query<PublishedTable>(PUBLISHED_TABLES, [publication]));
    return rows;
  });
  return {
    has: async (schema, table) =>
      (await tables("")).some((row) => (schema ?? row.schema) === row.schema && (table ?? row.table) === row.table),
    columns: async ({ schema, name }) => {
      const row = (await tables("")).find((each) => each.schema === schema && each.table === name);
      return row?.columns ? new Set(row.columns) : null;
    },
  };
}
