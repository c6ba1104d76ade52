import {
  claimPath,
  domainName,
  email,
  flag,
  functionName,
  headerName,
  httpUrl,
  integer,
  jwtSecret,
  jwtSecrets,
  keySetUrl,
  list,
  mailAddress,
  nonEmptyList,
  oneOf,
  optional,
  originList,
  privateKey,
  publicKeys,
  redirectTargets,
  type SettingDefinition,
  secret,
  smtpUrl,
  text,
  webhookSecret,
  withDefault,
} from "./setting-readers.ts";

// Settings with one description share a row of docs/settings.md.
const PREVIOUS_KEYS =
  "[Previous](sign-in.md#rotating-signing-keys) secrets, separated by commas; public keys (PEM), concatenated.";
const FIRST_ADMINISTRATOR = "Administrator that the first start creates.";
const MAIL_LIMITS = "Limits of /auth/v1 for an address: seconds between e-mails of a kind, and e-mails per hour.";
const SMS_WEBHOOK =
  "[Webhook](sign-in.md#phone-numbers) that sends text messages; its secret, `v1,whsec_` and base64 of at least 24 bytes.";
const OPENAPI_CONTENT = "Its server URL, and whether it declares a token.";
const OPERATION_FIELDS = "Nesting and number of fields in an operation.";
const PERSISTED_OPERATIONS =
  "Folder of [registered operations](graphql.md#registered-operations), and whether only these run.";
const CHANNEL_LIMITS = "Channels of a WebSocket; `postgres_changes` of a channel (0: no limit).";
const SOCKET_RATES =
  "For each WebSocket: joins and tokens; messages; bytes (beyond it reading pauses); presence updates. Beyond messages or updates the channel is closed.";
const OPTIONAL_PARTS = "Clients may use aggregates (also in GraphQL), execution plans, `Prefer: timezone`.";
const SAFE_REQUESTS = "/rest/v1 requires an `apikey`; it refuses UPDATE and DELETE without a filter.";
const DOCUMENT_SIZE =
  "Size of a request body; tokens, aliases and directives of its document; root fields of an operation.";
const SMTP =
  "`smtp://user:password@host:587` or `smtps://…`, and the required sender of e-mails. Unset: MAIL_DIR is used.";
const SQL_HOOKS = "Functions called before each request to /rest/v1, and at /rest/v1/.";
const GRAPHQL_PARTS = "Serves GraphiQL; gives rows Relay's [global ids](graphql.md#global-ids).";

export const DEFAULT_JWT_ISSUER = "content-service";

