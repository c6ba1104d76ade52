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
    "The secret that signs and verifies tokens (HS256), with at least 32 characters; or [a JWK or JWKS](sign-in.md#tokens-of-other-issuers). `@/path` reads the value from that file. With the embedded Postgres, the first start generates one. With `DATABASE_URL`, [a secret or key is required](#settings-in-the-database).",
  ),
  jwtSecretIsBase64: withDefault(
    "PGRST_JWT_SECRET_IS_BASE64",
    flag,
    "false",
    "Whether JWT_SECRET is base64, of at least 32 bytes.",
  ),
  jwtPrivateKey: secret(
    "JWT_PRIVATE_KEY",
    privateKey,
    "A PEM key that signs tokens instead of JWT_SECRET: RSA (RS256) or EC P-256 (ES256). Set it if other servers verify tokens, because they then need the public key only.",
  ),
  jwtPreviousSecrets: secret(
    "JWT_PREVIOUS_SECRETS",
    jwtSecrets,
    "The [previous](sign-in.md#rotating-signing-keys) secrets, separated by commas. Tokens that they signed stay valid.",
  ),
  jwtPreviousPublicKeys: secret(
    "JWT_PREVIOUS_PUBLIC_KEYS",
    publicKeys,
    "The [previous](sign-in.md#rotating-signing-keys) public keys (PEM), one after the other.",
  ),
  jwtKeySetUrl: optional(
    "JWT_JWKS_URL",
    keySetUrl,
    "The address of the [key set of another issuer](sign-in.md#tokens-of-other-issuers), whose tokens the service accepts.",
  ),
  jwtIssuer: withDefault(
    "JWT_ISSUER",
    text,
    DEFAULT_JWT_ISSUER,
    "The claim `iss` of our tokens. Any other value than the default is also required of tokens of other issuers.",
  ),
  authSubject: optional(
    "AUTH_SUBJECT",
    oneOf("id", "uuid"),
    "The content of the claim `sub` in tokens of /auth/v1: `id` is the number of the user. With `uuid`, the claim `user_id` has the number. If it is not set, it has the type that `auth.uid()` returns.",
  ),
  jwtAudience: optional(
    ["JWT_AUDIENCE", "PGRST_JWT_AUD"],
    text,
    "The value that the claim `aud` of tokens must have, such as `authenticated`. If it is not set, every audience is accepted.",
  ),
  jwtRoleClaim: withDefault(
    "PGRST_JWT_ROLE_CLAIM_KEY",
    claimPath,
    ".role",
    'The path of the claim that has the role, such as `.roles[0]` or `$.roles[?search(@, "^app_")]`.',
  ),
  jwtCacheEntries: withDefault(
    "PGRST_JWT_CACHE_MAX_ENTRIES",
    integer(0),
    "10000",
    "The number of verified tokens that are cached.",
  ),
  manualLinking: withDefault(
    "AUTH_MANUAL_LINKING",
    flag,
    "false",
    "Whether users may link and unlink identities at /auth/v1.",
  ),
  claimsHook: optional(
    "CLAIMS_HOOK",
    functionName,
    "A [SQL function](sign-in.md#a-function-for-claims), `schema.name`, that changes the claims of tokens.",
  ),
  passwordPolicy: withDefault(
    "PASSWORD_POLICY",
    oneOf("minimal", "standard", "strict"),
    "standard",
    "The passwords that are accepted. `standard` requires 8 characters with an upper-case letter, a lower-case letter and a digit. `strict` requires 12, and also a special character. `minimal` accepts any 6.",
  ),
  usersAccess: optional(
    "USERS_ACCESS",
    oneOf("open", "owner"),
    "`open` lets everybody read and change the users and drafts of the example application. `owner` lets [only owners](security.md#users-and-drafts). If it is not set, it is `open` on a playground, and otherwise `owner`.",
  ),
  signInRedirects: withDefault(
    "SIGN_IN_REDIRECTS",
    redirectTargets,
    "",
    "Further URLs to which sign-ins and links of e-mails may redirect, separated by commas. `/*` allows all paths below.",
  ),
  signUps: withDefault(
    "AUTH_SIGN_UPS",
    flag,
    "true",
    "Whether users may sign up themselves. Set `false` if only administrators create and invite users.",
  ),
  autoConfirm: optional(
    "AUTH_AUTOCONFIRM",
    flag,
    "Whether new addresses count as proved without an e-mail. If it is not set, they do on a playground without SMTP_URL.",
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
    "The domain of [passkeys](sign-in.md#passkeys). Set it before the first passkey, because a change makes them unusable. If it is not set, it is the host of PUBLIC_URL, or `localhost`.",
  ),
  webauthnOrigins: withDefault(
    "WEBAUTHN_ORIGINS",
    (value) => originList(value),
    "",
    "The origins that may use passkeys. If it is empty, these are the origins of PUBLIC_URL, SITE_URL, CORS_ORIGINS and SIGN_IN_REDIRECTS.",
  ),
  aal1Access: withDefault(
    "AUTH_AAL1_ACCESS",
    oneOf("auth", "full"),
    "auth",
    "The interfaces that a token may use without the second factor of its account. `auth` allows /auth/v1 only. `full` allows everything, except to change how the account is protected, so your policies must check `aal`.",
  ),
  passwordReauthentication: withDefault(
    "AUTH_PASSWORD_REAUTHENTICATION",
    flag,
    "true",
    "Whether a new password at /auth/v1/user needs a code, if the sign-in is older than a day.",
  ),
  adminEmail: optional("ADMIN_EMAIL", email, "The address of the administrator that the first start creates."),
  adminPassword: secret("ADMIN_PASSWORD", text, "The password of the administrator that the first start creates."),
} satisfies Record<string, SettingDefinition<unknown>>;

