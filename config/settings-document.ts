import { type DatabaseSettings, findInEnvironment } from "./config.ts";
import type { SettingDefinition } from "./setting-readers.ts";
import {
  IGNORED_SETTINGS,
  NEW_SETTINGS,
  SETTING_GROUPS,
  SETTINGS,
  SETTINGS_IN_DATABASE,
  toDatabaseName,
} from "./settings.ts";

const ALL_SETTINGS: readonly SettingDefinition<unknown>[] = Object.values(SETTINGS);

type SettingOrigin = { readonly text: string; readonly origin: string };

/** Returns one line per setting, such as `PORT=4000   (from PGRST_SERVER_PORT)`. */
export function describeSettings(
  environment: NodeJS.ProcessEnv,
  databaseSettings: DatabaseSettings = new Map(),
): string {
  return ALL_SETTINGS.map((setting) => {
    const found = originInDatabase(setting, databaseSettings) ?? originInEnvironment(setting, environment);
    const { text, origin } = found ?? { text: setting.fallback ?? "", origin: "default" };
    const value = found && setting.secret && text !== "" ? "********" : text;
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

/** Returns the setting's name in the database; null if it cannot be set there. */
function databaseNameOf(names: SettingDefinition<unknown>["names"]): string | null {
  const name = toDatabaseName(names);
  return name !== null && SETTINGS_IN_DATABASE.has(name) ? name : null;
}

/** Returns `docs/settings.md`, generated from the settings that the program reads. */
export function writeSettingsDocument(): string {
  const groups = SETTING_GROUPS.map(describeGroup);
  const aliases = ALL_SETTINGS.flatMap(({ names: [name, ...others] }) =>
    others.map((other) => `\`${other}\` (${name})`),
  );
  const inDatabase = [...SETTINGS_IN_DATABASE.keys()].map((name) => `\`${name}\``);
  const ignored = Object.keys(IGNORED_SETTINGS).map((name) => `\`${name}\``);
  return `# Settings

Settings are environment variables. Some can also be [in the database](#settings-in-the-database). You need none of them to start. Most deployments set \`NODE_ENV\`, \`PUBLIC_URL\`, \`TRUST_PROXY\`, \`CORS_ORIGINS\`, \`SMTP_URL\` with \`MAIL_FROM\`, and with a database of your own \`DATABASE_URL\`, \`OWNER_DATABASE_URL\` and \`JWT_SECRET\`.

\`\`\`sh
PORT=4000 RATE_LIMIT=600 npm start
npm run config        # the values in force and their origin
\`\`\`

\`npx content-service\`, and the scripts of a [project](projects.md), also read \`.env\` in the working directory, then \`package.json\`, without secrets: \`"content-service": { "BASE_SCHEMA": "platform" }\`. The environment takes precedence. The scripts of a clone (\`npm start\`, \`npm run …\`) read the environment only.

A setting that begins with "Whether" accepts \`true\` or \`on\`, and \`false\` or \`off\`. All settings exist since the release 0.2.0, unless they say otherwise.

\`PGRST_APP_SETTINGS_<NAME>\` sets \`app.settings.<name>\` for SQL.

## Playground

A *playground* is a service with the embedded Postgres that listens on a loopback address and does not have \`NODE_ENV=production\`. For Studio and webhooks, \`TRUST_PROXY\` must also be unset, and \`PUBLIC_URL\` unset or a loopback address. By default, a playground

- opens Studio to every browser on the machine, without a sign-in, and lets it run SQL (\`STUDIO\`, \`STUDIO_SQL\`)
- lets everybody read and change the users of the example application (\`USERS_ACCESS\`)
- proves new addresses without an e-mail (\`AUTH_AUTOCONFIRM\`, unless \`SMTP_URL\` is set)
- sends webhooks to this machine (\`WEBHOOK_NETWORK\`)

${groups.join("\n\n")}

## Settings in the database

These override the environment: ${inDatabase.join(", ")}. There are two ways; role settings override the function:

\`\`\`sql
-- The login for requests, in all databases or (with precedence) in one.
alter role authenticator in database app set pgrst.db_max_rows = '1000';

-- A function that the login may execute: PGRST_DB_PRE_CONFIG. Every role can read role settings and function bodies,
-- so keep secrets in a table.
create function settings.pre_config() returns void language sql security definer set search_path = '' as $$
  select pg_catalog.set_config('pgrst.' || name, value, true) from settings.private_settings
$$;
\`\`\`

They are read at startup, after \`NOTIFY pgrst, 'reload config'\` or \`'reload schema'\`, and after schema changes; \`pgrst.db_prepared_statements\` only at startup. An invalid value prevents the start; in a running service it is ignored.

With \`DATABASE_URL\`, a secret is required, or the service does not start: \`JWT_SECRET\`, \`JWT_PRIVATE_KEY\` or \`JWT_JWKS_URL\` in the environment. If the environment has \`PGRST_DB_CONFIG\` or \`PGRST_DB_PRE_CONFIG\`, it may be \`pgrst.jwt_secret\` in the database.

## PostgREST's settings

Also read: ${aliases.join(", ")}.

Without effect, as the start warns: ${ignored.join(", ")}.`;
}

function describeGroup({ title, whenToChange, settings }: (typeof SETTING_GROUPS)[number]): string {
  return [`## ${title}`, whenToChange, ...Object.values(settings).map(describeSetting)].join("\n\n");
}

function describeSetting({ names, fallback, description }: SettingDefinition<unknown>): string {
  const since = NEW_SETTINGS.includes(names[0]) ? " It is not in the release 0.2.0." : "";
  const standard = fallback
    ? ` The default is \`${fallback}\`.`
    : description.includes("not set")
      ? ""
      : " It is not set by default.";
  return `### ${names[0]}\n\n${description}${standard}${since}`;
}
