import {
  flag,
  httpUrl,
  integer,
  list,
  oneOf,
  optional,
  type SettingDefinition,
  text,
  withDefault,
} from "./setting-readers.ts";

export const FUNCTION_SETTINGS = {
  functions: optional(
    "FUNCTIONS",
    flag,
    "Whether the service runs [functions](functions.md) in TypeScript. If it is not set, it does if their folder exists.",
  ),
  functionsDir: optional(
    "FUNCTIONS_DIR",
    text,
    "The folder of functions. If it is not set, it is `functions` or `supabase/functions`.",
  ),
  functionsMemory: withDefault(
    "FUNCTIONS_MEMORY",
    integer(32, 16_384),
    "256",
    "The megabytes that one function may use in a process. Beyond it, the response is 546.",
  ),
  functionsTotalMemory: withDefault(
    "FUNCTIONS_TOTAL_MEMORY",
    integer(64, 131_072),
    "256",
    "The memory of all functions together, in megabytes. It is divided among the workers, and each worker has at least FUNCTIONS_MEMORY. If a worker exceeds its share, its largest function is ended.",
  ),
  functionsBodyBytes: withDefault(
    "FUNCTIONS_MAX_BODY_BYTES",
    integer(1024),
    "52428800",
    "The maximum size of a [body](limits.md#request-bodies) for functions.",
  ),
  functionsTimeout: withDefault(
    "FUNCTIONS_TIMEOUT_SECONDS",
    integer(1, 86_400),
    "150",
    "The time until a function must respond, and between the pieces of its response or the messages of a WebSocket. After it, the response is 504.",
  ),
  functionsCpu: withDefault(
    "FUNCTIONS_CPU_SECONDS",
    integer(1, 86_400),
    "2",
    "The processor time that a function may use without a pause. Beyond it, the response is 546.",
  ),
} satisfies Record<string, SettingDefinition<unknown>>;

export const MCP_SETTINGS = {
  mcp: withDefault(
    "MCP",
    oneOf("off", "read", "write"),
    "off",
    "The tools that agents find at [/mcp](mcp.md): `read` offers those that change nothing, `write` offers all tools, and `off` none.",
  ),
  mcpSchemas: optional(
    "MCP_SCHEMAS",
    list,
    "The schemas whose tables and functions are tools. If it is not set, these are PGRST_DB_SCHEMAS.",
  ),
  mcpMaxRows: withDefault(
    "MCP_MAX_ROWS",
    integer(1, 10_000),
    "200",
    "The maximum number of rows that a call reads or changes.",
  ),
  mcpMaxBytes: withDefault(
    "MCP_MAX_BYTES",
    integer(1_000),
    "1000000",
    "The maximum size of the result of a call, in bytes.",
  ),
  mcpRateLimit: withDefault(
    "MCP_RATE_LIMIT",
    integer(0),
    "120",
    "The calls per minute of a grant, key or user; 0 means that only RATE_LIMIT applies.",
  ),
} satisfies Record<string, SettingDefinition<unknown>>;

/** The authorization server for applications that act for users. */
export const OAUTH_SETTINGS = {
  oauthServer: withDefault(
    "OAUTH_SERVER",
    flag,
    "false",
    "Whether the service is an [OAuth server](oauth-server.md), for applications that act for users.",
  ),
  oauthDynamicRegistration: withDefault(
    "OAUTH_DYNAMIC_REGISTRATION",
    flag,
    "true",
    "Whether applications may register themselves.",
  ),
  oauthClientDocuments: withDefault(
    "OAUTH_CLIENT_DOCUMENTS",
    flag,
    "true",
    "Whether a `client_id` may be the address of a document about the application.",
  ),
  oauthConsentUrl: optional(
    "OAUTH_CONSENT_URL",
    httpUrl,
    "The address of your own page for consent. If it is not set, the page of the service is used.",
  ),
  oauthAccessSeconds: withDefault(
    "OAUTH_ACCESS_TOKEN_SECONDS",
    integer(60, 86_400),
    "3600",
    "The lifetime of access tokens of applications.",
  ),
  oauthGrantDays: withDefault("OAUTH_GRANT_DAYS", integer(1, 3_650), "90", "The lifetime of grants to applications."),
} satisfies Record<string, SettingDefinition<unknown>>;
