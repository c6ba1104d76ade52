import { withDatabaseSettings } from "../engine/config/config.ts";
import { describeSettings, settingsDocument } from "../engine/config/describe.ts";
import { runCommand, UsageError } from "./command.ts";
import { commandLine } from "./command-line.ts";
import { settingsOfDatabase } from "./in-force.ts";

await runCommand({
  usage: `${commandLine("config")}
  prints the settings in force and where they come from, secrets masked; those of the database when it is running
${commandLine("config", "--markdown", { silent: true })}
  prints all settings as a page (docs/settings.md)`,
  options: { markdown: { type: "boolean" } },
  async run(config, [word], { markdown }) {
    if (word !== undefined) throw new UsageError(`"${word}" is one word too many.`);
    if (markdown) {
      console.log(settingsDocument());
      return;
    }
    const given = await settingsOfDatabase(config);
    console.log(describeSettings(process.env, given));
    for (const warning of withDatabaseSettings(config, given).warnings) console.error(`warning: ${warning}`);
  },
});