export const ACCOUNT_SETTINGS = {
  jwtSecret: secret(
    ["JWT_SECRET", "PGRST_JWT_SECRET"],
    jwtSecret,
    "Secret of tokens (HS256), at least 32 characters, [a JWK or JWKS](sign-in.md#tokens-of-other-issuers), or `@` and a path. Generated for the embedded database.",
  ),
  jwtSecretIsBase64: withDefault(
    "PGRST_JWT_SECRET_IS_BASE64",
    flag,
    "false",
    "JWT_SECRET is base64 of at least 32 bytes.",
  ),
  jwtPrivateKey: secret(
    "JWT_PRIVATE_KEY",
    privateKey,
    "PEM key that signs tokens instead: RSA (RS256) or EC P-256 (ES256).",
  ),
  jwtPreviousSecrets: secret("JWT_PREVIOUS_SECRETS", jwtSecrets, PREVIOUS_KEYS),
  jwtPreviousPublicKeys: secret("JWT_PREVIOUS_PUBLIC_KEYS", publicKeys, PREVIOUS_KEYS),
  jwtKeySetUrl: optional("JWT_JWKS_URL", keySetUrl, "[Another issuer's JWKS](sign-in.md#tokens-of-other-issuers)."),
  jwtIssuer: withDefault(
    "JWT_ISSUER",
    text,
    DEFAULT_JWT_ISSUER,
    "`iss` of our tokens. Any but the default is also required of others.",
  ),
  authSubject: optional(
    "AUTH_SUBJECT",
    oneOf("id", "uuid"),
    "`sub` at /auth/v1: `id`, or `uuid` (then `user_id` has the id). Unset: the type of `auth.uid()`.",
  ),
  jwtAudience: optional(["JWT_AUDIENCE", "PGRST_JWT_AUD"], text, "Required `aud` of tokens."),
  jwtRoleClaim: withDefault(
    "PGRST_JWT_ROLE_CLAIM_KEY",
    claimPath,
    ".role",
    'Path of the role\'s claim: `.roles[0]`, `$.roles[?search(@, "^app_")]`.',
  ),
  jwtCacheEntries: withDefault("PGRST_JWT_CACHE_MAX_ENTRIES", integer(0), "10000", "Tokens in the cache."),
  manualLinking: withDefault("AUTH_MANUAL_LINKING", flag, "false", "Users may link and unlink identities at /auth/v1."),
  claimsHook: optional(
    "CLAIMS_HOOK",
    functionName,
    "[SQL function](sign-in.md#a-function-for-claims), `schema.name`, that changes claims.",
  ),
  passwordPolicy: withDefault(
    "PASSWORD_POLICY",
    oneOf("minimal", "standard", "strict"),
    "standard",
    "`standard`: 8 characters with upper case, lower case and a digit. `strict`: 12, and a special one. `minimal`: any 6.",
  ),
  usersAccess: optional(
    "USERS_ACCESS",
    oneOf("open", "owner"),
    "`open`: anybody may read and change users and drafts. `owner`: [only owners](security.md#users-and-drafts). Unset: `owner`, on a playground `open`.",
  ),
  signInRedirects: withDefault(
    "SIGN_IN_REDIRECTS",
    redirectTargets,
    "",
    "Further redirect URLs of sign-ins and e-mails, separated by commas; `/*` allows all below.",
  ),
  signUps: withDefault("AUTH_SIGN_UPS", flag, "true", "Others than administrators may create users."),
  autoConfirm: optional(
    "AUTH_AUTOCONFIRM",
    flag,
    "New addresses count as proved. Unset: true on a playground without `SMTP_URL`.",
  ),
  anonymousSignIns: withDefault(
    "AUTH_ANONYMOUS_SIGN_INS",
    flag,
    "false",
    "/auth/v1/signup without credentials creates an anonymous account.",
  ),
  webauthnRpId: optional(
    "WEBAUTHN_RP_ID",
    domainName,
    "Domain of [passkeys](sign-in.md#passkeys). A change makes them unusable. Unset: the host of PUBLIC_URL, or `localhost`.",
  ),
  webauthnOrigins: withDefault(
    "WEBAUTHN_ORIGINS",
    (value) => originList(value),
    "",
    "Origins that may use passkeys. Unset: those of PUBLIC_URL, SITE_URL, CORS_ORIGINS and SIGN_IN_REDIRECTS.",
  ),
  aal1Access: withDefault(
    "AUTH_AAL1_ACCESS",
    oneOf("auth", "full"),
    "auth",
    "What tokens without the second factor may use. `auth`: /auth/v1. `full`: everything, so policies must check `aal`.",
  ),
  passwordReauthentication: withDefault(
    "AUTH_PASSWORD_REAUTHENTICATION",
    flag,
    "true",
    "A day after the sign-in, a new password at /auth/v1/user needs a code.",
  ),
  adminEmail: optional("ADMIN_EMAIL", email, FIRST_ADMINISTRATOR),
  adminPassword: secret("ADMIN_PASSWORD", text, FIRST_ADMINISTRATOR),
} satisfies Record<string, SettingDefinition<unknown>>;

export const MAIL_SETTINGS = {
  smtpUrl: secret("SMTP_URL", smtpUrl, SMTP),
  mailFrom: optional("MAIL_FROM", mailAddress, SMTP),
  mailDir: optional("MAIL_DIR", text, "Folder for e-mails. Unset: `mail` in DATA_DIR; in production none."),
  mailTemplatesDir: optional(
    "MAIL_TEMPLATES_DIR",
    text,
    "Folder of [templates](sign-in.md#templates) of /auth/v1. Unset: plain texts.",
  ),
  applicationUrl: optional(
    "SITE_URL",
    httpUrl,
    "The application's URL, to which /auth/v1 redirects. Unset: this service's.",
  ),
  mailInterval: withDefault("MAIL_INTERVAL_SECONDS", integer(0, 86_400), "60", MAIL_LIMITS),
  mailHourlyLimit: withDefault("MAIL_HOURLY_LIMIT", integer(0), "10", MAIL_LIMITS),
  secureEmailChange: withDefault(
    "AUTH_SECURE_EMAIL_CHANGE",
    flag,
    "true",
    "The current address must confirm a new one too.",
  ),
  smsWebhookUrl: optional("SMS_WEBHOOK_URL", httpUrl, SMS_WEBHOOK),
  smsWebhookSecret: secret("SMS_WEBHOOK_SECRET", webhookSecret, SMS_WEBHOOK),
} satisfies Record<string, SettingDefinition<unknown>>;

