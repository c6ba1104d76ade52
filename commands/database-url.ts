import { isEmbedded } from "../engine/config/config.ts";
import { joinPostgres } from "../engine/postgres.ts";
import { runCommand } from "./command.ts";

await runCommand({
  usage:
    'npm run --silent database-url   prints the owner\'s connection string: psql "$(npm run --silent database-url)"',
  async run(config) {
    if (!isEmbedded(config)) {
      console.log(config.ownerDatabaseUrl ?? config.databaseUrl);
      return;
    }
    const postgres = await joinPostgres(config);
    if (!postgres) throw new Error("The embedded database is not running: start it with npm start, then ask again.");
    console.log(postgres.clientUrl);
  },
});
