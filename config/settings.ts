import { FUNCTION_SETTINGS, MCP_SETTINGS, OAUTH_SETTINGS } from "./extension-settings.ts";
import {
  ACCOUNT_SETTINGS,
  GRAPHQL_SETTINGS,
  MAIL_SETTINGS,
  REALTIME_SETTINGS,
  REST_SETTINGS,
  STUDIO_SETTINGS,
  WEBHOOK_SETTINGS,
} from "./interface-settings.ts";
import {
  JOB_SETTINGS,
  LIMIT_SETTINGS,
  MIGRATION_SETTINGS,
  OBSERVABILITY_SETTINGS,
  POSTGRES_SETTINGS,
  SERVER_SETTINGS,
} from "./service-settings.ts";
import type { SettingDefinition } from "./setting-readers.ts";

/** The settings by subject, in the order of `docs/settings.md`. */
export const SETTING_GROUPS: readonly {
  readonly title: string;
  /** When an operator changes these settings, for all that do not say it themselves. */
  readonly whenToChange: string;
  readonly settings: Readonly<Record<string, SettingDefinition<unknown>>>;
}[] = [
  {
    title: "Server",
    whenToChange: "Set these for a deployment that others can reach.",
    settings: SERVER_SETTINGS,
  },
  {
    title: "Postgres",
    whenToChange:
      "Set the connection strings for a Postgres of your own. Change timeouts and pools when the log or an error names one of them, and modes only if `doctor` or an error advises it.",
    settings: POSTGRES_SETTINGS,
  },
  {
    title: "Migrations",
    whenToChange:
      "Change the limits when a migration fails because it waits for a lock, or because others wait for it.",
    settings: MIGRATION_SETTINGS,
  },
  {
    title: "Schedules, webhooks, functions and backups",
    whenToChange:
      "Set `BACKUP_*` before you have data that you must not lose. Change limits when functions or deliveries that you want exceed them.",
    settings: { ...JOB_SETTINGS, ...WEBHOOK_SETTINGS, ...FUNCTION_SETTINGS },
  },
  {
    title: "Limits",
    whenToChange:
      "Each limit protects the memory and processor time of other callers. Raise one when an error names it for a request that you want; lower one if the machine is small or open to everybody.",
    settings: LIMIT_SETTINGS,
  },
  {
    title: "Logs, metrics and traces",
    whenToChange: "Set these to connect the service to your monitoring.",
    settings: OBSERVABILITY_SETTINGS,
  },
  {
    title: "Tokens and accounts",
    whenToChange:
      "Set these to decide who may sign up, and when tokens of other issuers or clients of another service come in.",
    settings: { ...ACCOUNT_SETTINGS, ...OAUTH_SETTINGS },
  },
  {
    title: "E-mail",
    whenToChange: "Set `SMTP_URL` and `MAIL_FROM` before users depend on e-mails.",
    settings: MAIL_SETTINGS,
  },
  {
    title: "REST interfaces",
    whenToChange:
      "Most of these have the names and effects of PostgREST's settings. Change them for clients that depend on them.",
    settings: REST_SETTINGS,
  },
  {
    title: "GraphQL",
    whenToChange:
      "Raise a limit when an error names it for an operation of your clients; lower it if anonymous callers may send operations.",
    settings: GRAPHQL_SETTINGS,
  },
  {
    title: "Realtime",
    whenToChange: "Raise a limit when a client is refused or its channel is closed because of it.",
    settings: REALTIME_SETTINGS,
  },
  {
    title: "Agents",
    whenToChange: "Set `MCP` to let agents of your users call tools.",
    settings: MCP_SETTINGS,
  },
  {
    title: "Studio",
    whenToChange: "Set these to open Studio to fewer or more people than the default.",
    settings: STUDIO_SETTINGS,
  },
];

/** All settings. `docs/settings.md` and `npm run config` are generated from them. */
export const SETTINGS = {
  ...SERVER_SETTINGS,
  ...POSTGRES_SETTINGS,
  ...MIGRATION_SETTINGS,
  ...JOB_SETTINGS,
  ...LIMIT_SETTINGS,
  ...OBSERVABILITY_SETTINGS,
  ...ACCOUNT_SETTINGS,
  ...OAUTH_SETTINGS,
  ...MAIL_SETTINGS,
  ...REST_SETTINGS,
  ...GRAPHQL_SETTINGS,
  ...REALTIME_SETTINGS,
  ...MCP_SETTINGS,
  ...WEBHOOK_SETTINGS,
  ...FUNCTION_SETTINGS,
  ...STUDIO_SETTINGS,
} satisfies Record<string, SettingDefinition<unknown>>;

export type SettingKey = keyof typeof SETTINGS;

/** The settings that can be set in the database, by their names there. This is PostgREST's list. */
export const SETTINGS_IN_DATABASE: ReadonlyMap<string, SettingKey> = new Map(
  (
    [
      "aggregates",
      "anonRole",
      "extraSearchPath",
      "hoistedSettings",
      "maxRows",
      "planEnabled",
      "preConfig",
      "preRequest",
      "preparedStatements",
      "rootSpec",
      "schemas",
      "errorVerbosity",
      "timezoneEnabled",
      "txEnd",
      "jwtAudience",
      "jwtRoleClaim",
      "jwtSecret",
      "jwtSecretIsBase64",
      "openapiMode",
      "openapiSecurity",
      "openapiProxyUrl",
      "corsOrigins",
      "traceHeader",
      "serverTiming",
    ] satisfies SettingKey[]
  ).map((key) => [toDatabaseName(SETTINGS[key].names)!, key]),
);

/** Returns `pgrst.db_schemas` for `PGRST_DB_SCHEMAS`; null if PostgREST has no such setting. */
export function toDatabaseName(names: SettingDefinition<unknown>["names"]): string | null {
  const name = names.find((each) => each.startsWith("PGRST_"));
  return name ? `pgrst.${name.slice("PGRST_".length).toLowerCase()}` : null;
}

/** The settings that the release 0.2.0 does not have. */
export const NEW_SETTINGS: readonly string[] = [
  "CALLER_SETTINGS",
  "FUNCTIONS_MAX_BODY_BYTES",
  "FUNCTIONS_TOTAL_MEMORY",
  "REQUEST_LOG_MB",
];

/** The settings that earlier versions had. */
export const REMOVED_SETTINGS: Readonly<Record<string, string>> = {
  CACHE: "results are not cached",
  CACHE_MB: "results are not cached",
  GRAPHQL_COMPILE: "operations run by SQL statements only",
};

/** The settings of PostgREST without effect. They are accepted so that its environment can be reused. */
export const IGNORED_SETTINGS: Readonly<Record<string, string>> = {
  PGRST_DB_POOL_AUTOMATIC_RECOVERY: "connections always recover automatically",
  PGRST_DB_POOL_MAX_IDLETIME: "idle connections are closed automatically",
  PGRST_DB_POOL_MAX_LIFETIME: "connections do not need to be renewed",
  PGRST_JWT_CACHE_MAX_LIFETIME: "a token is cached until it expires",
  PGRST_SERVER_UNIX_SOCKET: "the service listens on HOST and PORT",
  PGRST_SERVER_UNIX_SOCKET_MODE: "the service listens on HOST and PORT",
  PGRST_LOG_QUERY: "use LOG_LEVEL=debug",
  PGRST_SERVER_OTEL_ENABLED: "OTEL_EXPORTER_OTLP_ENDPOINT enables traces",
};
