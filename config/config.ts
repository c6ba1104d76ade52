import { readFileSync } from "node:fs";
import { availableParallelism, totalmem } from "node:os";
import { didYouMean, ExplainedError } from "#runtime";
import { selectBranch } from "./branch.ts";
import { isBase64Secret, type SettingDefinition } from "./setting-readers.ts";
import { IGNORED_SETTINGS, REMOVED_SETTINGS, SETTINGS, SETTINGS_IN_DATABASE, toDatabaseName } from "./settings.ts";

const APP_SETTINGS = "PGRST_APP_SETTINGS_";

type SettingValues = {
  readonly [K in keyof typeof SETTINGS]:
    | ReturnType<(typeof SETTINGS)[K]["read"]>
    | NullIfOptional<(typeof SETTINGS)[K]>;
};
type NullIfOptional<S> = S extends SettingDefinition<infer T> ? (null extends T ? null : never) : never;

export type Config = Omit<
  SettingValues,
  "usersAccess" | "autoConfirm" | "workers" | "studio" | "studioSql" | "webhookNetwork"
> & {
  /** The number of processes that serve requests. */
  readonly workers: number;
  /** The memory for the responses that one process is receiving from Postgres, and as much for those that clients have not read. */
  readonly answerMemory: number;
  /** The share of the service's limits that one process has: 1 unless it is a worker. */
  readonly workerShare: number;
  /** The number of tasks that one process runs at once. */
  readonly taskConcurrency: number;
  readonly usersAccess: "open" | "owner";
  /** The reason for this value, for the operator. */
  readonly usersAccessReason: string;
  readonly autoConfirm: boolean;
  readonly studio: NonNullable<SettingValues["studio"]>;
  /** True if administrators may run SQL. */
  readonly studioSql: boolean;
  readonly webhookNetwork: NonNullable<SettingValues["webhookNetwork"]>;
  /** True if the service has the embedded Postgres, and only users of this machine can connect to it. */
  readonly isPlayground: boolean;
  /** The file that JWT_SECRET was read from; null if the environment contains it. */
  readonly jwtSecretFile: string | null;
  /** The settings `app.settings.*`, which SQL reads with current_setting. */
  readonly appSettings: readonly (readonly [name: string, value: string])[];
};
/** Settings from the database, by their names in SQL: `pgrst.db_schemas`. */
export type DatabaseSettings = ReadonlyMap<string, string>;

export type LoadedConfig = { readonly config: Config; readonly warnings: readonly string[] };

export class ConfigError extends ExplainedError {
  override name = "ConfigError";
}

/** True if the service starts its own Postgres. */
export function isEmbedded(config: Pick<Config, "databaseUrl">): boolean {
  return config.databaseUrl === null;
}

/** The only reader of the environment. Reports all errors at once. */
export function readConfig(environment: NodeJS.ProcessEnv): LoadedConfig {
  const problems: string[] = [];
  const values = Object.fromEntries(
    Object.entries(SETTINGS).map(([key, setting]) => [key, readSetting(setting, environment, problems)]),
  ) as SettingValues;
  problems.push(...findContradictions(values, environment));
  problems.push(...findWeakSecrets(values), ...findOpenStudioProblems(values));
  if (!mayHoldSecret(environment)) problems.push(...findMissingSecret(values));
  const unknown = findUnknownSettings(environment);
  // A missing setting may be one of the misspelled ones.
  if (problems.length > 0) throwIfAny([...problems, ...unknown]);
  const config = Object.freeze({
    ...values,
    ...selectBranch(values),
    ...resolveUsersAccess(values),
    ...resolveStudio(values),
    webhookNetwork: values.webhookNetwork ?? (isForThisMachine(values) ? "loopback" : "public"),
    isPlayground: isForThisMachine(values),
    workers: values.workers === "auto" ? chooseWorkerCount(measureMachine(), values) : values.workers,
    answerMemory: LARGE_RESPONSES * values.maxAnswerBytes,
    workerShare: 1,
    taskConcurrency: TASK_CONCURRENCY,
    autoConfirm: values.autoConfirm ?? (values.smtpUrl === null && findPublicReasons(values).length === 0),
    poolSize: Math.max(values.poolSize, MIN_POOL_SIZE),
    jwtSecretFile: fileOf(SETTINGS.jwtSecret, environment),
    appSettings: readAppSettings(environment),
  });
  return { config, warnings: [...unknown, ...warnOfSmallPool(values)] };
}

