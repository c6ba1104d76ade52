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
  readonly settings: Readonly<Record<string, SettingDefinition<unknown>>>;
}[] = [
  { title: "Server", settings: SERVER_SETTINGS },
  { title: "Postgres", settings: POSTGRES_SETTINGS },
  { title: "Migrations", settings: MIGRATION_SETTINGS },
  {
    title: "Schedules, webhooks, functions and backups",
    settings: { ...JOB_SETTINGS, ...WEBHOOK_SETTINGS, ...FUNCTION_SETTINGS },
  },
  { title: "Limits", settings: LIMIT_SETTINGS },
  { title: "Logs, metrics and traces", settings: OBSERVABILITY_SETTINGS },
  { title: "Tokens and accounts", settings: { ...ACCOUNT_SETTINGS, ...OAUTH_SETTINGS } },
  { title: "E-mail", settings: MAIL_SETTINGS },
  { title: "REST interfaces", settings: REST_SETTINGS },
  { title: "GraphQL", settings: GRAPHQL_SETTINGS },
  { title: "Realtime", settings: REALTIME_SETTINGS },
  { title: "Agents", settings: MCP_SETTINGS },
  { title: "Studio", settings: STUDIO_SETTINGS },
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
