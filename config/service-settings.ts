import {
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

export const SERVER_SETTINGS = {
  port: withDefault(
    ["PORT", "PGRST_SERVER_PORT"],
    integer(0, 65_535),
    "3000",
    "Port to listen on; 0 selects a free port.",
  ),
  host: withDefault(
    ["HOST", "PGRST_SERVER_HOST"],
    text,
    "127.0.0.1",
    "Address to listen on; `0.0.0.0` for all interfaces.",
  ),
  nodeEnv: withDefault(
    "NODE_ENV",
    oneOf("development", "test", "production"),
    "development",
    "`production` makes `owner` the default of USERS_ACCESS, and `administrators` that of STUDIO.",
  ),
  publicUrl: optional("PUBLIC_URL", httpUrl, "Public URL of the service, if a proxy is in front of it. Links use it."),
  workers: withDefault(
    "WEB_CONCURRENCY",
    workerCount,
    "auto",
    "Worker processes that share the port. `auto`: [one for every two cores](operations.md#several-processes), as memory and DB_POOL allow.",
  ),
  drainTimeout: withDefault(
    "DRAIN_TIMEOUT_SECONDS",
    integer(0, 3600),
    "25",
    "Seconds that open requests may take after SIGTERM before they are cancelled.",
  ),
  drainDelay: withDefault(
    "DRAIN_DELAY_SECONDS",
    integer(0, 3600),
    "0",
    "Seconds of DRAIN_TIMEOUT_SECONDS in which all but /health/ready is still served after SIGTERM.",
  ),
  httpsCertificate: optional(
    "HTTPS_CERT_FILE",
    text,
    "PEM file with the HTTPS certificate, followed by its chain. Unset: plain HTTP.",
  ),
  httpsKey: optional("HTTPS_KEY_FILE", text, "PEM file with the private key of the certificate."),
  trustProxy: optional("TRUST_PROXY", trustProxy, "Proxies whose X-Forwarded-* headers are trusted; Express's syntax."),
  corsOrigins: withDefault(
    ["CORS_ORIGINS", "PGRST_SERVER_CORS_ALLOWED_ORIGINS"],
    origins,
    "*",
    "Origins that browsers may send requests from. `*`: all origins, without cookies.",
  ),
} satisfies Record<string, SettingDefinition<unknown>>;

export const POSTGRES_SETTINGS = {
  databaseUrl: secret(
    ["DATABASE_URL", "PGRST_DB_URI"],
    postgresUrl,
    "The Postgres database, with the login for requests; several hosts are possible. `@` and a path: that file. Unset: an embedded Postgres.",
  ),
  ownerDatabaseUrl: secret(
    "OWNER_DATABASE_URL",
    postgresUrl,
    "The same database with its owner: migrations, private functions, the change stream. Unset: DATABASE_URL.",
  ),
  directDatabaseUrl: secret(
    "DIRECT_DATABASE_URL",
    postgresUrl,
    "The same database with its owner, without a pooler in between. Unset: OWNER_DATABASE_URL.",
  ),
  readDatabaseUrls: secret(
    "READ_DATABASE_URLS",
    postgresUrls,
    "Streaming replicas for reads, with the login for requests, separated by commas. Each host is one replica.",
  ),
  maxReplicaLag: withDefault(
    "READ_MAX_LAG_SECONDS",
    integer(1, 3600),
    "10",
    "Maximum lag in seconds of a replica that is used.",
  ),
  dataDir: withDefault("DATA_DIR", text, ".data", "Folder of the embedded Postgres and of its secrets."),
  storageDir: optional(
    "STORAGE_DIR",
    text,
    "Folder of the contents of files. Several gateways share it. Default: the folder `files` of DATA_DIR.",
  ),
  storageS3Endpoint: optional(
    "STORAGE_S3_ENDPOINT",
    httpUrl,
    "URL of an S3 service that keeps the contents of files instead of STORAGE_DIR.",
  ),
  storageS3Bucket: withDefault("STORAGE_S3_BUCKET", text, "files", "Bucket of that service, which must exist."),
  storageS3Region: withDefault("STORAGE_S3_REGION", text, "us-east-1", "Region of that service."),
  storageS3AccessKeyId: optional("STORAGE_S3_ACCESS_KEY_ID", text, "Access key for that service."),
  storageS3SecretAccessKey: secret("STORAGE_S3_SECRET_ACCESS_KEY", text, "Secret of that access key."),
  s3AccessKeyId: optional(
    "S3_PROTOCOL_ACCESS_KEY_ID",
    text,
    "Access key for `/storage/v1/s3` whose requests run as `service_role`. Unset: only session tokens.",
  ),
  s3AccessKeySecret: secret("S3_PROTOCOL_ACCESS_KEY_SECRET", text, "Secret of that access key."),
  storageFileBytes: withDefault(
    "STORAGE_FILE_BYTES",
    integer(0),
    "52428800",
    "Largest file that `/storage/v1` accepts, in bytes. A bucket may have a lower limit.",
  ),
  embeddedPort: optional(
    "EMBEDDED_PORT",
    integer(1, 65_535),
    "Port of 127.0.0.1 on which the embedded Postgres also listens, with a password. Unset: only a Unix socket.",
  ),
  poolSize: withDefault(
    ["DB_POOL", "PGRST_DB_POOL"],
    integer(1, 1000),
    "28",
    "Connections for requests, all workers together: at least 4, and at most half of those that the server has free.",
  ),
  acquireTimeout: withDefault(
    ["DB_ACQUIRE_TIMEOUT_SECONDS", "PGRST_DB_POOL_ACQUISITION_TIMEOUT"],
    integer(1, 600),
    "10",
    "Seconds that a request waits for a connection; then the response is 504.",
  ),
  statementTimeout: withDefault(
    "DB_STATEMENT_TIMEOUT_SECONDS",
    integer(0, 86_400),
    "30",
    "Timeout of statements in seconds, unless the caller's role has a statement_timeout; 0 disables it.",
  ),
  anonStatementTimeout: withDefault(
    "DB_ANON_STATEMENT_TIMEOUT_SECONDS",
    integer(0, 86_400),
    "5",
    "Timeout of statements of the anonymous role (PGRST_DB_ANON_ROLE) in seconds, if less than DB_STATEMENT_TIMEOUT_SECONDS and unless the role has a statement_timeout; 0 disables it.",
  ),
  lockTimeout: withDefault(
    "DB_LOCK_TIMEOUT_SECONDS",
    integer(0, 86_400),
    "3",
    "Seconds that a statement waits for a lock, unless the caller's role has a lock_timeout; 0 disables it.",
  ),
  pipelineDepth: withDefault(
    "DB_PIPELINE_DEPTH",
    integer(1, 1000),
    "64",
    "Maximum number of reads in flight on one connection.",
  ),
  preparedStatements: optional(
    ["DB_PREPARED_STATEMENTS", "PGRST_DB_PREPARED_STATEMENTS"],
    flag,
    "Whether statements are prepared once and used by many requests. Unset: found out.",
  ),
  transactionMode: optional(
    "TRANSACTION_MODE",
    oneOf("implicit", "explicit"),
    "`implicit`: requests are sent as statements before one Sync. `explicit`: between BEGIN and COMMIT, for [some routers](operations.md#other-routers). Unset: found out.",
  ),
  channel: withDefault("PGRST_DB_CHANNEL", text, "pgrst", "NOTIFY channel for `reload schema` and `reload config`."),
  channelEnabled: withDefault("PGRST_DB_CHANNEL_ENABLED", flag, "true", "Whether to listen on this channel."),
  databaseConfig: withDefault(
    "PGRST_DB_CONFIG",
    flag,
    "true",
    "Whether to read settings from the database (see below).",
  ),
  preConfig: optional("PGRST_DB_PRE_CONFIG", text, "Function that sets `pgrst.*` settings (see below)."),
} satisfies Record<string, SettingDefinition<unknown>>;

export const MIGRATION_SETTINGS = {
  baseSchema: optional(
    "BASE_SCHEMA",
    oneOf("content", "platform", "none"),
    "The release's migrations: `platform`; `content`, with the example application; or `none`. Unset: `content` in a clone, `platform` in a package.",
  ),
  migrationsDir: optional(
    "MIGRATIONS_DIR",
    text,
    "Folder of the project's own migrations. Unset: `db/migrations` of the clone, or of the working directory.",
  ),
  shadowDatabaseUrl: secret(
    "SHADOW_DATABASE_URL",
    postgresUrl,
    "Scratch database for `npm run migrate -- commit`, `migrate -- status` and `npm run doctor`; created and dropped.",
  ),
  rootDatabaseUrl: secret(
    "ROOT_DATABASE_URL",
    postgresUrl,
    "Database to connect to for creating and dropping other databases (`migrate -- reset`).",
  ),
} satisfies Record<string, SettingDefinition<unknown>>;

export const JOB_SETTINGS = {
  runsSchedules: withDefault(
    "SCHEDULES",
    flag,
    "true",
    "Whether this gateway runs the [schedules](schedules.md) of `api.schedules`. Set it to `false` for a copy of a database.",
  ),
  sendsWebhooks: withDefault(
    "WEBHOOKS",
    flag,
    "true",
    "Whether this gateway sends [webhooks](webhooks.md). Set it to `false` for a copy of a database.",
  ),
  supabaseApis: optional(
    "SUPABASE_APIS",
    supabaseApis,
    "Which of [Supabase's SQL APIs](projects.md#supabases-sql-apis) `init` creates and this gateway runs: `cron`, `net`, `vault`, `queues`, `graphql`. Unset: all.",
  ),
  backupSchedule: optional(
    "BACKUP_SCHEDULE",
    cronSchedule,
    "When to write a backup, in cron's syntax and UTC: `0 3 * * *` ([nightly backup](backup.md#nightly-backup)). Unset: no backups.",
  ),
  backupDir: withDefault("BACKUP_DIR", text, "backups", "Folder of scheduled backups."),
  backupKeep: withDefault("BACKUP_KEEP", integer(1, 10_000), "7", "Number of scheduled backups to keep."),
  archivesWal: withDefault(
    "BACKUP_WAL",
    flag,
    "false",
    "Whether the embedded Postgres is archived continuously to `wal` in BACKUP_DIR, so that [any time](backup.md#point-in-time-recovery) can be restored.",
  ),
  walBaseHours: withDefault(
    "BACKUP_WAL_BASE_HOURS",
    integer(1, 24 * 31),
    "24",
    "Hours between base backups of the WAL archive.",
  ),
  walKeepDays: withDefault(
    "BACKUP_WAL_KEEP",
    integer(1, 3650),
    "7",
    "Days of which the WAL archive can restore any time.",
  ),
  walReserve: withDefault(
    "BACKUP_WAL_RESERVE_MB",
    integer(0),
    "2048",
    "Free space in MB that the WAL archive leaves on its disk. With less, archiving pauses, and /health is `degraded`.",
  ),
  checksWal: withDefault(
    "BACKUP_WAL_CHECK",
    flag,
    "false",
    "Whether the WAL archive is restored in a temporary folder and checked after each base backup.",
  ),
  checksBackups: withDefault(
    "BACKUP_CHECK",
    flag,
    "false",
    "Whether each scheduled backup is restored into a temporary database and compared, as `restore --check` does. See [Checked backups](backup.md#checked-backups).",
  ),
} satisfies Record<string, SettingDefinition<unknown>>;

export const LIMIT_SETTINGS = {
  rateLimit: withDefault(
    "RATE_LIMIT",
    integer(0),
    "6000",
    "Requests per minute and caller, over all gateways; 0 disables the limit.",
  ),
  signUpLimit: withDefault(
    "SIGN_UP_LIMIT",
    integer(0),
    "1000",
    "Registrations, first sign-ins through a provider and requested e-mails per hour and address; 0 disables the limit, as does RATE_LIMIT=0.",
  ),
  loadShedding: withDefault(
    "LOAD_SHEDDING",
    flag,
    "true",
    "Whether callers who send much get 503 while the process is overloaded, anonymous ones first. RATE_LIMIT=0 disables it too.",
  ),
  maxBodyBytes: withDefault(
    "MAX_BODY_BYTES",
    integer(1024),
    "10485760",
    "Maximum size of a request body with a list of rows; larger ones get 413. Other bodies have lower limits (see limits.md).",
  ),
  maxAnonymousBodyBytes: withDefault(
    "MAX_ANONYMOUS_BODY_BYTES",
    integer(1024),
    "1048576",
    "Maximum size of a request body of the anonymous role.",
  ),
  maxRowBytes: withDefault(
    "MAX_ROW_BYTES",
    integer(1024),
    "4194304",
    "Maximum size of a single row, or of the arguments of a function, in a request body for /users and /api.",
  ),
  maxBodyMemory: withDefault(
    "MAX_BODY_MEMORY_BYTES",
    integer(65_536),
    "67108864",
    "Memory for the bodies of all open requests, half of it for anonymous callers; beyond it 503. At least twice MAX_BODY_BYTES per worker.",
  ),
  maxAnswerBytes: withDefault(
    "MAX_ANSWER_BYTES",
    integer(65_536, 1_073_741_823),
    "33554432",
    "Maximum size of a response that is not streamed, and of one streamed row.",
  ),
  maxHeaderBytes: withDefault(
    "MAX_HEADER_BYTES",
    integer(4096, 1_048_576),
    "16384",
    "Maximum size of a request head; larger ones get 431.",
  ),
  requestTimeout: withDefault(
    "REQUEST_TIMEOUT_SECONDS",
    integer(1, 3600),
    "60",
    "Seconds that a client may take to send a request.",
  ),
  maxPageSize: withDefault(
    "MAX_PAGE_SIZE",
    integer(1, 100_000),
    "1000",
    "Maximum number of rows in a page at /users, /api and in GraphQL; larger pages are cut.",
  ),
  maxBatchParts: withDefault(
    "BATCH_MAX",
    integer(1, 10_000),
    "100",
    "Maximum number of requests in a batch; larger batches get 413.",
  ),
  taskTimeout: withDefault(
    "TASK_TIMEOUT_SECONDS",
    integer(0, 86_400),
    "600",
    "Timeout of functions that schedules and `api.enqueue_as` call, in seconds; 0 disables it.",
  ),
  webSocketConnections: withDefault(
    "WEBSOCKET_MAX_CONNECTIONS",
    integer(1),
    "10000",
    "Maximum number of WebSockets, of all workers together; further ones get 503.",
  ),
  webSocketBytes: withDefault(
    "WEBSOCKET_MAX_BYTES",
    integer(65_536),
    "4194304",
    "Approximate memory for the joins, tokens, filters and variables of one WebSocket.",
  ),
  webSocketTotalBytes: withDefault(
    "WEBSOCKET_MAX_TOTAL_BYTES",
    integer(1_048_576),
    "134217728",
    "The same for all WebSockets, divided among the workers.",
  ),
} satisfies Record<string, SettingDefinition<unknown>>;

export const OBSERVABILITY_SETTINGS = {
  logLevel: withDefault(
    ["LOG_LEVEL", "PGRST_LOG_LEVEL"],
    oneOf("silent", "crit", "fatal", "error", "warn", "info", "debug", "trace"),
    "info",
    "Minimum level of log lines.",
  ),
  slowQueryMs: withDefault(
    "SLOW_QUERY_MS",
    integer(0),
    "1000",
    "Statements that take this many milliseconds or more are logged; 0 disables it.",
  ),
  serverTiming: withDefault(
    ["SERVER_TIMING", "PGRST_SERVER_TIMING_ENABLED"],
    flag,
    "false",
    "Whether responses have a Server-Timing header with the duration of each stage.",
  ),
  adminPort: optional(
    ["ADMIN_PORT", "PGRST_ADMIN_SERVER_PORT"],
    integer(0, 65_535),
    "Admin port with /live, /ready, /metrics and /statements; 0 selects a free port. Unset: no admin port and no metrics.",
  ),
  adminHost: withDefault(
    ["ADMIN_HOST", "PGRST_ADMIN_SERVER_HOST"],
    text,
    "127.0.0.1",
    "Address of ADMIN_PORT. It requires no credentials: restrict access to operators.",
  ),
  traceEndpoint: optional(
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    httpUrl,
    "OpenTelemetry collector (OTLP over HTTP); `v1/traces` is appended. Unset: no traces.",
  ),
  traceEndpointWhole: optional(
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    httpUrl,
    "The same as a complete URL; takes precedence.",
  ),
  traceHeaders: secret(
    ["OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"],
    keyValues,
    "Headers for the collector, `name=value,…`.",
  ),
  tracesDisabled: withDefault("OTEL_SDK_DISABLED", flag, "false", "Disables traces, whatever else is set."),
  tracesExporter: withDefault("OTEL_TRACES_EXPORTER", oneOf("otlp", "none"), "otlp", "`none` disables traces."),
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
    "Which requests are traced. `parentbased` samplers use the decision of the caller's `traceparent`.",
  ),
  tracesSamplerRatio: withDefault(
    "OTEL_TRACES_SAMPLER_ARG",
    ratio,
    "1",
    "Fraction of traces for `traceidratio`, from 0 to 1.",
  ),
  traceServiceName: withDefault("OTEL_SERVICE_NAME", text, "content-service", "Service name in traces."),
  traceResource: withDefault(
    "OTEL_RESOURCE_ATTRIBUTES",
    keyValues,
    "",
    "Further resource attributes in traces, `deployment.environment.name=production,…`.",
  ),
} satisfies Record<string, SettingDefinition<unknown>>;
