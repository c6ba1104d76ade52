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
    "Whether JWT_SECRET is base64 of at least 32 bytes.",
  ),
  jwtPrivateKey: secret(
    "JWT_PRIVATE_KEY",
    privateKey,
    "PEM key that signs tokens instead: RSA (RS256) or EC P-256 (ES256).",
  ),
  jwtPreviousSecrets: secret(
    "JWT_PREVIOUS_SECRETS",
    jwtSecrets,
    "[Previous secrets](sign-in.md#rotating-signing-keys), separated by commas.",
  ),
  jwtPreviousPublicKeys: secret("JWT_PREVIOUS_PUBLIC_KEYS", publicKeys, "Previous public keys (PEM), concatenated."),
  jwtKeySetUrl: optional(
    "JWT_JWKS_URL",
    keySetUrl,
    "Address of [another issuer's JWKS](sign-in.md#tokens-of-other-issuers).",
  ),
  jwtIssuer: withDefault(
    "JWT_ISSUER",
    text,
    DEFAULT_JWT_ISSUER,
    "`iss` of our tokens. Any but the default is also required of other issuers' tokens.",
  ),
  authSubject: optional(
    "AUTH_SUBJECT",
    oneOf("id", "uuid"),
    "`sub` of access tokens of /auth/v1: `id`, or `uuid` (then `user_id` has the id). Unset: the type of `auth.uid()`.",
  ),
  jwtAudience: optional(["JWT_AUDIENCE", "PGRST_JWT_AUD"], text, "If set, tokens with another `aud` are refused."),
  jwtRoleClaim: withDefault(
    "PGRST_JWT_ROLE_CLAIM_KEY",
    claimPath,
    ".role",
    'Path of the claim of the role, such as `.roles[0]` or `$.roles[?search(@, "^app_")]`.',
  ),
  jwtCacheEntries: withDefault("PGRST_JWT_CACHE_MAX_ENTRIES", integer(0), "10000", "Verified tokens in the cache."),
  manualLinking: withDefault(
    "AUTH_MANUAL_LINKING",
    flag,
    "false",
    "Whether users may link and unlink identities at /auth/v1.",
  ),
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
    "Who may read and change users and drafts. `open`: anybody. `owner`: [only owners](security.md#users-and-drafts). Unset: `open` on a playground, otherwise `owner`.",
  ),
  signInRedirects: withDefault(
    "SIGN_IN_REDIRECTS",
    redirectTargets,
    "",
    "Further URLs for redirects of sign-ins and e-mails, separated by commas; `/*` allows all below.",
  ),
  signUps: withDefault("AUTH_SIGN_UPS", flag, "true", "Whether others than administrators may create users."),
  autoConfirm: optional(
    "AUTH_AUTOCONFIRM",
    flag,
    "Whether new addresses count as proved. Unset: true on a playground without `SMTP_URL`, otherwise false.",
  ),
  anonymousSignIns: withDefault(
    "AUTH_ANONYMOUS_SIGN_INS",
    flag,
    "false",
    "Whether /auth/v1/signup without credentials creates an anonymous account.",
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
    "Whether a new password at /auth/v1/user needs a code, a day after the sign-in.",
  ),
  adminEmail: optional("ADMIN_EMAIL", email, "E-mail address of an administrator that the first start creates."),
  adminPassword: secret("ADMIN_PASSWORD", text, "Its password."),
} satisfies Record<string, SettingDefinition<unknown>>;

export const MAIL_SETTINGS = {
  smtpUrl: secret("SMTP_URL", smtpUrl, "`smtp://user:password@host:587` or `smtps://…`. Unset: MAIL_DIR is used."),
  mailFrom: optional("MAIL_FROM", mailAddress, "Sender of e-mails; required with SMTP_URL."),
  mailDir: optional("MAIL_DIR", text, "Folder for e-mails. Unset: `mail` in DATA_DIR; in production none."),
  mailTemplatesDir: optional(
    "MAIL_TEMPLATES_DIR",
    text,
    "Folder of [templates](sign-in.md#templates) of /auth/v1. Unset: plain texts.",
  ),
  applicationUrl: optional(
    "SITE_URL",
    httpUrl,
    "URL of the application, to which /auth/v1 redirects. Unset: that of this service.",
  ),
  mailInterval: withDefault(
    "MAIL_INTERVAL_SECONDS",
    integer(0, 86_400),
    "60",
    "Seconds until /auth/v1 sends an address another e-mail of its kind.",
  ),
  mailHourlyLimit: withDefault("MAIL_HOURLY_LIMIT", integer(0), "10", "E-mails of /auth/v1 per hour and address."),
  secureEmailChange: withDefault(
    "AUTH_SECURE_EMAIL_CHANGE",
    flag,
    "true",
    "Whether the current address must confirm a new one too.",
  ),
  smsWebhookUrl: optional(
    "SMS_WEBHOOK_URL",
    httpUrl,
    "[Webhook](sign-in.md#phone-numbers) that sends text messages with codes.",
  ),
  smsWebhookSecret: secret(
    "SMS_WEBHOOK_SECRET",
    webhookSecret,
    "Its secret: `v1,whsec_` and base64 of at least 24 bytes.",
  ),
} satisfies Record<string, SettingDefinition<unknown>>;

