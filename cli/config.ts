import { withDatabaseSettings } from "../engine/config/config.ts";
import { describeSettings, writeSettingsDocument } from "../engine/config/settings-document.ts";
import { commandLine, runCommand, UsageError } from "./command.ts";
import { tryReadDatabaseSettings } from "./with-database.ts";

await runCommand({
  usage: `${commandLine("config")}
  prints the settings in force and where they come from, secrets masked; those of the database when it is running
${commandLine("config", "--markdown", { silent: true })}
  prints all settings as a page (docs/settings.md)`,
  options: { markdown: { type: "boolean" } },
  async run(config, [word], { markdown }) {
    if (word !== undefined) throw new UsageError(`"${word}" is one word too many.`);
    if (markdown) {
      console.log(writeSettingsDocument());
      return;
    }
    const databaseSettings = await tryReadDatabaseSettings(config);
    console.log(describeSettings(process.env, databaseSettings));
    for (const warning of withDatabaseSettings(config, databaseSettings).warnings) console.error(`warning: ${warning}`);
  },
});
