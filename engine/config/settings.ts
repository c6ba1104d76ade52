import {
  claimPath,
  email,
  flag,
  headerName,
  httpUrl,
  integer,
  jwtSecret,
  jwtSecrets,
  keyValues,
  list,
  mailAddress,
  nonEmptyList,
  oneOf,
  origins,
  postgresUrl,
  postgresUrls,
  privateKey,
  publicKeys,
  ratio,
  redirectTargets,
  type SettingReader,
  smtpUrl,
  text,
  trustProxy,
} from "./setting-readers.ts";

export type SettingDefinition<T> = {
  /** The first is the name we print; the others are accepted too, PostgREST's for those who come from there. */
  readonly names: readonly [string, ...string[]];
  readonly read: SettingReader<T>;
  /** The value without the setting, as its text would be; null when there is none. */
  readonly fallback: string | null;
  readonly description: string;
  readonly secret: boolean;
};

type SettingNames = string | readonly [string, ...string[]];

function withDefault<T>(
  names: SettingNames,
  read: SettingReader<T>,
  fallback: string,
  description: string,
): SettingDefinition<T> {
  return { names: typeof names === "string" ? [names] : names, read, fallback, description, secret: false };
}

function optional<T>(names: SettingNames, read: SettingReader<T>, description: string): SettingDefinition<T | null> {
  return { names: typeof names === "string" ? [names] : names, read, fallback: null, description, secret: false };
}

function secret<T>(names: SettingNames, read: SettingReader<T>, description: string): SettingDefinition<T | null> {
  return { ...optional(names, read, description), secret: true };
}