export const REST_SETTINGS = {
  schemas: withDefault("PGRST_DB_SCHEMAS", nonEmptyList, "public", "Exposed schemas; the first one is the default."),
  anonRole: withDefault(
    "PGRST_DB_ANON_ROLE",
    text,
    "anon",
    "Role of callers without credentials. Without such a role they get 401.",
  ),
  extraSearchPath: withDefault(
    "PGRST_DB_EXTRA_SEARCH_PATH",
    list,
    "public, extensions",
    "Schemas that SQL can use unqualified.",
  ),
  requireApiKey: withDefault(
    "REST_REQUIRE_APIKEY",
    flag,
    "true",
    "Whether /rest/v1 refuses requests without an `apikey`.",
  ),
  safeWrites: withDefault(
    "REST_SAFE_WRITES",
    flag,
    "true",
    "Whether /rest/v1 refuses UPDATE and DELETE without a filter.",
  ),
  maxRows: optional("PGRST_DB_MAX_ROWS", integer(0), "Rows of a response of /rest/v1."),
  aggregates: withDefault(
    "PGRST_DB_AGGREGATES_ENABLED",
    flag,
    "false",
    "Whether `select` has count(), sum() and so on, and GraphQL `aggregates`.",
  ),
  planEnabled: withDefault("PGRST_DB_PLAN_ENABLED", flag, "false", "Whether clients may request execution plans."),
  preRequest: optional("PGRST_DB_PRE_REQUEST", text, "Function called at the start of each request to /rest/v1."),
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
  timezoneEnabled: withDefault("PGRST_DB_TIMEZONE_ENABLED", flag, "true", "Whether `Prefer: timezone` is supported."),
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
    "Whether filters may also use the name of a relation that has an alias.",
  ),
  traceHeader: optional("PGRST_SERVER_TRACE_HEADER", headerName, "Request header to return in the response."),
  rootSpec: optional("PGRST_DB_ROOT_SPEC", text, "Function that responds at /rest/v1/."),
  openapiMode: withDefault(
    "PGRST_OPENAPI_MODE",
    oneOf("follow-privileges", "ignore-privileges", "disabled"),
    "follow-privileges",
    "What the OpenAPI document of /rest/v1 shows.",
  ),
  openapiProxyUrl: optional("PGRST_OPENAPI_SERVER_PROXY_URI", text, "Server URL in the OpenAPI document."),
  openapiSecurity: withDefault(
    "PGRST_OPENAPI_SECURITY_ACTIVE",
    flag,
    "false",
    "Whether the OpenAPI document declares a token.",
  ),
  putSemantics: withDefault(
    "PUT_SEMANTICS",
    oneOf("replace", "merge"),
    "replace",
    "Whether PUT at /users and /api resets missing fields (`replace`) or keeps them (`merge`).",
  ),
  errorBody: withDefault(
    "ERROR_BODY",
    oneOf("nested", "detail", "flat", "spring"),
    "nested",
    "Format of [errors](rest.md#errors) at /users, /api and /auth.",
  ),
} satisfies Record<string, SettingDefinition<unknown>>;

