import {
  branchName,
  cronSchedule,
  flag,
  httpUrl,
  integer,
  keyValues,
  oneOf,
  optional,
  origins,
  postgresUrl,
  postgresUrls,
  ratio,
  type SettingDefinition,
  secret,
  supabaseApis,
  text,
  trustProxy,
  withDefault,
  workerCount,
} from "./setting-readers.ts";

// Settings with one description share a row of docs/settings.md.
const DRAIN =
  "Time from SIGTERM until open requests are cancelled; at its start, time in which only /health/ready fails.";
const HTTPS_FILES = "PEM files of certificate chain and private key. Unset: plain HTTP.";
const FILES_IN_S3 = "S3 service that stores files instead. The bucket must exist.";
const S3_PROTOCOL_KEY = "Access key of `service_role` for `/storage/v1/s3`. Unset: only session tokens.";
const RELOAD_CHANNEL = "NOTIFY channel of `reload schema` and `reload config`, and whether to listen.";
const MIGRATION_LOCKS =
  "How long a [migration](../db/README.md#locks) waits for a lock (0: no limit), and how often it retries.";
const COPIED_DATABASE = "Runs [schedules](schedules.md), sends [webhooks](webhooks.md). `false` for a copied database.";
const BASE_BACKUPS = "Hours between base backups, and days that can be restored.";
const BODY_BYTES = "Size of a [body](limits.md#request-bodies) with a list of rows; for the anonymous role.";
const ADMIN_ADDRESS =
  "[Admin port](observability.md#admin-port), without credentials; 0 selects a free one. Unset: none, and no metrics.";
const DISABLED_TRACES = "`true` or `none` disables traces.";
const TRACE_SAMPLER = "Which requests are traced; fraction for `traceidratio`, 0 to 1.";
const TRACE_ATTRIBUTES = "Service name, and further attributes: `deployment.environment.name=production,…`.";
const ADDRESS = "Port (0 selects a free one), and address (`0.0.0.0`: all interfaces).";
const OTHER_LOGINS = "The same database with its owner; and without a pooler. Unset: the previous URL.";
const REPLICAS = "[Replicas](replicas.md), separated by commas, and their maximum lag.";
const DATABASE_CONFIG =
  "Whether to read [settings in the database](#settings-in-the-database), and a function that sets them.";
const OTHER_DATABASES = "Scratch database of `migrate` and `doctor`; database from which to create and drop others.";
const LOG = "Minimum level; duration from which statements are logged (0: never).";
const TRACE_COLLECTOR =
  "OpenTelemetry collector (OTLP over HTTP); the same with `v1/traces`, which takes precedence; headers, `name=value,…`. Unset: no traces.";
const EMBEDDED = "Folder of the embedded Postgres and secrets; its port on 127.0.0.1. Unset: a Unix socket.";
const POOL = "Connections of all workers, from 4 to half of those free; wait for one, then 504.";
const STATEMENT_TIMEOUTS =
  "Timeout of statements; of the anonymous role, if less; of locks. A role's statement_timeout and lock_timeout take precedence. 0: none.";
const SOCKETS =
  "[WebSockets](limits.md#websockets) of all workers, then 503; memory for joins, tokens, filters and variables of one, and of all.";
const REQUEST_HEAD = "Size of a request head, then 431; time to send a request.";
const SCHEDULED_BACKUPS =
  "Times of [backups](backup.md#nightly-backup), in UTC, such as `0 3 * * *` (unset: never); their folder; how many to keep.";
const CHECKED_BACKUPS = "[Checks](backup.md#checked-backups) the archive after base backups, and scheduled backups.";

export const SERVER_SETTINGS = {
  port: withDefault(["PORT", "PGRST_SERVER_PORT"], integer(0, 65_535), "3000", ADDRESS),
  host: withDefault(["HOST", "PGRST_SERVER_HOST"], text, "127.0.0.1", ADDRESS),
  nodeEnv: withDefault(
    "NODE_ENV",
    oneOf("development", "test", "production"),
    "development",
    "`production`: not a playground, and no default for MAIL_DIR.",
  ),
  publicUrl: optional("PUBLIC_URL", httpUrl, "URL behind a proxy, also for links."),
  workers: withDefault(
    "WEB_CONCURRENCY",
    workerCount,
    "auto",
    "[Worker processes](operations.md#several-processes); `auto`: one for every two cores.",
  ),
  drainTimeout: withDefault("DRAIN_TIMEOUT_SECONDS", integer(0, 3600), "25", DRAIN),
  drainDelay: withDefault("DRAIN_DELAY_SECONDS", integer(0, 3600), "0", DRAIN),
  httpsCertificate: optional("HTTPS_CERT_FILE", text, HTTPS_FILES),
  httpsKey: optional("HTTPS_KEY_FILE", text, HTTPS_FILES),
  trustProxy: optional(
    "TRUST_PROXY",
    trustProxy,
    "Proxies whose X-Forwarded-* headers are trusted, in Express's syntax.",
  ),
  corsOrigins: withDefault(
    ["CORS_ORIGINS", "PGRST_SERVER_CORS_ALLOWED_ORIGINS"],
    origins,
    "*",
    "Origins that may send requests. `*`: all, without cookies.",
  ),
} satisfies Record<string, SettingDefinition<unknown>>;

