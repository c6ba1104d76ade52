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
    "Secret of tokens (HS256), 32 characters or more; or [a JWK or JWKS](sign-in.md#tokens-of-other-issuers); or `@` and a path. Generated for the embedded database.",
  ),
  jwtSecretIsBase64: withDefault(
    "PGRST_JWT_SECRET_IS_BASE64",
    flag,
    "false",
    "Whether JWT_SECRET is the base64 encoding of the secret, which then has at least 32 bytes.",
  ),
  jwtPrivateKey: secret(
    "JWT_PRIVATE_KEY",
    privateKey,
    "Private key in PEM format, which signs tokens instead of JWT_SECRET: RSA (RS256) or EC P-256 (ES256).",
  ),
  jwtPreviousSecrets: secret(
    "JWT_PREVIOUS_SECRETS",
    jwtSecrets,
    "Previous secrets, separated by commas, whose tokens are still accepted. Remove them after a week.",
  ),
  jwtPreviousPublicKeys: secret(
    "JWT_PREVIOUS_PUBLIC_KEYS",
    publicKeys,
    "Previous RSA or EC P-256 public keys in PEM format, concatenated, whose tokens are still accepted. Remove them after a week.",
  ),
  jwtKeySetUrl: optional(
    "JWT_JWKS_URL",
    keySetUrl,
    "Address of the public keys (JWKS) of another issuer, whose tokens are accepted too: https, or http on this machine.",
  ),
  jwtIssuer: withDefault(
    "JWT_ISSUER",
    text,
    DEFAULT_JWT_ISSUER,
    "`iss` claim of issued tokens, and of accepted ones of other issuers unless it is the default.",
  ),
  authSubject: optional(
    "AUTH_SUBJECT",
    oneOf("id", "uuid"),
    "`sub` of access tokens of /auth/v1: `id` or `uuid`, then with the number in the claim `user_id`. Unset: the type of `auth.uid()`.",
  ),
  jwtAudience: optional(
    ["JWT_AUDIENCE", "PGRST_JWT_AUD"],
    text,
    "If set, tokens with another `aud` are refused. A token without `aud` is accepted.",
  ),
  jwtRoleClaim: withDefault(
    "PGRST_JWT_ROLE_CLAIM_KEY",
    claimPath,
    ".role",
    'Path of the claim with the database role, such as `.roles[0]` or `$.roles[?search(@, "^app_")]`, the first that matches.',
  ),
  jwtCacheEntries: withDefault(
    "PGRST_JWT_CACHE_MAX_ENTRIES",
    integer(0),
    "10000",
    "Number of verified tokens in the cache.",
  ),
  manualLinking: withDefault(
    "AUTH_MANUAL_LINKING",
    flag,
    "false",
    "Whether signed-in users may link and unlink identities of providers at /auth/v1.",
  ),
  claimsHook: optional(
    "CLAIMS_HOOK",
    functionName,
    "SQL function, `schema.name`, that changes the [claims of access tokens](sign-in.md#a-function-for-claims), as Supabase's hook.",
  ),
  passwordPolicy: withDefault(
    "PASSWORD_POLICY",
    oneOf("minimal", "standard", "strict"),
    "standard",
    "`standard`: 8 characters with upper case, lower case and a digit. `strict`: 12, and a special character. `minimal`: any 6, Supabase's default.",
  ),
  usersAccess: optional(
    "USERS_ACCESS",
    oneOf("open", "owner"),
    "`open`: anybody may read and change users and read drafts. `owner`: [only their owners](security.md#users-and-drafts). Unset: `open` on a playground, otherwise `owner`.",
  ),
  signInRedirects: withDefault(
    "SIGN_IN_REDIRECTS",
    redirectTargets,
    "",
    "URLs, separated by commas, to which sign-ins and links in e-mails may redirect, besides this service's and SITE_URL's; `/*` allows all below.",
  ),
  signUps: withDefault(
    "AUTH_SIGN_UPS",
    flag,
    "true",
    "Whether others than administrators may create users, on any interface.",
  ),
  autoConfirm: optional(
    "AUTH_AUTOCONFIRM",
    flag,
    "Whether addresses of new accounts count as proved without an e-mail. Unset: true on a playground without `SMTP_URL`, otherwise false.",
  ),
  anonymousSignIns: withDefault(
    "AUTH_ANONYMOUS_SIGN_INS",
    flag,
    "false",
    "Whether /auth/v1/signup without credentials creates an anonymous account, which its user may convert later.",
  ),
  webauthnRpId: optional(
    "WEBAUTHN_RP_ID",
    domainName,
    "Domain of passkeys and security keys, such as `example.com`. A change makes registered ones unusable. Unset: the host of PUBLIC_URL, or `localhost`.",
  ),
  webauthnOrigins: withDefault(
    "WEBAUTHN_ORIGINS",
    (value) => originList(value),
    "",
    "Origins, separated by commas, of the pages that may use [passkeys](sign-in.md#passkeys). Unset: those of PUBLIC_URL, SITE_URL, CORS_ORIGINS and SIGN_IN_REDIRECTS.",
  ),
  aal1Access: withDefault(
    "AUTH_AAL1_ACCESS",
    oneOf("auth", "full"),
    "auth",
    "What tokens of a sign-in without its second factor may do. `auth`: requests to /auth/v1. `full`: everything, where policies check `aal`.",
  ),
  passwordReauthentication: withDefault(
    "AUTH_PASSWORD_REAUTHENTICATION",
    flag,
    "true",
    "Whether a user who signed in more than a day ago needs a code from an e-mail to change the password at /auth/v1/user.",
  ),
  adminEmail: optional("ADMIN_EMAIL", email, "E-mail address of the first administrator, created at the first start."),
  adminPassword: secret("ADMIN_PASSWORD", text, "Password of the first administrator."),
} satisfies Record<string, SettingDefinition<unknown>>;