/** Returns the config with the current contents of its files, as far as they may change while the service runs. */
export function rereadFiles(config: Config): Config {
  const { jwtSecretFile } = config;
  if (jwtSecretFile === null) return config;
  const problems: string[] = [];
  const environment = { [SETTINGS.jwtSecret.names[0]]: `@${jwtSecretFile}` };
  const jwtSecret = readSetting(SETTINGS.jwtSecret, environment, problems) as Config["jwtSecret"];
  throwIfAny(problems);
  return Object.freeze({ ...config, jwtSecret });
}

/** Returns the config with the settings of the database, which take precedence over the environment. */
export function withDatabaseSettings(config: Config, databaseSettings: DatabaseSettings): LoadedConfig {
  const problems: string[] = [];
  const overrides = Object.fromEntries(
    [...SETTINGS_IN_DATABASE].flatMap(([name, key]) =>
      databaseSettings.has(name)
        ? [[key, parseSetting(SETTINGS[key], name, databaseSettings.get(name)!, problems)]]
        : [],
    ),
  );
  const merged: Config = Object.freeze({ ...config, ...overrides });
  problems.push(...findMissingSecret(merged), ...findWeakSecrets(merged));
  throwIfAny(problems);
  return { config: merged, warnings: [...databaseSettings.keys()].flatMap(warnOfUnknownInDatabase) };
}

/**
 * Reads the settings of a project, which apply to all its deployments: `"content-service": { "BASE_SCHEMA": "platform" }` in
 * its package.json. The environment takes precedence.
 */
export function readProjectSettings(packageJson: string): Record<string, string> {
  const { "content-service": settings = {} } = JSON.parse(packageJson) as { "content-service"?: object };
  const problems: string[] = [];
  for (const name of Object.keys(settings)) {
    const setting = Object.values<SettingDefinition<unknown>>(SETTINGS).find(({ names }) => names.includes(name));
    if (!setting) problems.push(`"${name}" is not a setting`);
    else if (setting.secret) problems.push(`${name} is a secret: set it in the environment or in .env`);
  }
  if (problems.length > 0) throw new ConfigError(`"content-service" in package.json:\n  ${problems.join("\n  ")}`);
  return Object.fromEntries(Object.entries(settings).map(([name, value]) => [name, String(value)]));
}

/** Returns the first of the setting's names that is set in the environment. */
export function findInEnvironment(
  { names }: SettingDefinition<unknown>,
  environment: NodeJS.ProcessEnv,
): string | null {
  return names.find((name) => environment[name] !== undefined && environment[name] !== "") ?? null;
}

function readSetting(setting: SettingDefinition<unknown>, environment: NodeJS.ProcessEnv, problems: string[]): unknown {
  const name = findInEnvironment(setting, environment);
  if (name === null) return parseSetting(setting, setting.names[0], "", problems);
  const file = fileOf(setting, environment);
  try {
    return parseSetting(setting, name, file === null ? environment[name]! : readSecretFile(file), problems);
  } catch (error) {
    problems.push(`${name} must be @ and the path of a file that can be read: ${(error as Error).message}`);
    return null;
  }
}

/** Returns `/run/secrets/jwt` for the value `@/run/secrets/jwt`. */
function fileOf(setting: SettingDefinition<unknown>, environment: NodeJS.ProcessEnv): string | null {
  const name = findInEnvironment(setting, environment);
  const value = name === null ? "" : environment[name]!;
  return mayBeInFile(setting) && value.startsWith("@") ? value.slice(1) : null;
}

/** PostgREST can serve with a single connection, so its settings may be too small. */
function warnOfSmallPool({ poolSize }: Pick<SettingValues, "poolSize">): string[] {
  if (poolSize >= MIN_POOL_SIZE) return [];
  return [`DB_POOL is ${poolSize}, and the service uses ${MIN_POOL_SIZE} connections, one for each of its pools`];
}

/** Secrets of PostgREST may be in a file. Others may begin with an @. */
function mayBeInFile({ names, secret }: SettingDefinition<unknown>): boolean {
  return secret && names.some((name) => name.startsWith("PGRST_"));
}

/** Reads the file like PostgREST, without the line break at the end. */
function readSecretFile(file: string): string {
  return readFileSync(file, "utf8").replace(/\r?\n$/, "");
}

/** An empty string counts as unset. */
function parseSetting(setting: SettingDefinition<unknown>, name: string, value: string, problems: string[]): unknown {
  const text = value === "" ? setting.fallback : value;
  if (text === null) return null;
  try {
    return setting.read(text);
  } catch (error) {
    problems.push(`${name} must be ${(error as Error).message}${setting.secret ? "" : `, not "${text}"`}`);
    return null;
  }
}

function throwIfAny(problems: readonly string[]): void {
  if (problems.length > 0) throw new ConfigError(`These settings cannot be used:\n  ${problems.join("\n  ")}`);
}

