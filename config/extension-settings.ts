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

// Settings with one description share a row of docs/settings.md.
const CALL_LIMITS = "Rows that a call reads or changes; size of a result.";
const FUNCTION_LIMITS = "Megabytes of a function in a process; processor time without pause. Then 546.";
const FUNCTION_MEMORY =
  "Megabytes of all functions, divided among workers, each with at least FUNCTIONS_MEMORY. Then the largest function is ended.";
const FUNCTION_FOLDER =
  "Runs the [functions](functions.md) of a folder. Unset: if `functions` or `supabase/functions` exists.";
const APPLICATIONS = "Applications may register themselves; a `client_id` may be the address of a document about them.";
const LIFETIMES = "Lifetime of access tokens, and of grants.";

export const FUNCTION_SETTINGS = {
  functions: optional("FUNCTIONS", oneOf("on", "off"), FUNCTION_FOLDER),
  functionsDir: optional("FUNCTIONS_DIR", text, FUNCTION_FOLDER),
  functionsMemory: withDefault("FUNCTIONS_MEMORY", integer(32, 16_384), "256", FUNCTION_LIMITS),
  functionsTotalMemory: withDefault("FUNCTIONS_TOTAL_MEMORY", integer(64, 131_072), "256", FUNCTION_MEMORY),
  functionsBodyBytes: withDefault(
    "FUNCTIONS_MAX_BODY_BYTES",
    integer(1024),
    "52428800",
    "Size of a [body](limits.md#request-bodies) for functions.",
  ),
  functionsTimeout: withDefault(
    "FUNCTIONS_TIMEOUT_SECONDS",
    integer(1, 86_400),
    "150",
    "Time until a response, and between its pieces, then 504.",
  ),
  functionsCpu: withDefault("FUNCTIONS_CPU_SECONDS", integer(1, 86_400), "2", FUNCTION_LIMITS),
} satisfies Record<string, SettingDefinition<unknown>>;

export const MCP_SETTINGS = {
  mcp: withDefault(
    "MCP",
    oneOf("off", "read", "write"),
    "off",
    "[/mcp](mcp.md) for agents. `read`: only tools that change nothing. `write`: all.",
  ),
  mcpSchemas: optional("MCP_SCHEMAS", list, "Schemas of the tools. Unset: PGRST_DB_SCHEMAS."),
  mcpMaxRows: withDefault("MCP_MAX_ROWS", integer(1, 10_000), "200", CALL_LIMITS),
  mcpMaxBytes: withDefault("MCP_MAX_BYTES", integer(1_000), "1000000", CALL_LIMITS),
  mcpRateLimit: withDefault(
    "MCP_RATE_LIMIT",
    integer(0),
    "120",
    "Calls a minute of a grant, key or user. 0: only RATE_LIMIT.",
  ),
} satisfies Record<string, SettingDefinition<unknown>>;

/** The authorization server for applications that act for users. */
export const OAUTH_SETTINGS = {
  oauthServer: withDefault("OAUTH_SERVER", flag, "off", "Runs an [OAuth server](oauth-server.md)."),
  oauthDynamicRegistration: withDefault("OAUTH_DYNAMIC_REGISTRATION", flag, "on", APPLICATIONS),
  oauthClientDocuments: withDefault("OAUTH_CLIENT_DOCUMENTS", flag, "on", APPLICATIONS),
  oauthConsentUrl: optional("OAUTH_CONSENT_URL", httpUrl, "Your page for consent. Unset: the service's."),
  oauthAccessSeconds: withDefault("OAUTH_ACCESS_TOKEN_SECONDS", integer(60, 86_400), "3600", LIFETIMES),
  oauthGrantDays: withDefault("OAUTH_GRANT_DAYS", integer(1, 3_650), "90", LIFETIMES),
} satisfies Record<string, SettingDefinition<unknown>>;