export const MAIL_SETTINGS = {
  smtpUrl: secret(
    "SMTP_URL",
    smtpUrl,
    "SMTP server, `smtp://user:password@host:587` or `smtps://…`. Unset: e-mails are written to MAIL_DIR.",
  ),
  mailFrom: optional("MAIL_FROM", mailAddress, "Sender of e-mails; required with SMTP_URL."),
  mailDir: optional(
    "MAIL_DIR",
    text,
    "Folder for e-mails if SMTP_URL is not set. Unset: `mail` in DATA_DIR; in production no e-mails are written.",
  ),
  mailTemplatesDir: optional(
    "MAIL_TEMPLATES_DIR",
    text,
    "Folder of templates for the e-mails of /auth/v1, such as `recovery.html`, in Supabase's syntax (see [e-mails](sign-in.md#templates)). Unset: plain texts.",
  ),
  applicationUrl: optional(
    "SITE_URL",
    httpUrl,
    "URL of the application, to which links in e-mails and sign-ins of /auth/v1 redirect by default. Unset: that of this service.",
  ),
  mailInterval: withDefault(
    "MAIL_INTERVAL_SECONDS",
    integer(0, 86_400),
    "60",
    "Seconds until /auth/v1 sends another e-mail of a kind to an address; 0 disables the limit.",
  ),
  mailHourlyLimit: withDefault(
    "MAIL_HOURLY_LIMIT",
    integer(0),
    "10",
    "E-mails of /auth/v1 per hour and address; 0 disables the limit.",
  ),
  secureEmailChange: withDefault(
    "AUTH_SECURE_EMAIL_CHANGE",
    flag,
    "true",
    "Whether a change of the e-mail address at /auth/v1 has to be confirmed at the current address too.",
  ),
  smsWebhookUrl: optional(
    "SMS_WEBHOOK_URL",
    httpUrl,
    'Webhook that sends text messages with codes, in the form of Supabase\'s hook "Send SMS" (see [phone numbers](sign-in.md#phone-numbers)). Unset: /auth/v1 refuses phone numbers.',
  ),
  smsWebhookSecret: secret(
    "SMS_WEBHOOK_SECRET",
    webhookSecret,
    "Secret that signs the requests to SMS_WEBHOOK_URL, `v1,whsec_` and base64 of at least 24 bytes.",
  ),
} satisfies Record<string, SettingDefinition<unknown>>;

