import type { DatabaseSettings } from "./in-database.ts";
import { near } from "./near.ts";
import { isBase64OfSecret } from "./readers.ts";
import { IN_DATABASE, NO_EFFECT, nameInDatabase, SETTINGS, type Setting } from "./settings.ts";

const APP_SETTINGS = "PGRST_APP_SETTINGS_";

type Values = {
  readonly [K in keyof typeof SETTINGS]:
    | ReturnType<(typeof SETTINGS)[K]["read"]>
    | NullWhenOptional<(typeof SETTINGS)[K]>;
};
type NullWhenOptional<S> = S extends Setting<infer T> ? (null extends T ? null : never) : never;

export type Config = Omit<Values, "usersAccess"> & {
  readonly usersAccess: "open" | "owner";
  /** `app.settings.*`, which SQL reads with current_setting. */
  readonly appSettings: readonly (readonly [name: string, value: string])[];
};
export type ReadConfig = { readonly config: Config; readonly warnings: readonly string[] };

export class ConfigError extends Error {
  override name = "ConfigError";
}

/** Whether the service brings its own Postgres. */
export function isEmbedded(config: Pick<Config, "databaseUrl">): boolean {
  return config.databaseUrl === null;
}

/** The only reader of the environment. Reports everything that is wrong at once. */
export function readConfig(environment: NodeJS.ProcessEnv): ReadConfig {
  const problems: string[] = [];
  const values = Object.fromEntries(
    Object.entries(SETTINGS).map(([key, setting]) => [key, readSetting(setting, environment, problems)]),
  ) as Values;
  problems.push(...contradictions(values));
  problems.push(...secretsOfNoWorth(values));
  if (!mayKnowSecret(environment)) problems.push(...missingSecret(values));
  const strays = unknownSettings(environment);
  // What is missing may only be misspelt.
  if (problems.length > 0) refuse([...problems, ...strays]);
  const usersAccess = values.usersAccess ?? (values.nodeEnv === "production" ? "owner" : "open");
  const config = Object.freeze({ ...values, usersAccess, appSettings: readAppSettings(environment) });
  return { config, warnings: strays };
}

/** The config with what the database says in the place of what the environment says. */
export function withDatabaseSettings(config: Config, given: DatabaseSettings): ReadConfig {
  const problems: string[] = [];
  const said = Object.fromEntries(
    [...IN_DATABASE].flatMap(([name, key]) =>
      given.has(name) ? [[key, readText(SETTINGS[key], name, given.get(name)!, problems)]] : [],
    ),
  );
  const merged: Config = Object.freeze({ ...config, ...said });
  problems.push(...missingSecret(merged), ...secretsOfNoWorth(merged));
  refuse(problems);
  return { config: merged, warnings: [...given.keys()].flatMap(strayInDatabase) };
}

/** The first of the setting's names that the environment has. */
export function givenName({ names }: Setting<unknown>, environment: NodeJS.ProcessEnv): string | null {
  return names.find((name) => environment[name] !== undefined && environment[name] !== "") ?? null;
}

function readSetting(setting: Setting<unknown>, environment: NodeJS.ProcessEnv, problems: string[]): unknown {
  const name = givenName(setting, environment);
  return readText(setting, name ?? setting.names[0], name === null ? "" : environment[name]!, problems);
}

/** An empty text is no value. */
function readText(setting: Setting<unknown>, name: string, given: string, problems: string[]): unknown {
  const text = given === "" ? setting.fallback : given;
  if (text === null) return null;
  try {
    return setting.read(text);
  } catch (error) {
    problems.push(`${name} must be ${(error as Error).message}${setting.secret ? "" : `, not "${text}"`}`);
    return null;
  }
}

function refuse(problems: readonly string[]): void {
  if (problems.length > 0) throw new ConfigError(`These settings cannot be used:\n  ${problems.join("\n  ")}`);
}

function readAppSettings(environment: NodeJS.ProcessEnv): Config["appSettings"] {
  return Object.entries(environment).flatMap(([name, value = ""]) =>
    name.startsWith(APP_SETTINGS)
      ? [[`app.settings.${name.slice(APP_SETTINGS.length).toLowerCase()}`, value] as const]
      : [],
  );
}

