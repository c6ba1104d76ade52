import { withClient } from "#postgres/client";
import { restoreLines } from "./restore-archive.ts";
import { archiveLines } from "./write-archive.ts";

/** The tables whose rows decide what a database is and how it is served: applied migrations and versions of the interface. */
const DEFINING_TABLES = /^"graphile_migrate"\.|^"api"\."versions"$/;

/** Creates the objects of a database in an empty one on the same server, without rows. Blocks nobody who reads or writes rows. */
export async function copySchema(sourceUrl: string, targetUrl: string): Promise<void> {
  await withClient(sourceUrl, (source) =>
    withClient(targetUrl, async (target) => {
      const lines = archiveLines(source, { onlyRowsOf: ({ table }) => DEFINING_TABLES.test(table) });
      await restoreLines(target, lines);
    }),
  );
}