export const POSTGRES_SETTINGS = {
  databaseUrl: secret(
    ["DATABASE_URL", "PGRST_DB_URI"],
    postgresUrl,
    "Database with the login for requests, or `@` and a path; also [several hosts](replicas.md#failover). Unset: an embedded Postgres.",
  ),
  ownerDatabaseUrl: secret("OWNER_DATABASE_URL", postgresUrl, OTHER_LOGINS),
  directDatabaseUrl: secret("DIRECT_DATABASE_URL", postgresUrl, OTHER_LOGINS),
  readDatabaseUrls: secret("READ_DATABASE_URLS", postgresUrls, REPLICAS),
  maxReplicaLag: withDefault("READ_MAX_LAG_SECONDS", integer(1, 3600), "10", REPLICAS),
  branch: optional("DATABASE_BRANCH", branchName, "[Branch](../db/README.md#branches) to use instead."),
  dataDir: withDefault("DATA_DIR", text, ".data", EMBEDDED),
  storageDir: optional("STORAGE_DIR", text, "Folder of [files](files.md). Unset: `files` in DATA_DIR."),
  storageS3Endpoint: optional("STORAGE_S3_ENDPOINT", httpUrl, FILES_IN_S3),
  storageS3Bucket: withDefault("STORAGE_S3_BUCKET", text, "files", FILES_IN_S3),
  storageS3Region: withDefault("STORAGE_S3_REGION", text, "us-east-1", FILES_IN_S3),
  storageS3AccessKeyId: optional("STORAGE_S3_ACCESS_KEY_ID", text, FILES_IN_S3),
  storageS3SecretAccessKey: secret("STORAGE_S3_SECRET_ACCESS_KEY", text, FILES_IN_S3),
  s3AccessKeyId: optional("S3_PROTOCOL_ACCESS_KEY_ID", text, S3_PROTOCOL_KEY),
  s3AccessKeySecret: secret("S3_PROTOCOL_ACCESS_KEY_SECRET", text, S3_PROTOCOL_KEY),
  storageFileBytes: withDefault("STORAGE_FILE_BYTES", integer(0), "52428800", "Largest file."),
  embeddedPort: optional("EMBEDDED_PORT", integer(1, 65_535), EMBEDDED),
  poolSize: withDefault(["DB_POOL", "PGRST_DB_POOL"], integer(1, 1000), "28", POOL),
  acquireTimeout: withDefault(
    ["DB_ACQUIRE_TIMEOUT_SECONDS", "PGRST_DB_POOL_ACQUISITION_TIMEOUT"],
    integer(1, 600),
    "10",
    POOL,
  ),
  statementTimeout: withDefault("DB_STATEMENT_TIMEOUT_SECONDS", integer(0, 86_400), "30", STATEMENT_TIMEOUTS),
  anonStatementTimeout: withDefault("DB_ANON_STATEMENT_TIMEOUT_SECONDS", integer(0, 86_400), "5", STATEMENT_TIMEOUTS),
  lockTimeout: withDefault("DB_LOCK_TIMEOUT_SECONDS", integer(0, 86_400), "3", STATEMENT_TIMEOUTS),
  pipelineDepth: withDefault("DB_PIPELINE_DEPTH", integer(1, 1000), "64", "Reads in flight on one connection."),
  preparedStatements: optional(
    ["DB_PREPARED_STATEMENTS", "PGRST_DB_PREPARED_STATEMENTS"],
    flag,
    "Shares prepared statements. Unset: found out.",
  ),
  transactionMode: optional(
    "TRANSACTION_MODE",
    oneOf("implicit", "explicit"),
    "`implicit`, or `explicit` (BEGIN and COMMIT) for [some routers](operations.md#other-routers). Unset: found out.",
  ),
  settingMode: optional(
    "CALLER_SETTINGS",
    oneOf("function", "statements"),
    "`statements` sets the caller's role and settings by `SET LOCAL`, which [Citus](engines.md#citus) passes on to its workers. Unset: found out.",
  ),
  channel: withDefault("PGRST_DB_CHANNEL", text, "pgrst", RELOAD_CHANNEL),
  channelEnabled: withDefault("PGRST_DB_CHANNEL_ENABLED", flag, "true", RELOAD_CHANNEL),
  databaseConfig: withDefault("PGRST_DB_CONFIG", flag, "true", DATABASE_CONFIG),
  preConfig: optional("PGRST_DB_PRE_CONFIG", text, DATABASE_CONFIG),
} satisfies Record<string, SettingDefinition<unknown>>;