export const MAIL_SETTINGS = {
  smtpUrl: secret(
    "SMTP_URL",
    smtpUrl,
    "The mail server: `smtp://user:password@host:587` or `smtps://…`. If it is not set, e-mails are files in MAIL_DIR.",
  ),
  mailFrom: optional("MAIL_FROM", mailAddress, "The sender of e-mails. It is required with SMTP_URL."),
  mailDir: optional(
    "MAIL_DIR",
    text,
    "The folder of e-mails that are not sent. If it is not set, it is `mail` in DATA_DIR; in production there is no such folder, and routes that need e-mails return 501.",
  ),
  mailTemplatesDir: optional(
    "MAIL_TEMPLATES_DIR",
    text,
    "The folder of [templates](sign-in.md#templates) for the e-mails of /auth/v1, which are sent in place of the saved templates. If it is not set, the saved or the default ones are sent.",
  ),
  applicationUrl: optional(
    "SITE_URL",
    httpUrl,
    "The URL of your application, to which /auth/v1 redirects. If it is not set, it is the URL of this service.",
  ),
  mailInterval: withDefault(
    "MAIL_INTERVAL_SECONDS",
    integer(0, 86_400),
    "60",
    "The seconds between two e-mails of one kind to one address, at /auth/v1.",
  ),
  mailHourlyLimit: withDefault(
    "MAIL_HOURLY_LIMIT",
    integer(0),
    "10",
    "The e-mails per hour to one address, at /auth/v1.",
  ),
  secureEmailChange: withDefault(
    "AUTH_SECURE_EMAIL_CHANGE",
    flag,
    "true",
    "Whether the current address must confirm a change to a new address, too.",
  ),
  smsWebhookUrl: optional(
    "SMS_WEBHOOK_URL",
    httpUrl,
    "The [webhook](sign-in.md#phone-numbers) that sends text messages. If it is not set, sign-in by phone number is off.",
  ),
  smsWebhookSecret: secret(
    "SMS_WEBHOOK_SECRET",
    webhookSecret,
    "The secret that signs requests to SMS_WEBHOOK_URL: `v1,whsec_` and base64 of at least 24 bytes.",
  ),
} satisfies Record<string, SettingDefinition<unknown>>;

