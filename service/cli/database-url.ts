import { joinPostgres, toClientUrl } from "#cluster";
import { isEmbedded } from "#config";
import { commandLine } from "#runtime";
import { runCommand, UsageError } from "./command/command.ts";

await runCommand({
  usage: `${commandLine("database-url", "", { silent: true })}
  prints the owner's connection string

Example:
  psql "$(${commandLine("database-url", "", { silent: true })})"`,
  async run(config, [word]) {
    if (word !== undefined) throw new UsageError(`Unexpected argument "${word}".`);
    if (!isEmbedded(config)) {
      console.log(toClientUrl(config.directDatabaseUrl ?? config.ownerDatabaseUrl ?? config.databaseUrl!));
      return;
    }
    const postgres = await joinPostgres(config);
    if (!postgres)
      throw new Error(`The embedded database is not running: start it by ${commandLine("start")}, then ask again.`);
    console.log(postgres.clientUrl);
  },
});