export const MIGRATION_SETTINGS = {
  baseSchema: optional(
    "BASE_SCHEMA",
    oneOf("content", "platform", "none"),
    "Migrations: `platform`, `content` (with the example application) or `none`. Unset: `content` in a clone, `platform` in a package.",
  ),
  migrationsDir: optional("MIGRATIONS_DIR", text, "Folder of the project's migrations. Unset: `db/migrations`."),
  shadowDatabaseUrl: secret("SHADOW_DATABASE_URL", postgresUrl, OTHER_DATABASES),
  rootDatabaseUrl: secret("ROOT_DATABASE_URL", postgresUrl, OTHER_DATABASES),
  migrateLockTimeout: withDefault("MIGRATE_LOCK_TIMEOUT_MS", integer(0), "1000", MIGRATION_LOCKS),
  migrateLockRetries: withDefault("MIGRATE_LOCK_RETRIES", integer(0, 1000), "10", MIGRATION_LOCKS),
  migrateMaxHold: withDefault(
    "MIGRATE_MAX_HOLD_MS",
    integer(0),
    "5000",
    "How long reads wait before a migration is cancelled. 0: no limit.",
  ),
} satisfies Record<string, SettingDefinition<unknown>>;

export const JOB_SETTINGS = {
  runsSchedules: withDefault("SCHEDULES", flag, "true", COPIED_DATABASE),
  sendsWebhooks: withDefault("WEBHOOKS", flag, "true", COPIED_DATABASE),
  supabaseApis: optional(
    "SUPABASE_APIS",
    supabaseApis,
    "[Supabase's SQL APIs](projects.md#supabases-sql-apis): `cron`, `net`, `vault`, `queues`, `graphql`. Unset: all.",
  ),
  backupSchedule: optional("BACKUP_SCHEDULE", cronSchedule, SCHEDULED_BACKUPS),
  backupDir: withDefault("BACKUP_DIR", text, "backups", SCHEDULED_BACKUPS),
  backupKeep: withDefault("BACKUP_KEEP", integer(1, 10_000), "7", SCHEDULED_BACKUPS),
  archivesWal: withDefault(
    "BACKUP_WAL",
    flag,
    "false",
    "Archives the embedded Postgres, for restoring [any time](backup.md#point-in-time-recovery).",
  ),
  walBaseHours: withDefault("BACKUP_WAL_BASE_HOURS", integer(1, 24 * 31), "24", BASE_BACKUPS),
  walKeepDays: withDefault("BACKUP_WAL_KEEP", integer(1, 3650), "7", BASE_BACKUPS),
  walReserve: withDefault(
    "BACKUP_WAL_RESERVE_MB",
    integer(0),
    "2048",
    "MB to leave free. With less, archiving pauses, and /health is `degraded`.",
  ),
  checksWal: withDefault("BACKUP_WAL_CHECK", flag, "false", CHECKED_BACKUPS),
  checksBackups: withDefault("BACKUP_CHECK", flag, "false", CHECKED_BACKUPS),
} satisfies Record<string, SettingDefinition<unknown>>;