export const REST_SETTINGS = {
  schemas: withDefault("PGRST_DB_SCHEMAS", nonEmptyList, "public", "Exposed schemas; the first one is the default."),
  anonRole: withDefault(
    "PGRST_DB_ANON_ROLE",
    text,
    "anon",
    "Role of callers without credentials. If it does not exist, they get 401.",
  ),
  extraSearchPath: withDefault(
    "PGRST_DB_EXTRA_SEARCH_PATH",
    list,
    "public, extensions",
    "Schemas that SQL can use unqualified.",
  ),
  requireApiKey: withDefault("REST_REQUIRE_APIKEY", flag, "true", SAFE_REQUESTS),
  safeWrites: withDefault("REST_SAFE_WRITES", flag, "true", SAFE_REQUESTS),
  maxRows: optional("PGRST_DB_MAX_ROWS", integer(0), "Rows of a response of /rest/v1."),
  aggregates: withDefault("PGRST_DB_AGGREGATES_ENABLED", flag, "false", OPTIONAL_PARTS),
  planEnabled: withDefault("PGRST_DB_PLAN_ENABLED", flag, "false", OPTIONAL_PARTS),
  preRequest: optional("PGRST_DB_PRE_REQUEST", text, SQL_HOOKS),
  txEnd: withDefault(
    "PGRST_DB_TX_END",
    oneOf("commit", "commit-allow-override", "rollback", "rollback-allow-override"),
    "commit",
    "How transactions end, and whether `Prefer: tx` may override it.",
  ),
  hoistedSettings: withDefault(
    "PGRST_DB_HOISTED_TX_SETTINGS",
    list,
    "statement_timeout, plan_filter.statement_cost_limit, default_transaction_isolation",
    "Settings of a function that apply to its whole transaction.",
  ),
  timezoneEnabled: withDefault("PGRST_DB_TIMEZONE_ENABLED", flag, "true", OPTIONAL_PARTS),
  errorVerbosity: withDefault(
    "PGRST_CLIENT_ERROR_VERBOSITY",
    oneOf("verbose", "minimal"),
    "verbose",
    "`minimal`: errors of /rest/v1 and GraphQL without details and hint.",
  ),
  legacyTargetNames: withDefault(
    "PGRST_URL_USE_LEGACY_TARGET_NAMES",
    flag,
    "true",
    "Filters may also use the name of an aliased relation.",
  ),
  traceHeader: optional("PGRST_SERVER_TRACE_HEADER", headerName, "Request header to return."),
  rootSpec: optional("PGRST_DB_ROOT_SPEC", text, SQL_HOOKS),
  openapiMode: withDefault(
    "PGRST_OPENAPI_MODE",
    oneOf("follow-privileges", "ignore-privileges", "disabled"),
    "follow-privileges",
    "What the OpenAPI document of /rest/v1 shows.",
  ),
  openapiProxyUrl: optional("PGRST_OPENAPI_SERVER_PROXY_URI", text, OPENAPI_CONTENT),
  openapiSecurity: withDefault("PGRST_OPENAPI_SECURITY_ACTIVE", flag, "false", OPENAPI_CONTENT),
  putSemantics: withDefault(
    "PUT_SEMANTICS",
    oneOf("replace", "merge"),
    "replace",
    "PUT at /users and /api resets missing fields (`replace`) or keeps them (`merge`).",
  ),
  errorBody: withDefault(
    "ERROR_BODY",
    oneOf("nested", "detail", "flat", "spring"),
    "nested",
    "Format of [errors](rest.md#errors) at /users, /api and /auth.",
  ),
} satisfies Record<string, SettingDefinition<unknown>>;

