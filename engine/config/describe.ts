import { givenName } from "./config.ts";
import { NO_EFFECT, NOT_YET, SETTINGS, type Setting } from "./settings.ts";

const ALL: readonly Setting<unknown>[] = Object.values(SETTINGS);

/** `PORT=4000   (from PGRST_SERVER_PORT)`, one line per setting. */
export function describeSettings(environment: NodeJS.ProcessEnv): string {
  return ALL.map((setting) => {
    const name = givenName(setting, environment);
    const value = name === null ? (setting.fallback ?? "") : setting.secret ? "********" : environment[name]!;
    const origin = name === null ? "default" : name === setting.names[0] ? "set" : `from ${name}`;
    return `${setting.names[0]}=${value}`.padEnd(48) + ` (${value === "" ? "not set" : origin})`;
  }).join("\n");
}

/** The page that users read, made from the same table that the program reads. */
export function settingsDocument(): string {
  const rows = ALL.map(({ names, fallback, about, secret }) => {
    const [name, ...others] = names;
    const also = others.map((other) => `\`${other}\``).join(", ");
    return `| \`${name}\`${secret ? " (secret)" : ""} | ${fallback === null ? "" : `\`${fallback}\``} | ${also} | ${about}${NOT_YET.has(name) ? " *Not yet in effect.*" : ""} |`;
  });
  const ignored = Object.entries(NO_EFFECT).map(([name, reason]) => `| \`${name}\` | ${reason} |`);
  return `# Settings

All settings are environment variables. Each is checked at the start, and everything that is wrong is reported at once.
\`npm run config\` prints the values in force. This page is made from the program's own table by \`npm run config -- --markdown\`.

| setting | default | also read from | what it does |
| --- | --- | --- | --- |
${rows.join("\n")}

\`PGRST_APP_SETTINGS_<NAME>\` gives SQL the setting \`app.settings.<name>\`.

## PostgREST settings without effect

They are accepted, with a word in the log, so that the environment of a PostgREST deployment can be taken over as it is.

| setting | why |
| --- | --- |
${ignored.join("\n")}`;
}
