import type { PostgresUrls } from "#cluster";
import { copySchema } from "#cluster/archive";
import { type MigrateSettings, withScratchDatabase } from "#migrate";

/** Runs the work on a copy of the database in the scratch database, whose settings it gets. */
export async function withSchemaCopy<T>(
  { directUrl, migrate }: PostgresUrls,
  { withRows }: { readonly withRows: boolean },
  work: (settings: MigrateSettings) => Promise<T>,
): Promise<T> {
  const { shadowUrl, rootUrl } = migrate;
  return withScratchDatabase(shadowUrl, rootUrl, async () => {
    for (const warning of await copySchema(directUrl, shadowUrl, { withRows })) console.error(`warning: ${warning}`);
    return work({ ...migrate, url: shadowUrl });
  });
}
