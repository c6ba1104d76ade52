import type { AsOwner } from "../../engine/database/as-owner.ts";
import { oneAtATime } from "../../engine/one-at-a-time.ts";

type Published = { readonly schema: string; readonly table: string };

const TABLES = "select schemaname as schema, tablename as table from pg_publication_tables where pubname = $1";

/** Whether the stream has changes of a table; null stands for any. Whoever asks at about the same time is answered together. */
export function makePublished(asOwner: AsOwner, publication: string) {
  const tables = oneAtATime(async () => {
    const { rows } = await asOwner((client) => client.query<Published>(TABLES, [publication]));
    return rows;
  });
  return async (schema: string | null, table: string | null): Promise<boolean> =>
    (await tables("")).some((each) => (schema ?? each.schema) === each.schema && (table ?? each.table) === each.table);
}