export const GRAPHQL_SETTINGS = {
  graphqlMaxDepth: withDefault("GRAPHQL_MAX_DEPTH", integer(1), "15", "Nesting of fields."),
  graphqlMaxComplexity: withDefault("GRAPHQL_MAX_COMPLEXITY", integer(1), "1000", "Fields of an operation."),
  graphqlMaxBodyBytes: withDefault("GRAPHQL_MAX_BODY_BYTES", integer(1024), "1048576", "Size of a request body."),
  graphqlMaxTokens: withDefault("GRAPHQL_MAX_TOKENS", integer(1), "15000", "Tokens of a document."),
  graphqlMaxAliases: withDefault("GRAPHQL_MAX_ALIASES", integer(0), "1000", "Aliases of a document."),
  graphqlMaxDirectives: withDefault("GRAPHQL_MAX_DIRECTIVES", integer(0), "500", "Directives of a document."),
  graphqlMaxRootFields: withDefault("GRAPHQL_MAX_ROOT_FIELDS", integer(1), "500", "Root fields of an operation."),
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
    "Timeout of statements, if less than DB_STATEMENT_TIMEOUT_SECONDS; 0: none.",
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
    "Status of responses with an internal error.",
  ),
  graphqlIntrospection: withDefault(
    "GRAPHQL_INTROSPECTION",
    oneOf("off", "authenticated", "all"),
    "all",
    "Who may [introspect](graphql.md#schema-per-role): `all`, `authenticated` or `off` (nobody).",
  ),
  graphqlExplorer: withDefault("GRAPHQL_EXPLORER", flag, "true", "Whether GraphiQL is served at /graphiql."),
  graphqlNode: withDefault(
    "GRAPHQL_NODE",
    flag,
    "false",
    "Whether rows have Relay's [global ids](graphql.md#global-ids).",
  ),
  graphqlCompile: withDefault(
    "GRAPHQL_COMPILE",
    oneOf("on", "off"),
    "on",
    "Whether operations run as [one SQL statement](graphql.md#how-operations-run).",
  ),
  graphqlPersistedOperations: optional(
    "GRAPHQL_PERSISTED_OPERATIONS",
    text,
    "Folder of [registered operations](graphql.md#registered-operations), `<id>.graphql`.",
  ),
  graphqlPersistedOnly: withDefault("GRAPHQL_PERSISTED_ONLY", flag, "false", "Whether only these run."),
} satisfies Record<string, SettingDefinition<unknown>>;

export const REALTIME_SETTINGS = {
  realtimeMaxChannels: withDefault("REALTIME_MAX_CHANNELS", integer(1), "100", "Joined channels of a WebSocket."),
  realtimeMaxBindings: withDefault(
    "REALTIME_MAX_BINDINGS",
    integer(0),
    "100",
    "`postgres_changes` of a channel; 0: no limit.",
  ),
  realtimeMaxJoins: withDefault(
    "REALTIME_MAX_JOINS_PER_SECOND",
    integer(0),
    "100",
    "Joins and new tokens per second of a WebSocket.",
  ),
  realtimeMaxMessages: withDefault(
    "REALTIME_MAX_MESSAGES_PER_SECOND",
    integer(0),
    "2000",
    "Messages per second of a WebSocket; beyond it the channel is closed.",
  ),
  realtimeMaxBytes: withDefault(
    "REALTIME_MAX_BYTES_PER_SECOND",
    integer(0),
    "5242880",
    "Bytes per second of a WebSocket; beyond it reading pauses.",
  ),
  realtimeMaxPresences: withDefault(
    "REALTIME_MAX_PRESENCES_PER_SECOND",
    integer(0),
    "10",
    "Presence updates per second of a WebSocket; beyond it the channel is closed.",
  ),
  realtimeCheckTimeout: withDefault(
    "REALTIME_CHECK_TIMEOUT_SECONDS",
    integer(1, 600),
    "2",
    "Seconds for the policies of a batch of changes; beyond it the channels end.",
  ),
  realtimeSlot: withDefault(
    "REALTIME_SLOT",
    oneOf("auto", "always", "never"),
    "auto",
    "Whether a [slot](realtime.md#replication-slot) keeps two minutes of changes. `auto`: if max_slot_wal_keep_size is set.",
  ),
} satisfies Record<string, SettingDefinition<unknown>>;

export const WEBHOOK_SETTINGS = {
  webhookNetwork: optional(
    "WEBHOOK_NETWORK",
    oneOf("public", "loopback", "private"),
    "Where webhooks are sent. `public`: with HTTPS. `loopback`: also this machine. `private`: also private networks. Unset: `loopback` on a playground, otherwise `public`.",
  ),
} satisfies Record<string, SettingDefinition<unknown>>;

export const STUDIO_SETTINGS = {
  studio: optional(
    "STUDIO",
    oneOf("open", "administrators", "off"),
    "Who may use /studio: `administrators`; `open`: also browsers on this machine; `off`: nobody. Unset: `open` on a playground, otherwise `administrators`.",
  ),
  studioSql: optional(
    "STUDIO_SQL",
    oneOf("on", "off"),
    "Whether administrators may run SQL, and make keys of roles without policies. Unset: `on` on a playground, otherwise `off`.",
  ),
} satisfies Record<string, SettingDefinition<unknown>>;
