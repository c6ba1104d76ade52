import { withDatabaseSettings } from "../engine/config/config.ts";
import { describeSettings, settingsDocument } from "../engine/config/describe.ts";
import { runCommand } from "./command.ts";
import { settingsOfDatabase } from "./in-force.ts";

await runCommand({
  usage: `npm run config                 the settings in force, secrets masked; those of the database when it is running
npm run config -- --markdown   all settings as a page (docs/settings.md)`,
  options: { markdown: { type: "boolean" } },
  async run(config, _words, { markdown }) {
    if (markdown) {
      console.log(settingsDocument());
      return;
    }
    const given = await settingsOfDatabase(config);
    console.log(describeSettings(process.env, given));
    for (const warning of withDatabaseSettings(config, given).warnings) console.error(`warning: ${warning}`);
  },
});