/** Every setting there is. `docs/settings.md` and `npm run config` are made from this table. */
export const SETTINGS = {
  // The service
  port: withDefault(
    ["PORT", "PGRST_SERVER_PORT"],
    integer(0, 65_535),
    "3000",
    "Port to listen on; 0 takes a free one.",
  ),
  host: withDefault(["HOST", "PGRST_SERVER_HOST"], text, "127.0.0.1", "Address to listen on; 0.0.0.0 for all."),
  nodeEnv: withDefault(
    "NODE_ENV",
    oneOf("development", "test", "production"),
    "development",
    "`production` closes /users to strangers (see USERS_ACCESS).",
  ),
  publicUrl: optional(
    "PUBLIC_URL",
    httpUrl,
    "The address clients use, when a proxy stands in front; links are made from it.",
  ),
  logLevel: withDefault(
    ["LOG_LEVEL", "PGRST_LOG_LEVEL"],
    oneOf("silent", "crit", "fatal", "error", "warn", "info", "debug", "trace"),
    "info",
    "The least important log line that is written.",
  ),
  httpsCertificate: optional(
    "HTTPS_CERT_FILE",
    text,
    "File of the certificate that HTTPS is served with, followed by those that vouch for it, in PEM form. Unset: plain HTTP.",
  ),
  httpsKey: optional("HTTPS_KEY_FILE", text, "File of that certificate's private key, in PEM form."),
  trustProxy: optional(
    "TRUST_PROXY",
    trustProxy,
    "Proxies whose X-Forwarded-* headers are believed; takes what Express takes.",
  ),
  corsOrigins: withDefault(
    ["CORS_ORIGINS", "PGRST_SERVER_CORS_ALLOWED_ORIGINS"],
    origins,
    "*",
    "Origins that browsers may call from. Any origin, but without cookies, when unset.",
  ),
  maxBodyBytes: withDefault(
    "MAX_BODY_BYTES",
    integer(1024),
    "10485760",
    "Largest request body: a list of rows. Larger ones get 413; what is no list of rows has less (see limits.md).",
  ),
  maxAnonymousBodyBytes: withDefault(
    "MAX_ANONYMOUS_BODY_BYTES",
    integer(1024),
    "1048576",
    "Largest request body of a caller in the anonymous role, with the public key or without.",
  ),
  maxRowBytes: withDefault(
    "MAX_ROW_BYTES",
    integer(1024),
    "4194304",
    "Largest row in a request body on /users and /api, and largest body with the arguments of a function there.",
  ),
  maxBodyMemory: withDefault(
    "MAX_BODY_MEMORY_BYTES",
    integer(65_536),
    "67108864",
    "Memory for the bodies of all requests in flight, in each process; anonymous callers may take half. Beyond it requests get 503. At least twice MAX_BODY_BYTES, whatever is set.",
  ),
  maxAnswerBytes: withDefault(
    "MAX_ANSWER_BYTES",
    integer(65_536, 1_073_741_823),
    "33554432",
    "Largest answer that is held as a whole, and largest row of one that is sent as it comes; a larger read gets 400. An operation of GraphQL has a quarter of it for its rows, since they take ten times their length as objects, and for its answer, which is put together at once; that of an anonymous caller has an eighth. The default is more than a page shows, and eight of them fit into a small machine.",
  ),
  maxHeaderBytes: withDefault(
    "MAX_HEADER_BYTES",
    integer(4096, 1_048_576),
    "16384",
    "Largest request head; larger ones get 431.",
  ),
  requestTimeout: withDefault(
    "REQUEST_TIMEOUT_SECONDS",
    integer(1, 3600),
    "60",
    "Seconds that a client may take to send its request.",
  ),
  drainTimeout: withDefault(
    "DRAIN_TIMEOUT_SECONDS",
    integer(0, 3600),
    "25",
    "Seconds that requests in flight may take after SIGTERM before they are cut off.",
  ),
  rateLimit: withDefault(
    "RATE_LIMIT",
    integer(0),
    "6000",
    "Requests per minute and caller, all gateways together; 0 switches the limit off.",
  ),
  webSocketConnections: withDefault(
    "WEBSOCKET_MAX_CONNECTIONS",
    integer(1),
    "10000",
    "Most WebSockets that one process holds open; one more is answered 503.",
  ),
  webSocketBytes: withDefault(
    "WEBSOCKET_MAX_BYTES",
    integer(65_536),
    "4194304",
    "Most memory, about, for the joins, tokens, filters and variables that one WebSocket has open.",
  ),
  webSocketTotalBytes: withDefault(
    "WEBSOCKET_MAX_TOTAL_BYTES",
    integer(1_048_576),
    "134217728",
    "The same for all WebSockets of a process together. What their clients have not read yet may take as much again, messages that are arriving half of it, presences a quarter.",
  ),
  signUpLimit: withDefault(
    "SIGN_UP_LIMIT",
    integer(0),
    "1000",
    "Registrations and mails asked for, per hour and address; 0 switches the limit off, and so does RATE_LIMIT=0.",
  ),
  workers: withDefault("WEB_CONCURRENCY", integer(1, 512), "1", "Processes that share the port, about one per core."),
  serverTiming: withDefault(
    ["SERVER_TIMING", "PGRST_SERVER_TIMING_ENABLED"],
    flag,
    "false",
    "Whether answers tell in a Server-Timing header how long each stage took.",
  ),

  // Operation
  adminPort: optional(
    ["ADMIN_PORT", "PGRST_ADMIN_SERVER_PORT"],
    integer(0, 65_535),
    "Port for operators, with /live, /ready, /metrics and /statements; 0 takes a free one. Unset: none, and nothing is measured.",
  ),
  adminHost: withDefault(
    ["ADMIN_HOST", "PGRST_ADMIN_SERVER_HOST"],
    text,
    "127.0.0.1",
    "Address that ADMIN_PORT is opened on. It asks for no credentials: nobody but operators may reach it.",
  ),
  slowQueryMs: withDefault(
    "SLOW_QUERY_MS",
    integer(0),
    "1000",
    "Milliseconds from which on a statement is written to the log, waiting for a connection included; 0 is never.",
  ),
  traceEndpoint: optional(
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    httpUrl,
    "Where traces are sent as OpenTelemetry's OTLP over HTTP, below its path v1/traces. Unset: there are none.",
  ),
  traceEndpointWhole: optional(
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    httpUrl,
    "The same as a whole address, which goes before the other.",
  ),
  traceHeaders: secret(
    ["OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS"],
    keyValues,
    "Headers that traces are sent with, `name=value,…`.",
  ),
  tracesDisabled: withDefault("OTEL_SDK_DISABLED", flag, "false", "Whether there are no traces, whatever else is set."),
  tracesExporter: withDefault("OTEL_TRACES_EXPORTER", oneOf("otlp", "none"), "otlp", "`none`: there are no traces."),
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
    "Which requests are traced; `parentbased`: as the caller's `traceparent` says, where there is one.",
  ),
  tracesSamplerRatio: withDefault(
    "OTEL_TRACES_SAMPLER_ARG",
    ratio,
    "1",
    "The part of all traces that `traceidratio` takes, from 0 to 1.",
  ),
  traceServiceName: withDefault("OTEL_SERVICE_NAME", text, "content-service", "What traces call this service."),
  traceResource: withDefault(
    "OTEL_RESOURCE_ATTRIBUTES",
    keyValues,
    "",
    "What else traces say of it, `deployment.environment.name=production,…`.",
  ),

  // The database
  databaseUrl: secret(
    ["DATABASE_URL", "PGRST_DB_URI"],
    postgresUrl,
    "The Postgres to serve, as the login that requests use. Unset: an embedded Postgres in DATA_DIR.",
  ),
  ownerDatabaseUrl: secret(
    "OWNER_DATABASE_URL",
    postgresUrl,
    "The same database as its owner: migrations, private functions, the change stream. Unset: DATABASE_URL.",
  ),
  readDatabaseUrls: secret(
    "READ_DATABASE_URLS",
    postgresUrls,
    "Streaming replicas that reads may go to, as the login that requests use, separated by commas.",
  ),
  maxReplicaLag: withDefault(
    "READ_MAX_LAG_SECONDS",
    integer(1, 3600),
    "10",
    "Seconds that a replica may be behind; one that is more is not asked before it has caught up.",
  ),
  shadowDatabaseUrl: secret(
    "SHADOW_DATABASE_URL",
    postgresUrl,
    "A scratch database, which is created and dropped: for `npm run migrate -- commit` and `status`, and `npm run doctor`. A database with tables of something else is refused.",
  ),
  rootDatabaseUrl: secret(
    "ROOT_DATABASE_URL",
    postgresUrl,
    "A database to create and drop others from (`migrate -- reset`).",
  ),
  migrationsDir: optional(
    "MIGRATIONS_DIR",
    text,
    "Folder of this project's own migrations. Unset: `db/migrations`, of the clone or else of the working directory.",
  ),
  dataDir: withDefault("DATA_DIR", text, ".data", "Folder of the embedded Postgres and of the secrets made for it."),
  embeddedPort: optional(
    "EMBEDDED_PORT",
    integer(1, 65_535),
    "Opens the embedded Postgres on this port of 127.0.0.1, with a password. Unset: its unix socket alone.",
  ),
  poolSize: withDefault(
    ["DB_POOL", "PGRST_DB_POOL"],
    integer(4, 1000),
    "28",
    "Most connections that requests may use, all processes of WEB_CONCURRENCY together, within half of what the server has free.",
  ),
  acquireTimeout: withDefault(
    ["DB_ACQUIRE_TIMEOUT_SECONDS", "PGRST_DB_POOL_ACQUISITION_TIMEOUT"],
    integer(1, 600),
    "10",
    "Seconds that a request waits for a connection before it is answered 504.",
  ),
  statementTimeout: withDefault(
    "DB_STATEMENT_TIMEOUT_SECONDS",
    integer(0, 86_400),
    "30",
    "Seconds that a statement may take, where the caller's role has no statement_timeout of its own; 0 is no limit.",
  ),
  anonStatementTimeout: withDefault(
    "DB_ANON_STATEMENT_TIMEOUT_SECONDS",
    integer(0, 86_400),
    "5",
    "Seconds that a statement of the anonymous role (PGRST_DB_ANON_ROLE) may take, where that is less than DB_STATEMENT_TIMEOUT_SECONDS and the role has no statement_timeout of its own; 0 is no shorter limit.",
  ),
  lockTimeout: withDefault(
    "DB_LOCK_TIMEOUT_SECONDS",
    integer(0, 86_400),
    "3",
    "Seconds that a statement may wait for one lock, where the caller's role has no lock_timeout of its own; 0 is no limit.",
  ),
  taskTimeout: withDefault(
    "TASK_TIMEOUT_SECONDS",
    integer(0, 86_400),
    "600",
    "Seconds that work may take which was asked for with `Prefer: respond-async`; 0 is no limit.",
  ),
  pipelineDepth: withDefault(
    "DB_PIPELINE_DEPTH",
    integer(1, 1000),
    "64",
    "Most reads that are in flight on one connection. Only statements that are known to be fast share one, and together they are expected to take 10 ms at most.",
  ),
  preparedStatements: withDefault(
    ["DB_PREPARED_STATEMENTS", "PGRST_DB_PREPARED_STATEMENTS"],
    flag,
    "true",
    "Set to false behind a pooler that cannot keep prepared statements.",
  ),

  // Who asks
  jwtSecret: secret(
    ["JWT_SECRET", "PGRST_JWT_SECRET"],
    jwtSecret,
    "Signs and verifies tokens by HS256; at least 32 characters. Made once for the embedded database, required with DATABASE_URL.",
  ),
  jwtSecretIsBase64: withDefault(
    "PGRST_JWT_SECRET_IS_BASE64",
    flag,
    "false",
    "Whether JWT_SECRET is base64 of the real secret, which has at least 32 bytes then.",
  ),
  jwtPrivateKey: secret(
    "JWT_PRIVATE_KEY",
    privateKey,
    "RSA key in PEM form: tokens are signed by RS256 instead of HS256.",
  ),
  jwtPreviousSecrets: secret(
    "JWT_PREVIOUS_SECRETS",
    jwtSecrets,
    "Secrets from before, separated by commas, whose tokens are still taken. A week after the change they can go.",
  ),
  jwtPreviousPublicKeys: secret(
    "JWT_PREVIOUS_PUBLIC_KEYS",
    publicKeys,
    "RSA keys from before in PEM form, one after the other, whose tokens are still taken. A week after the change they can go.",
  ),
  jwtIssuer: withDefault("JWT_ISSUER", text, "content-service", "The `iss` claim of the tokens that are issued here."),
  jwtAudience: optional(
    ["JWT_AUDIENCE", "PGRST_JWT_AUD"],
    text,
    "When set, a token with another `aud` is refused; one without is for everybody.",
  ),
  jwtRoleClaim: withDefault(
    "PGRST_JWT_ROLE_CLAIM_KEY",
    claimPath,
    ".role",
    'Where in the token the database role is named; `.roles[?(@ ^== "app_")]` is the first text of a list that begins so, `$.roles[?search(@, "^app_")]` the first that has the pattern.',
  ),
  jwtCacheEntries: withDefault(
    "PGRST_JWT_CACHE_MAX_ENTRIES",
    integer(0),
    "10000",
    "Verified tokens that are remembered.",
  ),
  passwordPolicy: withDefault(
    "PASSWORD_POLICY",
    oneOf("standard", "strict"),
    "standard",
    "`standard`: 8 characters with upper, lower and digit. `strict`: 12, and a special one too.",
  ),
  signInRedirects: withDefault(
    "SIGN_IN_REDIRECTS",
    redirectTargets,
    "",
    "Addresses, separated by commas, that a sign-in through a provider may end at, beside this service's own; one that ends in /* stands for all below it.",
  ),
  adminEmail: optional("ADMIN_EMAIL", email, "E-mail of the first administrator, made at the first start."),
  adminPassword: secret("ADMIN_PASSWORD", text, "Password of the first administrator."),
  smtpUrl: secret(
    "SMTP_URL",
    smtpUrl,
    "The server that sends mails, `smtp://user:password@host:587` or `smtps://…`. Unset: they are written to MAIL_DIR.",
  ),
  mailFrom: optional("MAIL_FROM", mailAddress, "Whom mails come from; to be set together with SMTP_URL."),
  mailDir: optional(
    "MAIL_DIR",
    text,
    "Folder for mails where SMTP_URL is not set. Unset: `mail` in DATA_DIR; in production none, and no mails.",
  ),

  // The table interface
  schemas: withDefault("PGRST_DB_SCHEMAS", nonEmptyList, "public", "Exposed schemas; the first one is the default."),
  anonRole: withDefault(
    "PGRST_DB_ANON_ROLE",
    text,
    "anon",
    "Database role of callers without credentials; where there is no such role, they get 401.",
  ),
  extraSearchPath: withDefault(
    "PGRST_DB_EXTRA_SEARCH_PATH",
    list,
    "public, extensions",
    "Schemas whose functions and operators can be used unqualified.",
  ),
  maxRows: optional("PGRST_DB_MAX_ROWS", integer(0), "Most rows that one request of the table interface returns."),
  aggregates: withDefault(
    "PGRST_DB_AGGREGATES_ENABLED",
    flag,
    "false",
    "Whether select may use count(), sum(), avg(), min(), max().",
  ),
  planEnabled: withDefault("PGRST_DB_PLAN_ENABLED", flag, "false", "Whether a client may ask for the execution plan."),
  preRequest: optional(
    "PGRST_DB_PRE_REQUEST",
    text,
    "Function that is called at the start of the transaction of every request to /rest/v1.",
  ),
  txEnd: withDefault(
    "PGRST_DB_TX_END",
    oneOf("commit", "commit-allow-override", "rollback", "rollback-allow-override"),
    "commit",
    "How transactions end, and whether `Prefer: tx` may say otherwise.",
  ),
  rootSpec: optional("PGRST_DB_ROOT_SPEC", text, "Function that answers at /rest/v1/ instead of the OpenAPI document."),
  hoistedSettings: withDefault(
    "PGRST_DB_HOISTED_TX_SETTINGS",
    list,
    "statement_timeout, plan_filter.statement_cost_limit, default_transaction_isolation",
    "Settings of a function that hold for its whole transaction.",
  ),
  databaseConfig: withDefault(
    "PGRST_DB_CONFIG",
    flag,
    "true",
    "Whether settings are also read from the database (see below).",
  ),
  preConfig: optional("PGRST_DB_PRE_CONFIG", text, "Function that sets `pgrst.*` settings (see below)."),
  timezoneEnabled: withDefault(
    "PGRST_DB_TIMEZONE_ENABLED",
    flag,
    "true",
    "Whether `Prefer: timezone` is heard; the names of time zones are read for it.",
  ),
  channel: withDefault(
    "PGRST_DB_CHANNEL",
    text,
    "pgrst",
    "Channel on which `reload schema` and `reload config` are heard.",
  ),
  channelEnabled: withDefault("PGRST_DB_CHANNEL_ENABLED", flag, "true", "Whether that channel is listened to."),
  openapiMode: withDefault(
    "PGRST_OPENAPI_MODE",
    oneOf("follow-privileges", "ignore-privileges", "disabled"),
    "follow-privileges",
    "What the OpenAPI document shows.",
  ),
  openapiProxyUrl: optional("PGRST_OPENAPI_SERVER_PROXY_URI", text, "The address that the OpenAPI document names."),
  openapiSecurity: withDefault(
    "PGRST_OPENAPI_SECURITY_ACTIVE",
    flag,
    "false",
    "Whether the OpenAPI document asks for a token.",
  ),
  tableErrorVerbosity: withDefault(
    "PGRST_CLIENT_ERROR_VERBOSITY",
    oneOf("verbose", "minimal"),
    "verbose",
    "Whether errors of /rest/v1 have details and a hint, or a code and a message alone.",
  ),
  legacyTargetNames: withDefault(
    "PGRST_URL_USE_LEGACY_TARGET_NAMES",
    flag,
    "true",
    "Whether filters, orders and limits may call a relation that has an alias by its name as well.",
  ),
  traceHeader: optional("PGRST_SERVER_TRACE_HEADER", headerName, "Request header that is echoed in the answer."),
  requireApiKey: withDefault(
    "REST_REQUIRE_APIKEY",
    flag,
    "true",
    "Whether /rest/v1 refuses requests without an `apikey`.",
  ),
  realtimeMaxChannels: withDefault(
    "REALTIME_MAX_CHANNELS",
    integer(1),
    "100",
    "Most channels that are joined on one WebSocket of /realtime/v1.",
  ),
  realtimeMaxBindings: withDefault(
    "REALTIME_MAX_BINDINGS",
    integer(0),
    "100",
    "Most `postgres_changes` that one channel asks for; 0 is no limit.",
  ),
  realtimeMaxJoins: withDefault(
    "REALTIME_MAX_JOINS_PER_SECOND",
    integer(0),
    "100",
    "Most joins and new tokens a second on one WebSocket, over five seconds; 0 is no limit.",
  ),
  realtimeMaxMessages: withDefault(
    "REALTIME_MAX_MESSAGES_PER_SECOND",
    integer(0),
    "2000",
    "Most messages a second that one WebSocket sends, over five seconds: the channel of one more is closed; 0 is no limit.",
  ),
  realtimeMaxBytes: withDefault(
    "REALTIME_MAX_BYTES_PER_SECOND",
    integer(0),
    "5242880",
    "Most bytes a second that are read of one WebSocket, over five seconds: more wait; 0 is no limit.",
  ),
  realtimeMaxPresences: withDefault(
    "REALTIME_MAX_PRESENCES_PER_SECOND",
    integer(0),
    "10",
    "Most presences a second that one WebSocket tracks and untracks, over five seconds: the channel of one more is closed; 0 is no limit.",
  ),
  realtimeCheckTimeout: withDefault(
    "REALTIME_CHECK_TIMEOUT_SECONDS",
    integer(1, 600),
    "2",
    "Seconds that the policies, or the filters of one subscriber, may take for the changes that are looked at together; whom longer ones concern is told that changes may have been missed.",
  ),
  realtimeSlot: withDefault(
    "REALTIME_SLOT",
    oneOf("auto", "always", "never"),
    "auto",
    "Whether a replication slot keeps the last two minutes of changes, so that a lost connection or a killed process loses none and subscribers can resume. `auto`: where the server bounds what a slot may keep (max_slot_wal_keep_size).",
  ),
  safeWrites: withDefault("REST_SAFE_WRITES", flag, "true", "Whether UPDATE and DELETE without a filter are refused."),

  // The conventional interface
  usersAccess: optional(
    "USERS_ACCESS",
    oneOf("open", "owner"),
    "Who may change and delete users: `open` is anybody, `owner` the user and administrators. Unset: `owner` in production, else `open`.",
  ),
  putSemantics: withDefault(
    "PUT_SEMANTICS",
    oneOf("replace", "merge"),
    "replace",
    "What PUT does with fields that are absent.",
  ),
  errorBody: withDefault("ERROR_BODY", oneOf("nested", "detail", "flat", "spring"), "nested", "Shape of error bodies."),
  maxPageSize: withDefault("MAX_PAGE_SIZE", integer(1, 100_000), "1000", "Largest page; a larger one is cut to it."),

  // GraphQL
  graphqlMaxDepth: withDefault("GRAPHQL_MAX_DEPTH", integer(1), "15", "Deepest nesting of fields."),
  graphqlMaxComplexity: withDefault("GRAPHQL_MAX_COMPLEXITY", integer(1), "1000", "Most fields of one operation."),
  graphqlMaxBodyBytes: withDefault(
    "GRAPHQL_MAX_BODY_BYTES",
    integer(1024),
    "1048576",
    "Largest request body: a document and its variables.",
  ),
  graphqlMaxTokens: withDefault("GRAPHQL_MAX_TOKENS", integer(1), "15000", "Most words and signs of one document."),
  graphqlMaxAliases: withDefault("GRAPHQL_MAX_ALIASES", integer(0), "1000", "Most aliases of one document."),
  graphqlMaxDirectives: withDefault("GRAPHQL_MAX_DIRECTIVES", integer(0), "500", "Most directives of one document."),
  graphqlMaxRootFields: withDefault(
    "GRAPHQL_MAX_ROOT_FIELDS",
    integer(1),
    "500",
    "Most fields at the root of one operation, each of which may be a statement of its own.",
  ),
  graphqlMaxAnonymousPlanned: withDefault(
    "GRAPHQL_MAX_ANONYMOUS_PLANNED_FIELDS",
    integer(1),
    "750",
    "Most fields with fields of their own in one operation of an anonymous caller: to plan one takes up to half a millisecond.",
  ),
  graphqlStatementTimeout: withDefault(
    "GRAPHQL_STATEMENT_TIMEOUT_SECONDS",
    integer(0, 86_400),
    "10",
    "Seconds that a statement of GraphQL may take, where that is less than DB_STATEMENT_TIMEOUT_SECONDS; 0 is no limit.",
  ),
  graphqlMaxSocketOperations: withDefault(
    "GRAPHQL_MAX_SOCKET_OPERATIONS",
    integer(1),
    "100",
    "Most operations that are open on one WebSocket.",
  ),
  graphqlInternalErrorStatus: withDefault(
    "GRAPHQL_INTERNAL_ERROR_STATUS",
    oneOf("200", "400"),
    "200",
    "HTTP status of an answer that holds an internal error.",
  ),
  graphqlIntrospection: withDefault(
    "GRAPHQL_INTROSPECTION",
    oneOf("off", "authenticated", "all"),
    "all",
    "Who may ask GraphQL about its schema: `all`, `authenticated` (everybody but anonymous callers) or nobody (`off`). Each role is shown what it may use.",
  ),
  graphqlExplorer: withDefault("GRAPHQL_EXPLORER", flag, "true", "Whether GraphiQL is served at /graphiql."),
  graphqlPersistedOperations: optional(
    "GRAPHQL_PERSISTED_OPERATIONS",
    text,
    "Folder of registered operations, each in a file `<id>.graphql`, that clients may ask for by id.",
  ),
  graphqlPersistedOnly: withDefault(
    "GRAPHQL_PERSISTED_ONLY",
    flag,
    "false",
    "Whether registered operations are the only ones that are run.",
  ),
} satisfies Record<string, SettingDefinition<unknown>>;