function contradictions(values: Values): string[] {
  const problems: string[] = [];
  if (!values.databaseUrl && values.ownerDatabaseUrl) {
    problems.push("OWNER_DATABASE_URL must be set together with DATABASE_URL");
  }
  if ((values.adminEmail === null) !== (values.adminPassword === null)) {
    problems.push("ADMIN_EMAIL and ADMIN_PASSWORD must be set together");
  }
  if ((values.httpsCertificate === null) !== (values.httpsKey === null)) {
    problems.push("HTTPS_CERT_FILE and HTTPS_KEY_FILE must be set together");
  }
  if (values.adminPort !== null && values.adminPort !== 0 && values.adminPort === values.port) {
    problems.push("ADMIN_PORT must be another port than PORT");
  }
  if (!values.databaseUrl && values.embeddedPort !== null) {
    for (const [name, port] of Object.entries({ PORT: values.port, ADMIN_PORT: values.adminPort })) {
      if (port === values.embeddedPort) problems.push(`EMBEDDED_PORT must be another port than ${name}`);
    }
  }
  if (values.smtpUrl !== null && values.mailFrom === null) {
    problems.push("MAIL_FROM must be set together with SMTP_URL");
  }
  if (values.graphqlPersistedOnly && values.graphqlPersistedOperations === null) {
    problems.push("GRAPHQL_PERSISTED_OPERATIONS must be set together with GRAPHQL_PERSISTED_ONLY");
  }
  return problems;
}

/** Whoever says that there are settings in the database may have put the secret there, where it is looked for later. */
function mayKnowSecret(environment: NodeJS.ProcessEnv): boolean {
  const { databaseConfig, preConfig } = SETTINGS;
  return givenName(databaseConfig, environment) !== null || givenName(preConfig, environment) !== null;
}

function missingSecret({
  databaseUrl,
  jwtSecret,
  jwtPrivateKey,
}: Pick<Values, "databaseUrl" | "jwtSecret" | "jwtPrivateKey">): string[] {
  if (!databaseUrl || jwtSecret || jwtPrivateKey) return [];
  return [
    "JWT_SECRET (at least 32 characters) or JWT_PRIVATE_KEY must be set together with DATABASE_URL: " +
      "every process that serves the database has to trust the same tokens",
  ];
}

function secretsOfNoWorth({
  jwtSecret,
  jwtPreviousSecrets,
  jwtSecretIsBase64,
}: Pick<Values, "jwtSecret" | "jwtPreviousSecrets" | "jwtSecretIsBase64">): string[] {
  const given = { JWT_SECRET: jwtSecret === null ? [] : [jwtSecret], JWT_PREVIOUS_SECRETS: jwtPreviousSecrets ?? [] };
  const wrong = Object.entries(given).filter(([, secrets]) => jwtSecretIsBase64 && !secrets.every(isBase64OfSecret));
  return wrong.map(
    ([name]) =>
      `${name} must be base64 of a secret of at least 32 bytes, as PGRST_JWT_SECRET_IS_BASE64 says that it is`,
  );
}

/** A misspelt setting would otherwise be a setting that is silently not there. */
function unknownSettings(environment: NodeJS.ProcessEnv): string[] {
  const known = Object.values(SETTINGS).flatMap(({ names }) => names);
  return Object.keys(environment).flatMap((name) => {
    if (known.includes(name) || name.startsWith(APP_SETTINGS)) return [];
    const reason = NO_EFFECT[name];
    if (reason) return [`${name} has no effect here: ${reason}`];
    const suggestion = near(name, known);
    if (suggestion) return [`${name} is not a setting; did you mean ${suggestion}?`];
    return /^(PGRST|GRAPHQL)_/.test(name) ? [`${name} is not a setting`] : [];
  });
}

function strayInDatabase(name: string): string[] {
  if (IN_DATABASE.has(name)) return [];
  const environmentName = name.replace(".", "_").toUpperCase();
  const reason = NO_EFFECT[environmentName];
  if (reason) return [`${name} has no effect here: ${reason}`];
  const known = Object.values(SETTINGS).some(({ names }) => nameInDatabase(names) === name);
  if (known) return [`${name} has no effect in the database: set ${environmentName} in the environment`];
  const suggestion = near(name, [...IN_DATABASE.keys()]);
  return [`${name} is not a setting${suggestion ? `; did you mean ${suggestion}?` : ""}`];
}