function readAppSettings(environment: NodeJS.ProcessEnv): Config["appSettings"] {
  return Object.entries(environment).flatMap(([name, value = ""]) =>
    name.startsWith(APP_SETTINGS)
      ? [[`app.settings.${name.slice(APP_SETTINGS.length).toLowerCase()}`, value] as const]
      : [],
  );
}

/** The memory for responses, as a multiple of the largest response. */
const LARGE_RESPONSES = 8;
const TASK_CONCURRENCY = 4;
/** Each worker needs at least one connection per pool. */
export const MIN_POOL_SIZE = 4;
/** The memory of a worker with its largest responses and bodies, and its part of the primary. */
const WORKER_MEMORY_BYTES = 768 * 2 ** 20;

type Machine = { readonly processors: number; readonly memoryBytes: number };

/** Returns the resources that this process may use: a container's limits are those of its control group. */
function measureMachine(): Machine {
  return {
    processors: availableParallelism(),
    memoryBytes: Math.min(totalmem(), process.constrainedMemory() || Number.POSITIVE_INFINITY),
  };
}

/** Half of the processors remain for Postgres, the kernel and the clients' connections. */
export function chooseWorkerCount(
  { processors, memoryBytes }: Machine,
  { poolSize }: Pick<SettingValues, "poolSize">,
): number {
  const most = Math.min(processors / 2, memoryBytes / WORKER_MEMORY_BYTES, poolSize / MIN_POOL_SIZE);
  return Math.max(1, Math.floor(most));
}

/** The default is open only if nobody else can connect: for the embedded Postgres, served on a loopback address. */
function resolveUsersAccess(values: SettingValues): Pick<Config, "usersAccess" | "usersAccessReason"> {
  const { usersAccess } = values;
  if (usersAccess !== null) return { usersAccess, usersAccessReason: "USERS_ACCESS" };
  const reasons = findPublicReasons(values);
  if (reasons.length > 0) return { usersAccess: "owner", usersAccessReason: reasons.join(", ") };
  return { usersAccess: "open", usersAccessReason: "embedded Postgres on a loopback address" };
}

/** Returns the reasons why others than the user of this machine may use the service; empty if they cannot. */
function findPublicReasons({ databaseUrl, host, nodeEnv }: SettingValues): string[] {
  return [
    ...(databaseUrl === null ? [] : ["DATABASE_URL is set"]),
    ...(isLoopbackHost(host) ? [] : [`HOST is ${host}`]),
    ...(nodeEnv === "production" ? ["NODE_ENV is production"] : []),
  ];
}

/** False if a proxy may forward requests of others: those would come from a loopback address too. */
function isForThisMachine(values: SettingValues): boolean {
  return findPublicReasons(values).length === 0 && !isServedByProxy(values) && values.trustProxy === null;
}

function resolveStudio(values: SettingValues): Pick<Config, "studio" | "studioSql"> {
  const isOpenByDefault = isForThisMachine(values);
  return {
    studio: values.studio ?? (isOpenByDefault ? "open" : "administrators"),
    studioSql: values.studioSql ?? isOpenByDefault,
  };
}

function isServedByProxy({ publicUrl }: Pick<SettingValues, "publicUrl">): boolean {
  return publicUrl !== null && !isLoopbackHost(new URL(publicUrl).hostname);
}

/** Returns the reasons why others than the user of this machine could use an open Studio. */
function findOpenStudioProblems(values: SettingValues): string[] {
  const { studio, host, publicUrl, nodeEnv } = values;
  if (studio !== "open") return [];
  const reasons = [
    ...(isLoopbackHost(host) ? [] : [`HOST is ${host}`]),
    ...(isServedByProxy(values) ? [`PUBLIC_URL is ${publicUrl}`] : []),
    ...(nodeEnv === "production" ? ["NODE_ENV is production"] : []),
  ];
  if (reasons.length === 0) return [];
  return [`STUDIO must not be open where others can connect (${reasons.join(", ")}): set it to administrators`];
}

/** True if only this machine can connect to a server that listens at the host. */
export function isLoopbackHost(host: string): boolean {
  return /^(localhost|127\.\d+\.\d+\.\d+|\[?::1\]?)$/i.test(host);
}