export const REST_SETTINGS = {
  schemas: withDefault(
    "PGRST_DB_SCHEMAS",
    nonEmptyList,
    "public",
    "Exposed schemas, for all interfaces; the first one is the default.",
  ),
  anonRole: withDefault(
    "PGRST_DB_ANON_ROLE",
    text,
    "anon",
    "Database role of callers without credentials, for all interfaces. If the role does not exist, they get 401.",
  ),
  extraSearchPath: withDefault(
    "PGRST_DB_EXTRA_SEARCH_PATH",
    list,
    "public, extensions",
    "Schemas whose functions and operators can be used unqualified.",
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
  maxRows: optional("PGRST_DB_MAX_ROWS", integer(0), "Maximum number of rows of a response of /rest/v1."),
  aggregates: withDefault(
    "PGRST_DB_AGGREGATES_ENABLED",
    flag,
    "false",
    "Whether `select` may use count(), sum(), avg(), min(), max(), and GraphQL connections have `aggregates`.",
  ),
  planEnabled: withDefault("PGRST_DB_PLAN_ENABLED", flag, "false", "Whether clients may request execution plans."),
  preRequest: optional(
    "PGRST_DB_PRE_REQUEST",
    text,
    "Function that is called at the start of the transaction of each request to /rest/v1.",
  ),
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
  timezoneEnabled: withDefault(
    "PGRST_DB_TIMEZONE_ENABLED",
    flag,
    "true",
    "Whether `Prefer: timezone` is supported; requires reading the names of time zones.",
  ),
  errorVerbosity: withDefault(
    "PGRST_CLIENT_ERROR_VERBOSITY",
    oneOf("verbose", "minimal"),
    "verbose",
    "Whether errors of /rest/v1 and GraphQL have details and a hint (`verbose`), or only a code and a message (`minimal`).",
  ),
  legacyTargetNames: withDefault(
    "PGRST_URL_USE_LEGACY_TARGET_NAMES",
    flag,
    "true",
    "Whether filters, orders and limits may also use the name of a relation that has an alias.",
  ),
  traceHeader: optional("PGRST_SERVER_TRACE_HEADER", headerName, "Request header that is returned in the response."),
  rootSpec: optional(
    "PGRST_DB_ROOT_SPEC",
    text,
    "Function that responds at /rest/v1/ instead of the OpenAPI document.",
  ),
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
    "Whether PUT at /users and /api replaces missing fields with null or their default (`replace`), or keeps them (`merge`).",
  ),
  errorBody: withDefault(
    "ERROR_BODY",
    oneOf("nested", "detail", "flat", "spring"),
    "nested",
    "Format of error bodies at /users, /api and /auth.",
  ),
} satisfies Record<string, SettingDefinition<unknown>>;

export const GRAPHQL_SETTINGS = {
  graphqlMaxDepth: withDefault("GRAPHQL_MAX_DEPTH", integer(1), "15", "Maximum nesting depth of fields."),
  graphqlMaxComplexity: withDefault(
    "GRAPHQL_MAX_COMPLEXITY",
    integer(1),
    "1000",
    "Maximum number of fields of an operation.",
  ),
  graphqlMaxBodyBytes: withDefault(
    "GRAPHQL_MAX_BODY_BYTES",
    integer(1024),
    "1048576",
    "Maximum size of a request body: document and variables.",
  ),
  graphqlMaxTokens: withDefault("GRAPHQL_MAX_TOKENS", integer(1), "15000", "Maximum number of tokens of a document."),
  graphqlMaxAliases: withDefault("GRAPHQL_MAX_ALIASES", integer(0), "1000", "Maximum number of aliases of a document."),
  graphqlMaxDirectives: withDefault(
    "GRAPHQL_MAX_DIRECTIVES",
    integer(0),
    "500",
    "Maximum number of directives of a document.",
  ),
  graphqlMaxRootFields: withDefault(
    "GRAPHQL_MAX_ROOT_FIELDS",
    integer(1),
    "500",
    "Maximum number of root fields of an operation; each can be a statement.",
  ),
  graphqlMaxAnonymousPlanned: withDefault(
    "GRAPHQL_MAX_ANONYMOUS_PLANNED_FIELDS",
    integer(1),
    "100",
    "Maximum number of fields with subfields in an operation of an anonymous caller that is not compiled to one statement.",
  ),
  graphqlStatementTimeout: withDefault(
    "GRAPHQL_STATEMENT_TIMEOUT_SECONDS",
    integer(0, 86_400),
    "10",
    "Timeout of GraphQL statements in seconds, if less than DB_STATEMENT_TIMEOUT_SECONDS; 0 disables it.",
  ),
  graphqlMaxSocketOperations: withDefault(
    "GRAPHQL_MAX_SOCKET_OPERATIONS",
    integer(1),
    "100",
    "Maximum number of open operations of a WebSocket.",
  ),
  graphqlInternalErrorStatus: withDefault(
    "GRAPHQL_INTERNAL_ERROR_STATUS",
    oneOf("200", "400"),
    "200",
    "HTTP status of responses with an internal error.",
  ),
  graphqlIntrospection: withDefault(
    "GRAPHQL_INTROSPECTION",
    oneOf("off", "authenticated", "all"),
    "all",
    "Who may introspect the schema: `all`, `authenticated` (not anonymous callers) or `off` (nobody). Each role sees what it may use.",
  ),
  graphqlExplorer: withDefault("GRAPHQL_EXPLORER", flag, "true", "Whether GraphiQL is served at /graphiql."),
  graphqlNode: withDefault(
    "GRAPHQL_NODE",
    flag,
    "false",
    "Whether rows implement Relay's `Node` with a [global id](graphql.md#global-ids).",
  ),
  graphqlCompile: withDefault(
    "GRAPHQL_COMPILE",
    oneOf("on", "off"),
    "on",
    "Whether operations run as one SQL statement where that is possible.",
  ),
  graphqlPersistedOperations: optional(
    "GRAPHQL_PERSISTED_OPERATIONS",
    text,
    "Folder of registered operations, one file `<id>.graphql` each, that clients may request by id.",
  ),
  graphqlPersistedOnly: withDefault(
    "GRAPHQL_PERSISTED_ONLY",
    flag,
    "false",
    "Whether only registered operations are executed.",
  ),
} satisfies Record<string, SettingDefinition<unknown>>;