export type SettingKey = keyof typeof SETTINGS;

/** What SQL may say, by the names that it has there: PostgREST's own list. */
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
      "tableErrorVerbosity",
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

/** `pgrst.db_schemas` for `PGRST_DB_SCHEMAS`; null for what PostgREST does not know. */
export function toDatabaseName(names: SettingDefinition<unknown>["names"]): string | null {
  const name = names.find((each) => each.startsWith("PGRST_"));
  return name ? `pgrst.${name.slice("PGRST_".length).toLowerCase()}` : null;
}

/** PostgREST's settings that need no counterpart here; they are accepted so that its environment can be taken over. */
export const IGNORED_SETTINGS: Readonly<Record<string, string>> = {
  PGRST_DB_POOL_AUTOMATIC_RECOVERY: "connections always come back by themselves",
  PGRST_DB_POOL_MAX_IDLETIME: "idle connections are closed by themselves",
  PGRST_DB_POOL_MAX_LIFETIME: "connections need no renewal",
  PGRST_JWT_CACHE_MAX_LIFETIME: "a token is remembered until it expires",
  PGRST_SERVER_UNIX_SOCKET: "the service listens on HOST and PORT",
  PGRST_SERVER_UNIX_SOCKET_MODE: "the service listens on HOST and PORT",
  PGRST_LOG_QUERY: "use LOG_LEVEL=debug",
  PGRST_SERVER_OTEL_ENABLED: "OTEL_EXPORTER_OTLP_ENDPOINT alone says whether there are traces",
};
