import { type Config, isEmbedded } from "../engine/config/config.ts";
import { type DatabaseSettings, readDatabaseSettings } from "../engine/config/in-database.ts";
import { asPgReads } from "../engine/connection-string.ts";
import { joinPostgres } from "../engine/postgres.ts";

/** What the database says of the settings; nothing, with a word about it, where it cannot be asked. */
export async function settingsOfDatabase(config: Config): Promise<DatabaseSettings> {
  if (!config.databaseConfig) return new Map();
  try {
    const postgres = isEmbedded(config) ? await joinPostgres(config) : { requestUrl: asPgReads(config.databaseUrl!) };
    if (!postgres) return new Map();
    return await readDatabaseSettings(postgres.requestUrl, config.preConfig);
  } catch (error) {
    console.error(`warning: what the database says of the settings is unknown: ${(error as Error).message}`);
    return new Map();
  }
}
