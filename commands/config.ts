import { describeSettings, settingsDocument } from "../engine/config/describe.ts";
import { runCommand } from "./command.ts";

await runCommand({
  usage: `npm run config                 the settings in force, secrets masked
npm run config -- --markdown   all settings as a page (docs/settings.md)`,
  options: { markdown: { type: "boolean" } },
  async run(_config, _words, { markdown }) {
    console.log(markdown ? settingsDocument() : describeSettings(process.env));
  },
});