export const REALTIME_SETTINGS = {
  realtimeMaxChannels: withDefault(
    "REALTIME_MAX_CHANNELS",
    integer(1),
    "100",
    "Maximum number of joined channels of a WebSocket.",
  ),
  realtimeMaxBindings: withDefault(
    "REALTIME_MAX_BINDINGS",
    integer(0),
    "100",
    "Maximum number of `postgres_changes` of a channel; 0 disables the limit.",
  ),
  realtimeMaxJoins: withDefault(
    "REALTIME_MAX_JOINS_PER_SECOND",
    integer(0),
    "100",
    "Joins and new tokens per second of a WebSocket, averaged over five seconds.",
  ),
  realtimeMaxMessages: withDefault(
    "REALTIME_MAX_MESSAGES_PER_SECOND",
    integer(0),
    "2000",
    "Messages per second of a WebSocket, averaged over five seconds; beyond it the channel is closed.",
  ),
  realtimeMaxBytes: withDefault(
    "REALTIME_MAX_BYTES_PER_SECOND",
    integer(0),
    "5242880",
    "Bytes per second that are read from a WebSocket, averaged over five seconds; beyond it reading pauses.",
  ),
  realtimeMaxPresences: withDefault(
    "REALTIME_MAX_PRESENCES_PER_SECOND",
    integer(0),
    "10",
    "Presence updates per second of a WebSocket, averaged over five seconds; beyond it the channel is closed.",
  ),
  realtimeCheckTimeout: withDefault(
    "REALTIME_CHECK_TIMEOUT_SECONDS",
    integer(1, 600),
    "2",
    "Seconds for the policies or filters of a batch of changes. Beyond it the affected channels end.",
  ),
  realtimeSlot: withDefault(
    "REALTIME_SLOT",
    oneOf("auto", "always", "never"),
    "auto",
    "Whether a replication slot keeps two minutes of changes, to resume. `auto`: if the server limits what slots retain (max_slot_wal_keep_size).",
  ),
} satisfies Record<string, SettingDefinition<unknown>>;

export const WEBHOOK_SETTINGS = {
  webhookNetwork: optional(
    "WEBHOOK_NETWORK",
    oneOf("public", "loopback", "private"),
    "Addresses that webhooks are sent to. `public`: with HTTPS. `loopback`: also this machine. `private`: also private networks. Unset: `loopback` on a playground, otherwise `public`.",
  ),
} satisfies Record<string, SettingDefinition<unknown>>;

export const STUDIO_SETTINGS = {
  studio: optional(
    "STUDIO",
    oneOf("open", "administrators", "off"),
    "Who may use /studio. `administrators`; `open`: also browsers on this machine; `off`: 404. Unset: `open` on a playground, otherwise `administrators`.",
  ),
  studioSql: optional(
    "STUDIO_SQL",
    oneOf("on", "off"),
    "Whether administrators may run SQL in Studio and make API keys of roles without policies. Unset: `on` on a playground, otherwise `off`.",
  ),
} satisfies Record<string, SettingDefinition<unknown>>;
