import { writeFile } from "node:fs/promises";
import type pg from "pg";
import type { Catalog } from "../engine/catalog/catalog.ts";
import { loadCatalog } from "../engine/catalog/load.ts";
import { type Config, isEmbedded, withDatabaseSettings } from "../engine/config/config.ts";
import { bringUpToDate } from "../engine/migrate/bring-up-to-date.ts";
import { reachPostgres } from "../engine/postgres.ts";
import { withClient } from "../engine/with-client.ts";
import { toClientTypes } from "../rest-gateway/client-types/client-types.ts";
import { runCommand, UsageError } from "./command.ts";
import { settingsOfDatabase } from "./in-force.ts";

async function readCatalog(client: pg.Client, { schemas, extraSearchPath }: Config): Promise<Catalog> {
  const { rows } = await client.query<{ name: string }>("select session_user as name");
  const options = { schemas, extraSearchPath, loginRole: rows[0]!.name, timeZones: false };
  return (await loadCatalog(client, options)).catalog;
}

await runCommand({
  usage: `npm run --silent types                       prints TypeScript types of the exposed schemas, for createClient<Database>() of supabase-js
npm run types -- --output database.types.ts  writes them to a file`,
  options: { output: { type: "string" } },
  async run(given, words, { output }) {
    if (words.length > 0) throw new UsageError(`"${words[0]}" is one word too many.`);
    const tell = (step: string) => console.error(step);
    const postgres = await reachPostgres(given, tell);
    try {
      await bringUpToDate({ settings: postgres.migrate, ours: isEmbedded(given), tell });
      const { config } = withDatabaseSettings(given, await settingsOfDatabase(given));
      const types = toClientTypes(await withClient(postgres.ownerUrl, (client) => readCatalog(client, config)));
      if (typeof output === "string") await writeFile(output, types);
      else process.stdout.write(types);
    } finally {
      await postgres.close();
    }
  },
});