export const GRAPHQL_SETTINGS = {
  graphqlMaxDepth: withDefault("GRAPHQL_MAX_DEPTH", integer(1), "15", OPERATION_FIELDS),
  graphqlMaxComplexity: withDefault("GRAPHQL_MAX_COMPLEXITY", integer(1), "1000", OPERATION_FIELDS),
  graphqlMaxBodyBytes: withDefault("GRAPHQL_MAX_BODY_BYTES", integer(1024), "1048576", DOCUMENT_SIZE),
  graphqlMaxTokens: withDefault("GRAPHQL_MAX_TOKENS", integer(1), "15000", DOCUMENT_SIZE),
  graphqlMaxAliases: withDefault("GRAPHQL_MAX_ALIASES", integer(0), "1000", DOCUMENT_SIZE),
  graphqlMaxDirectives: withDefault("GRAPHQL_MAX_DIRECTIVES", integer(0), "500", DOCUMENT_SIZE),
  graphqlMaxRootFields: withDefault("GRAPHQL_MAX_ROOT_FIELDS", integer(1), "500", DOCUMENT_SIZE),
  graphqlMaxAnonymousPlanned: withDefault(
    "GRAPHQL_MAX_ANONYMOUS_PLANNED_FIELDS",
    integer(1),
    "100",
    "Fields with subfields in an anonymous operation that is [not compiled](graphql.md#how-operations-run).",
  ),
  graphqlStatementTimeout: withDefault(
    "GRAPHQL_STATEMENT_TIMEOUT_SECONDS",
    integer(0, 86_400),
    "10",
    "Timeout of statements, if less than DB_STATEMENT_TIMEOUT_SECONDS. 0: none.",
  ),
  graphqlMaxSocketOperations: withDefault(
    "GRAPHQL_MAX_SOCKET_OPERATIONS",
    integer(1),
    "100",
    "Open operations of a WebSocket.",
  ),
  graphqlInternalErrorStatus: withDefault(
    "GRAPHQL_INTERNAL_ERROR_STATUS",
    oneOf("200", "400"),
    "200",
    "Status of internal errors.",
  ),
  graphqlIntrospection: withDefault(
    "GRAPHQL_INTROSPECTION",
    oneOf("off", "authenticated", "all"),
    "all",
    "Who may [introspect](graphql.md#schema-per-role): `all`, `authenticated` or `off` (nobody).",
  ),
  graphqlExplorer: withDefault("GRAPHQL_EXPLORER", flag, "true", GRAPHQL_PARTS),
  graphqlNode: withDefault("GRAPHQL_NODE", flag, "false", GRAPHQL_PARTS),
  graphqlCompile: withDefault(
    "GRAPHQL_COMPILE",
    oneOf("on", "off"),
    "on",
    "Operations run as [one SQL statement](graphql.md#how-operations-run).",
  ),
  graphqlPreload: withDefault(
    "GRAPHQL_PRELOAD",
    oneOf("on", "off"),
    "off",
    "`on`: builds the schema [at the start](graphql.md#how-operations-run), instead of at the first request.",
  ),
  graphqlPersistedOperations: optional("GRAPHQL_PERSISTED_OPERATIONS", text, PERSISTED_OPERATIONS),
  graphqlPersistedOnly: withDefault("GRAPHQL_PERSISTED_ONLY", flag, "false", PERSISTED_OPERATIONS),
} satisfies Record<string, SettingDefinition<unknown>>;

export const REALTIME_SETTINGS = {
  realtimeMaxChannels: withDefault("REALTIME_MAX_CHANNELS", integer(1), "100", CHANNEL_LIMITS),
  realtimeMaxBindings: withDefault("REALTIME_MAX_BINDINGS", integer(0), "100", CHANNEL_LIMITS),
  realtimeMaxJoins: withDefault("REALTIME_MAX_JOINS_PER_SECOND", integer(0), "100", SOCKET_RATES),
  realtimeMaxMessages: withDefault("REALTIME_MAX_MESSAGES_PER_SECOND", integer(0), "2000", SOCKET_RATES),
  realtimeMaxBytes: withDefault("REALTIME_MAX_BYTES_PER_SECOND", integer(0), "5242880", SOCKET_RATES),
  realtimeMaxPresences: withDefault("REALTIME_MAX_PRESENCES_PER_SECOND", integer(0), "10", SOCKET_RATES),
  realtimeCheckTimeout: withDefault(
    "REALTIME_CHECK_TIMEOUT_SECONDS",
    integer(1, 600),
    "2",
    "Time for the policies of a batch of changes; then the channels end.",
  ),
  realtimeSlot: withDefault(
    "REALTIME_SLOT",
    oneOf("auto", "always", "never"),
    "auto",
    "A [slot](realtime.md#replication-slot) keeps two minutes of changes. `auto`: if max_slot_wal_keep_size is set.",
  ),
  shapeLogMegabytes: withDefault(
    "SHAPE_LOG_MB",
    integer(0),
    "512",
    "MB of `shapes` in DATA_DIR, the logs of [shapes](live-data.md#shapes); 0: none.",
  ),
} satisfies Record<string, SettingDefinition<unknown>>;

export const WEBHOOK_SETTINGS = {
  webhookNetwork: optional(
    "WEBHOOK_NETWORK",
    oneOf("public", "loopback", "private"),
    "Targets of webhooks. `public`: HTTPS. `loopback`: also this machine. `private`: also private networks. Unset: `public`, on a playground `loopback`.",
  ),
} satisfies Record<string, SettingDefinition<unknown>>;

export const STUDIO_SETTINGS = {
  studio: optional(
    "STUDIO",
    oneOf("open", "administrators", "off"),
    "Users of /studio: `administrators`; `open`: also browsers on this machine; `off`: nobody. Unset: `administrators`, on a playground `open`.",
  ),
  studioSql: optional(
    "STUDIO_SQL",
    oneOf("on", "off"),
    "Administrators may run SQL, and make keys of roles without policies. Unset: only on a playground.",
  ),
} satisfies Record<string, SettingDefinition<unknown>>;
