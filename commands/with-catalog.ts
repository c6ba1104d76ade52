import type { Catalog } from "../engine/catalog/catalog.ts";
import { loadCatalog } from "../engine/catalog/load.ts";
import { type Config, isEmbedded, withDatabaseSettings } from "../engine/config/config.ts";
import { bringUpToDate } from "../engine/migrate/bring-up-to-date.ts";
import { awaitLogin, loginRoleOf, type Postgres, reachPostgres } from "../engine/postgres.ts";
import { withClient } from "../engine/with-client.ts";
import { settingsOfDatabase } from "./in-force.ts";

type Means = {
  readonly catalog: Catalog;
  /** With what the database says of the settings. */
  readonly config: Config;
  readonly postgres: Postgres;
};

/** Reads the database as the service would, migrated if it is ours, and hands it to the work. */
export async function withCatalog<T>(given: Config, work: (means: Means) => Promise<T>): Promise<T> {
  const tell = (step: string) => console.error(step);
  const postgres = await reachPostgres(given, tell);
  try {
    // Without OWNER_DATABASE_URL the login is the owner, who has just been reached.
    if (given.ownerDatabaseUrl) await awaitLogin(given, tell, 0);
    await bringUpToDate({ settings: postgres.migrate, requestUrl: postgres.requestUrl, ours: isEmbedded(given), tell });
    const { config } = withDatabaseSettings(given, await settingsOfDatabase(given));
    const loginRole = await loginRoleOf(postgres.requestUrl);
    const { schemas, extraSearchPath } = config;
    const options = { schemas, extraSearchPath, loginRole, timeZones: false };
    const { catalog } = await withClient(postgres.ownerUrl, (client) => loadCatalog(client, options));
    return await work({ catalog, config, postgres });
  } finally {
    await postgres.close();
  }
}