export const REST_SETTINGS = {
  schemas: withDefault(
    "PGRST_DB_SCHEMAS",
    nonEmptyList,
    "public",
    "The schemas whose tables are served, separated by commas. The first one is the default.",
  ),
  anonRole: withDefault(
    "PGRST_DB_ANON_ROLE",
    text,
    "anon",
    "The role of callers without credentials. If the role does not exist, they get 401.",
  ),
  extraSearchPath: withDefault(
    "PGRST_DB_EXTRA_SEARCH_PATH",
    list,
    "public, extensions",
    "The schemas whose objects SQL can use without their names.",
  ),
  requireApiKey: withDefault(
    "REST_REQUIRE_APIKEY",
    flag,
    "true",
    "Whether /rest/v1 requires an `apikey`. Set `false` for clients of PostgREST, which send none.",
  ),
  safeWrites: withDefault(
    "REST_SAFE_WRITES",
    flag,
    "true",
    "Whether /rest/v1 refuses UPDATE and DELETE without a filter.",
  ),
  maxRows: optional(
    "PGRST_DB_MAX_ROWS",
    integer(0),
    "The maximum number of rows of a response of /rest/v1. If it is not set, there is no such limit.",
  ),
  aggregates: withDefault(
    "PGRST_DB_AGGREGATES_ENABLED",
    flag,
    "false",
    "Whether clients may use aggregates, also in GraphQL. They can be expensive in large tables.",
  ),
  planEnabled: withDefault("PGRST_DB_PLAN_ENABLED", flag, "false", "Whether clients may ask for execution plans."),
  preRequest: optional("PGRST_DB_PRE_REQUEST", text, "A function that is called before each request to /rest/v1."),
  txEnd: withDefault(
    "PGRST_DB_TX_END",
    oneOf("commit", "commit-allow-override", "rollback", "rollback-allow-override"),
    "commit",
    "How the transactions of /rest/v1 end: `commit` or `rollback`. With `commit-allow-override` and `rollback-allow-override`, a request may choose the other one by `Prefer: tx`.",
  ),
  hoistedSettings: withDefault(
    "PGRST_DB_HOISTED_TX_SETTINGS",
    list,
    "statement_timeout, plan_filter.statement_cost_limit, default_transaction_isolation",
    "The settings that apply to the whole transaction of a request if the function that it calls has them (`create function … set name = value`), separated by commas.",
  ),
  timezoneEnabled: withDefault(
    "PGRST_DB_TIMEZONE_ENABLED",
    flag,
    "true",
    "Whether clients may use `Prefer: timezone`.",
  ),
  errorVerbosity: withDefault(
    "PGRST_CLIENT_ERROR_VERBOSITY",
    oneOf("verbose", "minimal"),
    "verbose",
    "`minimal` leaves out details and hint of errors of /rest/v1 and GraphQL.",
  ),
  legacyTargetNames: withDefault(
    "PGRST_URL_USE_LEGACY_TARGET_NAMES",
    flag,
    "true",
    "Whether filters may also use the name of a relation that has an alias.",
  ),
  traceHeader: optional(
    "PGRST_SERVER_TRACE_HEADER",
    headerName,
    "The name of a request header that is returned in the response.",
  ),
  rootSpec: optional("PGRST_DB_ROOT_SPEC", text, "A function that is called for requests to /rest/v1/ itself."),
  openapiMode: withDefault(
    "PGRST_OPENAPI_MODE",
    oneOf("follow-privileges", "ignore-privileges", "disabled"),
    "follow-privileges",
    "The tables in the OpenAPI document of /rest/v1: those that the caller may use, all, or none (`disabled`).",
  ),
  openapiProxyUrl: optional(
    "PGRST_OPENAPI_SERVER_PROXY_URI",
    text,
    "The URL of the server in the OpenAPI document of /rest/v1.",
  ),
  openapiSecurity: withDefault(
    "PGRST_OPENAPI_SECURITY_ACTIVE",
    flag,
    "false",
    "Whether the OpenAPI document of /rest/v1 declares a token.",
  ),
  putSemantics: withDefault(
    "PUT_SEMANTICS",
    oneOf("replace", "merge"),
    "replace",
    "The effect of a PUT at /users and /api on missing fields: `replace` resets them, and `merge` keeps them.",
  ),
  errorBody: withDefault(
    "ERROR_BODY",
    oneOf("nested", "detail", "flat", "spring"),
    "nested",
    'The format of [errors](rest.md#errors) at /users, /api and /auth: `nested` (`{"error": {"code", "message", …}}`), `detail` (`{"detail": {"code", "message"}}`), `flat` (`{"error": code, "message", "field"}`) or `spring` (also with the status and the messages by field).',
  ),
} satisfies Record<string, SettingDefinition<unknown>>;

