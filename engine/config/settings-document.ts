import type { DatabaseSettings } from "../database-config/config-keeper.ts";
import { findInEnvironment } from "./config.ts";
import {
  IGNORED_SETTINGS,
  SETTINGS,
  SETTINGS_IN_DATABASE,
  type SettingDefinition,
  toDatabaseName,
} from "./settings.ts";

const ALL_SETTINGS: readonly SettingDefinition<unknown>[] = Object.values(SETTINGS);

type SettingOrigin = { readonly text: string; readonly origin: string };

/** `PORT=4000   (from PGRST_SERVER_PORT)`, one line per setting. */
export function describeSettings(
  environment: NodeJS.ProcessEnv,
  databaseSettings: DatabaseSettings = new Map(),
): string {
  return ALL_SETTINGS.map((setting) => {
    const said = originInDatabase(setting, databaseSettings) ?? originInEnvironment(setting, environment);
    const { text, origin } = said ?? { text: setting.fallback ?? "", origin: "default" };
    const value = said && setting.secret && text !== "" ? "********" : text;
    return `${setting.names[0]}=${value}`.padEnd(48) + ` (${value === "" ? "not set" : origin})`;
  }).join("\n");
}

function originInDatabase(
  { names, fallback }: SettingDefinition<unknown>,
  databaseSettings: DatabaseSettings,
): SettingOrigin | null {
  const name = databaseNameOf(names);
  const text = name === null ? undefined : databaseSettings.get(name);
  return text === undefined ? null : { text: text || (fallback ?? ""), origin: "database" };
}

function originInEnvironment(
  setting: SettingDefinition<unknown>,
  environment: NodeJS.ProcessEnv,
): SettingOrigin | null {
  const name = findInEnvironment(setting, environment);
  if (name === null) return null;
  return { text: environment[name]!, origin: name === setting.names[0] ? "set" : `from ${name}` };
}

/** The setting's name in SQL, where it may be said there. */
function databaseNameOf(names: SettingDefinition<unknown>["names"]): string | null {
  const name = toDatabaseName(names);
  return name !== null && SETTINGS_IN_DATABASE.has(name) ? name : null;
}

/** The page that users read, made from the same table that the program reads. */
export function writeSettingsDocument(): string {
  const rows = ALL_SETTINGS.map(({ names, fallback, description: about, secret }) => {
    const [name, ...others] = names;
    const sql = databaseNameOf(names);
    const also = [...others, ...(sql ? [sql] : [])].map((other) => `\`${other}\``).join(", ");
    return `| \`${name}\`${secret ? " (secret)" : ""} | ${fallback === null ? "" : `\`${fallback}\``} | ${also} | ${about} |`;
  });
  const ignored = Object.entries(IGNORED_SETTINGS).map(([name, reason]) => `| \`${name}\` | ${reason} |`);
  return `# Settings

All settings are environment variables; those with a name such as \`pgrst.db_schemas\` can be given [by the database](#settings-in-the-database)
as well. Each is checked at the start, and everything that is wrong is reported at once.
\`npm run config\` prints the values in force and where they come from. This page is made from the program's own table by \`npm run config -- --markdown\`.

| setting | default | also read from | what it does |
| --- | --- | --- | --- |
${rows.join("\n")}

\`PGRST_APP_SETTINGS_<NAME>\` gives SQL the setting \`app.settings.<name>\`.

## Settings in the database

As PostgREST does, the service asks the database what it says of the settings with a \`pgrst.\` name, unless \`PGRST_DB_CONFIG\` is
\`false\`. What the database says goes before the environment. There are two ways to say it, and the first wins:

\`\`\`sql
-- Settings of the login of requests, for all databases or for one, which goes before.
alter role authenticator in database app set pgrst.db_max_rows = '1000';

-- A function that the login may call, named by PGRST_DB_PRE_CONFIG. Settings of roles and texts of functions can be read
-- by every role: a secret belongs into a table.
create function settings.pre_config() returns void language sql security definer set search_path = '' as $$
  select pg_catalog.set_config('pgrst.' || name, value, true) from settings.private_settings
$$;
\`\`\`

They are read at the start and again after \`NOTIFY pgrst, 'reload config'\`, \`NOTIFY pgrst, 'reload schema'\` and changes of the schema;
requests in flight end with those that they began with. \`pgrst.db_prepared_statements\` is read at the start alone. A wrong value stops
the start; later, the log says what is wrong and the old settings stay. When the token secret is to come from the database, say
\`PGRST_DB_CONFIG=true\` or \`PGRST_DB_PRE_CONFIG\`; without either, \`DATABASE_URL\` wants \`JWT_SECRET\` in the environment.

## PostgREST settings without effect

They are accepted, with a word in the log, so that the environment of a PostgREST deployment can be taken over as it is.

| setting | why |
| --- | --- |
${ignored.join("\n")}`;
}