export const LIMIT_SETTINGS = {
  rateLimit: withDefault(
    "RATE_LIMIT",
    integer(0),
    "6000",
    "[Requests per minute](limits.md#requests-per-minute) and caller; 0: no limit.",
  ),
  signUpLimit: withDefault(
    "SIGN_UP_LIMIT",
    integer(0),
    "1000",
    "[Registrations and requested e-mails](limits.md#callers) per hour and address; 0 or RATE_LIMIT=0: no limit.",
  ),
  loadShedding: withDefault(
    "LOAD_SHEDDING",
    flag,
    "true",
    "Callers who send much get 503 under [overload](limits.md#overload), unless RATE_LIMIT=0.",
  ),
  maxBodyBytes: withDefault("MAX_BODY_BYTES", integer(1024), "10485760", BODY_BYTES),
  maxAnonymousBodyBytes: withDefault("MAX_ANONYMOUS_BODY_BYTES", integer(1024), "1048576", BODY_BYTES),
  maxRowBytes: withDefault(
    "MAX_ROW_BYTES",
    integer(1024),
    "4194304",
    "Size of a row, or a function's arguments, at /users and /api.",
  ),
  maxBodyMemory: withDefault(
    "MAX_BODY_MEMORY_BYTES",
    integer(65_536),
    "67108864",
    "Memory for all bodies, then 503; at least twice MAX_BODY_BYTES per worker.",
  ),
  maxAnswerBytes: withDefault(
    "MAX_ANSWER_BYTES",
    integer(65_536, 1_073_741_823),
    "33554432",
    "Size of a response, or streamed row.",
  ),
  maxHeaderBytes: withDefault("MAX_HEADER_BYTES", integer(4096, 1_048_576), "16384", REQUEST_HEAD),
  requestTimeout: withDefault("REQUEST_TIMEOUT_SECONDS", integer(1, 3600), "60", REQUEST_HEAD),
  maxPageSize: withDefault(
    "MAX_PAGE_SIZE",
    integer(1, 100_000),
    "1000",
    "Rows of a page at /users, /api and in GraphQL.",
  ),
  maxBatchParts: withDefault("BATCH_MAX", integer(1, 10_000), "100", "Requests of a batch, then 413."),
  taskTimeout: withDefault(
    "TASK_TIMEOUT_SECONDS",
    integer(0, 86_400),
    "600",
    "Timeout of functions of schedules and `api.enqueue_as`. 0: none.",
  ),
  webSocketConnections: withDefault("WEBSOCKET_MAX_CONNECTIONS", integer(1), "10000", SOCKETS),
  webSocketBytes: withDefault("WEBSOCKET_MAX_BYTES", integer(65_536), "4194304", SOCKETS),
  webSocketTotalBytes: withDefault("WEBSOCKET_MAX_TOTAL_BYTES", integer(1_048_576), "134217728", SOCKETS),
} satisfies Record<string, SettingDefinition<unknown>>;

export const OBSERVABILITY_SETTINGS = {
  logLevel: withDefault(
    ["LOG_LEVEL", "PGRST_LOG_LEVEL"],
    oneOf("silent", "crit", "fatal", "error", "warn", "info", "debug", "trace"),
    "info",
    LOG,
  ),
  slowQueryMs: withDefault("SLOW_QUERY_MS", integer(0), "1000", LOG),
  recordRequests: withDefault(
    "RECORD_REQUESTS",
    flag,
    "true",
    "Counts [shapes of requests](../db/README.md#recorded-requests), without values, for `migrate`.",
  ),
  serverTiming: withDefault(
    ["SERVER_TIMING", "PGRST_SERVER_TIMING_ENABLED"],
    flag,
    "false",
    "Sends the header Server-Timing.",
  ),
  adminPort: optional(["ADMIN_PORT", "PGRST_ADMIN_SERVER_PORT"], integer(0, 65_535), ADMIN_ADDRESS),
  adminHost: withDefault(["ADMIN_HOST", "PGRST_ADMIN_SERVER_HOST"], text, "127.0.0.1", ADMIN_ADDRESS),
  traceEndpoint: optional("OTEL_EXPORTER_OTLP_ENDPOINT", httpUrl, TRACE_COLLECTOR),
  traceEndpointWhole: optional("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", httpUrl, TRACE_COLLECTOR),
  traceHeaders: secret(["OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"], keyValues, TRACE_COLLECTOR),
  tracesDisabled: withDefault("OTEL_SDK_DISABLED", flag, "false", DISABLED_TRACES),
  tracesExporter: withDefault("OTEL_TRACES_EXPORTER", oneOf("otlp", "none"), "otlp", DISABLED_TRACES),
  tracesSampler: withDefault(
    "OTEL_TRACES_SAMPLER",
    oneOf(
      "always_on",
      "always_off",
      "traceidratio",
      "parentbased_always_on",
      "parentbased_always_off",
      "parentbased_traceidratio",
    ),
    "parentbased_always_on",
    TRACE_SAMPLER,
  ),
  tracesSamplerRatio: withDefault("OTEL_TRACES_SAMPLER_ARG", ratio, "1", TRACE_SAMPLER),
  traceServiceName: withDefault("OTEL_SERVICE_NAME", text, "content-service", TRACE_ATTRIBUTES),
  traceResource: withDefault("OTEL_RESOURCE_ATTRIBUTES", keyValues, "", TRACE_ATTRIBUTES),
} satisfies Record<string, SettingDefinition<unknown>>;