function findContradictions(values: SettingValues, environment: NodeJS.ProcessEnv): string[] {
  const problems: string[] = [];
  const isUrlSet = findInEnvironment(SETTINGS.databaseUrl, environment) !== null;
  for (const [name, url] of Object.entries({
    OWNER_DATABASE_URL: values.ownerDatabaseUrl,
    DIRECT_DATABASE_URL: values.directDatabaseUrl,
  })) {
    // An invalid DATABASE_URL has its own message.
    if (url && !values.databaseUrl && !isUrlSet) problems.push(`${name} must be set together with DATABASE_URL`);
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
  // A null is an invalid value, which has its own message.
  if (values.drainTimeout !== null && values.drainDelay > values.drainTimeout) {
    problems.push(
      "DRAIN_DELAY_SECONDS must be at most DRAIN_TIMEOUT_SECONDS, because the delay is a part of that time",
    );
  }
  if (!values.databaseUrl && values.embeddedPort !== null) {
    for (const [name, port] of Object.entries({ PORT: values.port, ADMIN_PORT: values.adminPort })) {
      if (port === values.embeddedPort) problems.push(`EMBEDDED_PORT must be another port than ${name}`);
    }
  }
  if ((values.smsWebhookUrl === null) !== (values.smsWebhookSecret === null)) {
    problems.push("SMS_WEBHOOK_URL and SMS_WEBHOOK_SECRET must be set together");
  }
  if (values.smtpUrl !== null && values.mailFrom === null) {
    problems.push("MAIL_FROM must be set together with SMTP_URL");
  }
  if (values.graphqlPersistedOnly && values.graphqlPersistedOperations === null) {
    problems.push("GRAPHQL_PERSISTED_OPERATIONS must be set together with GRAPHQL_PERSISTED_ONLY");
  }
  return problems;
}

/** True if the database may have the secret among its settings; that is checked once they are read. */
function mayHoldSecret(environment: NodeJS.ProcessEnv): boolean {
  const { databaseConfig, preConfig } = SETTINGS;
  return findInEnvironment(databaseConfig, environment) !== null || findInEnvironment(preConfig, environment) !== null;
}

function findMissingSecret({
  databaseUrl,
  jwtSecret,
  jwtPrivateKey,
  jwtKeySetUrl,
}: Pick<SettingValues, "databaseUrl" | "jwtSecret" | "jwtPrivateKey" | "jwtKeySetUrl">): string[] {
  if (!databaseUrl || jwtSecret || jwtPrivateKey || jwtKeySetUrl) return [];
  return [
    "JWT_SECRET (at least 32 characters), JWT_PRIVATE_KEY or JWT_JWKS_URL must be set together with DATABASE_URL: " +
      "every process that serves the database has to trust the same tokens",
  ];
}

function findWeakSecrets({
  jwtSecret,
  jwtPreviousSecrets,
  jwtSecretIsBase64,
}: Pick<SettingValues, "jwtSecret" | "jwtPreviousSecrets" | "jwtSecretIsBase64">): string[] {
  const secretsByName = {
    JWT_SECRET: jwtSecret === null ? [] : [jwtSecret],
    JWT_PREVIOUS_SECRETS: jwtPreviousSecrets ?? [],
  };
  const invalid = Object.entries(secretsByName).filter(
    ([, secrets]) => jwtSecretIsBase64 && !secrets.every(isBase64Secret),
  );
  return invalid.map(
    ([name]) =>
      `${name} must be base64 of a secret of at least 32 bytes, as PGRST_JWT_SECRET_IS_BASE64 says that it is`,
  );
}

/** Warns of misspelled settings, which would otherwise be ignored silently. */
function findUnknownSettings(environment: NodeJS.ProcessEnv): string[] {
  const known = Object.values(SETTINGS).flatMap(({ names }) => names);
  return Object.keys(environment).flatMap((name) => {
    if (known.includes(name) || name.startsWith(APP_SETTINGS)) return [];
    const reason = IGNORED_SETTINGS[name];
    if (reason) return [`${name} has no effect here: ${reason}`];
    const removal = REMOVED_SETTINGS[name];
    if (removal) return [`${name} was removed: ${removal}`];
    const suggestion = didYouMean(name, known);
    return suggestion || /^(PGRST|GRAPHQL)_/.test(name) ? [`${name} is not a setting${suggestion}`] : [];
  });
}

function warnOfUnknownInDatabase(name: string): string[] {
  if (SETTINGS_IN_DATABASE.has(name)) return [];
  const environmentName = name.replace(".", "_").toUpperCase();
  const reason = IGNORED_SETTINGS[environmentName];
  if (reason) return [`${name} has no effect here: ${reason}`];
  const known = Object.values(SETTINGS).some(({ names }) => toDatabaseName(names) === name);
  if (known) return [`${name} has no effect in the database: set ${environmentName} in the environment`];
  return [`${name} is not a setting${didYouMean(name, [...SETTINGS_IN_DATABASE.keys()])}`];
}