export const GRAPHQL_SETTINGS = {
  graphqlMaxDepth: withDefault(
    "GRAPHQL_MAX_DEPTH",
    integer(1),
    "15",
    "The maximum number of levels of nested fields in an operation.",
  ),
  graphqlMaxComplexity: withDefault(
    "GRAPHQL_MAX_COMPLEXITY",
    integer(1),
    "1000",
    "The maximum number of fields in an operation.",
  ),
  graphqlMaxBodyBytes: withDefault(
    "GRAPHQL_MAX_BODY_BYTES",
    integer(1024),
    "1048576",
    "The maximum size of the body of a request.",
  ),
  graphqlMaxTokens: withDefault(
    "GRAPHQL_MAX_TOKENS",
    integer(1),
    "15000",
    "The maximum number of tokens of a document.",
  ),
  graphqlMaxAliases: withDefault(
    "GRAPHQL_MAX_ALIASES",
    integer(0),
    "1000",
    "The maximum number of aliases of a document.",
  ),
  graphqlMaxDirectives: withDefault(
    "GRAPHQL_MAX_DIRECTIVES",
    integer(0),
    "500",
    "The maximum number of directives of a document.",
  ),
  graphqlMaxRootFields: withDefault(
    "GRAPHQL_MAX_ROOT_FIELDS",
    integer(1),
    "500",
    "The maximum number of root fields of an operation.",
  ),
  graphqlMaxAnonymousPlanned: withDefault(
    "GRAPHQL_MAX_ANONYMOUS_PLANNED_FIELDS",
    integer(1),
    "100",
    "The maximum number of fields with subfields in an anonymous operation that cannot run as [one statement](graphql.md#how-operations-run).",
  ),
  graphqlStatementTimeout: withDefault(
    "GRAPHQL_STATEMENT_TIMEOUT_SECONDS",
    integer(0, 86_400),
    "10",
    "The time after which Postgres cancels a statement of an operation, if it is less than DB_STATEMENT_TIMEOUT_SECONDS; 0 means no limit.",
  ),
  graphqlMaxSocketOperations: withDefault(
    "GRAPHQL_MAX_SOCKET_OPERATIONS",
    integer(1),
    "100",
    "The maximum number of open operations of a WebSocket.",
  ),
  graphqlInternalErrorStatus: withDefault(
    "GRAPHQL_INTERNAL_ERROR_STATUS",
    oneOf("200", "400"),
    "200",
    "The status of responses with an internal error.",
  ),
  graphqlIntrospection: withDefault(
    "GRAPHQL_INTROSPECTION",
    oneOf("off", "authenticated", "all"),
    "all",
    "The callers who may [introspect](graphql.md#schema-per-role) the schema: `all`, `authenticated`, or none (`off`).",
  ),
  graphqlExplorer: withDefault(
    "GRAPHQL_EXPLORER",
    flag,
    "true",
    "Whether GraphiQL is served. Set `false` to have no editor in production.",
  ),
  graphqlNode: withDefault(
    "GRAPHQL_NODE",
    flag,
    "false",
    "Whether rows have the [global ids](graphql.md#global-ids) of Relay.",
  ),
  graphqlPreload: withDefault(
    "GRAPHQL_PRELOAD",
    flag,
    "false",
    "Whether the service builds the schema [at the start](graphql.md#how-operations-run), instead of at the first request.",
  ),
  graphqlPersistedOperations: optional(
    "GRAPHQL_PERSISTED_OPERATIONS",
    text,
    "The folder of [registered operations](graphql.md#registered-operations).",
  ),
  graphqlPersistedOnly: withDefault("GRAPHQL_PERSISTED_ONLY", flag, "false", "Whether only registered operations run."),
} satisfies Record<string, SettingDefinition<unknown>>;

