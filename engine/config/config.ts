import { near } from "./near.ts";
import { NO_EFFECT, NOT_YET, SETTINGS, type Setting } from "./settings.ts";

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
export function isEmbedded(config: Config): boolean {
  return config.databaseUrl === null;
}

/** The only reader of the environment. Reports everything that is wrong at once. */
export function readConfig(environment: NodeJS.ProcessEnv): ReadConfig {
  const problems: string[] = [];
  const values = Object.fromEntries(
    Object.entries(SETTINGS).map(([key, setting]) => [key, readSetting(setting, environment, problems)]),
  ) as Values;
  problems.push(...contradictions(values));
  if (problems.length > 0) throw new ConfigError(`These settings cannot be used:\n  ${problems.join("\n  ")}`);
  const usersAccess = values.usersAccess ?? (values.nodeEnv === "production" ? "owner" : "open");
  const config = Object.freeze({ ...values, usersAccess, appSettings: readAppSettings(environment) });
  return { config, warnings: unknownSettings(environment) };
}

/** The first of the setting's names that the environment has. */
export function givenName({ names }: Setting<unknown>, environment: NodeJS.ProcessEnv): string | null {
  return names.find((name) => environment[name] !== undefined && environment[name] !== "") ?? null;
}

function readSetting(setting: Setting<unknown>, environment: NodeJS.ProcessEnv, problems: string[]): unknown {
  const name = givenName(setting, environment);
  const text = name === null ? setting.fallback : environment[name]!;
  if (text === null) return null;
  try {
    return setting.read(text);
  } catch (error) {
    const given = setting.secret ? "" : `, not "${text}"`;
    problems.push(`${name ?? setting.names[0]} must be ${(error as Error).message}${given}`);
    return null;
  }
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
  if (values.databaseUrl && !values.jwtSecret && !values.jwtPrivateKey) {
    problems.push(
      "JWT_SECRET (at least 32 characters) or JWT_PRIVATE_KEY must be set together with DATABASE_URL: " +
        "every process that serves the database has to trust the same tokens",
    );
  }
  if (!values.databaseUrl && values.ownerDatabaseUrl) {
    problems.push("OWNER_DATABASE_URL must be set together with DATABASE_URL");
  }
  if ((values.adminEmail === null) !== (values.adminPassword === null)) {
    problems.push("ADMIN_EMAIL and ADMIN_PASSWORD must be set together");
  }
  return problems;
}

/** A misspelt setting would otherwise be a setting that is silently not there. */
function unknownSettings(environment: NodeJS.ProcessEnv): string[] {
  const known = Object.values(SETTINGS).flatMap(({ names }) => names);
  return Object.keys(environment).flatMap((name) => {
    if (NOT_YET.has(name)) return [`${name} has no effect yet: what it is for is still being built`];
    if (known.includes(name) || name.startsWith(APP_SETTINGS)) return [];
    const reason = NO_EFFECT[name];
    if (reason) return [`${name} has no effect here: ${reason}`];
    const suggestion = near(name, known);
    if (suggestion) return [`${name} is not a setting; did you mean ${suggestion}?`];
    return /^(PGRST|GRAPHQL)_/.test(name) ? [`${name} is not a setting`] : [];
  });
}
