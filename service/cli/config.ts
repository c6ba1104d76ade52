import { describeSettings, withDatabaseSettings, writeSettingsDocument } from "#config";
import { commandLine } from "#runtime";
import { runCommand, UsageError } from "./command/command.ts";
import { tryReadDatabaseSettings } from "./command/command-context.ts";

await runCommand({
  usage: `${commandLine("config")}
  Prints the settings in effect and where each comes from, with secrets masked. Includes those in the database, if it is running.
${commandLine("config", "--markdown", { silent: true })}
  Prints the reference of all settings (docs/settings.md).`,
  options: { markdown: { type: "boolean" } },
  async run(config, [word], { markdown }) {
    if (word !== undefined) throw new UsageError(`Unexpected argument "${word}".`);
    if (markdown) {
      console.log(writeSettingsDocument());
      return;
    }
    const databaseSettings = await tryReadDatabaseSettings(config);
    console.log(describeSettings(process.env, databaseSettings));
    for (const warning of withDatabaseSettings(config, databaseSettings).warnings) console.error(`warning: ${warning}`);
  },
});