export const REALTIME_SETTINGS = {
  realtimeMaxChannels: withDefault(
    "REALTIME_MAX_CHANNELS",
    integer(1),
    "100",
    "The maximum number of channels of a WebSocket.",
  ),
  realtimeMaxBindings: withDefault(
    "REALTIME_MAX_BINDINGS",
    integer(0),
    "100",
    "The maximum number of `postgres_changes` of a channel; 0 means no limit.",
  ),
  realtimeMaxJoins: withDefault(
    "REALTIME_MAX_JOINS_PER_SECOND",
    integer(0),
    "100",
    "The maximum number of joins and tokens per second of a WebSocket.",
  ),
  realtimeMaxMessages: withDefault(
    "REALTIME_MAX_MESSAGES_PER_SECOND",
    integer(0),
    "2000",
    "The maximum number of messages per second of a WebSocket. Beyond it, the channel is closed.",
  ),
  realtimeMaxBytes: withDefault(
    "REALTIME_MAX_BYTES_PER_SECOND",
    integer(0),
    "5242880",
    "The maximum number of bytes per second of a WebSocket. Beyond it, the service pauses reading.",
  ),
  realtimeMaxPresences: withDefault(
    "REALTIME_MAX_PRESENCES_PER_SECOND",
    integer(0),
    "10",
    "The maximum number of updates of presence per second of a WebSocket. Beyond it, the channel is closed.",
  ),
  realtimeCheckTimeout: withDefault(
    "REALTIME_CHECK_TIMEOUT_SECONDS",
    integer(1, 600),
    "2",
    "The time in which the policies of a batch of changes must be checked. After it, the channels end.",
  ),
  realtimeSlot: withDefault(
    "REALTIME_SLOT",
    oneOf("auto", "always", "never"),
    "auto",
    "The use of a [replication slot](realtime.md#replication-slot), which keeps two minutes of changes: `always`, `never`, or `auto` if max_slot_wal_keep_size is set, so that the slot cannot fill the disk.",
  ),
  shapeLogMegabytes: withDefault(
    "SHAPE_LOG_MB",
    integer(0),
    "512",
    "The megabytes of the logs of [shapes](live-data.md#logs-of-shapes) in DATA_DIR; 0 means no logs.",
  ),
} satisfies Record<string, SettingDefinition<unknown>>;

export const WEBHOOK_SETTINGS = {
  webhookNetwork: optional(
    "WEBHOOK_NETWORK",
    oneOf("public", "loopback", "private"),
    "The addresses to which webhooks may be sent: `public` (by HTTPS), `loopback` (also this machine) or `private` (also private networks). If it is not set, it is `loopback` on a playground, and otherwise `public`.",
  ),
} satisfies Record<string, SettingDefinition<unknown>>;

export const STUDIO_SETTINGS = {
  studio: optional(
    "STUDIO",
    oneOf("open", "administrators", "off"),
    "The users of /studio: `administrators`; `open`, which also admits browsers on this machine; or `off`. If it is not set, it is `open` on a playground, and otherwise `administrators`.",
  ),
  studioSql: optional(
    "STUDIO_SQL",
    flag,
    "Whether administrators may run SQL, and make keys of roles that policies do not limit. If it is not set, they may on a playground only.",
  ),
} satisfies Record<string, SettingDefinition<unknown>>;
