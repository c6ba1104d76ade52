import type { QualifiedName } from "../../engine/catalog/types.ts";
import { batchLookups } from "../../engine/concurrency/batched-lookup.ts";
import type { AsOwner } from "../../engine/database/owner-pool.ts";

/** What the stream has changes of. */
export type Publication = {
  /** Whether of this table; null stands for any. */
  has(schema: string | null, table: string | null): Promise<boolean>;
  /** Those of a table's columns that changes have: a publication may leave some out. Null: nothing is known to be left out. */
  columns(table: QualifiedName): Promise<ReadonlySet<string> | null>;
};

type PublishedTable = { readonly schema: string; readonly table: string; readonly columns: readonly string[] | null };

// Publications have columns since Postgres 15.
const PUBLISHED_TABLES = `
  select schemaname as schema, tablename as table, to_json(published) -> 'attnames' as columns
  from pg_publication_tables as published where pubname = $1`;

/** Whoever asks at about the same time is answered together. */
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
