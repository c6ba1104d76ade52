import { integer, list, oneOf, optional, type SettingDefinition, text, withDefault } from "./setting-readers.ts";

export const FUNCTION_SETTINGS = {
  functions: optional(
    "FUNCTIONS",
    oneOf("on", "off"),
    "Whether this gateway runs [functions](functions.md) at `/functions/v1`. Unset: if there is a folder of them.",
  ),
  functionsDir: optional(
    "FUNCTIONS_DIR",
    text,
    "Folder of the functions. Unset: `functions`, or `supabase/functions`, of the working directory.",
  ),
  functionsMemory: withDefault(
    "FUNCTIONS_MEMORY",
    integer(32, 16_384),
    "256",
    "Megabytes that a function may take in one process. Beyond it the function is ended, and the response is 546.",
  ),
  functionsTimeout: withDefault(
    "FUNCTIONS_TIMEOUT_SECONDS",
    integer(1, 86_400),
    "150",
    "Seconds until a function must begin its response, and send each further piece of it; then the response is 504.",
  ),
  functionsCpu: withDefault(
    "FUNCTIONS_CPU_SECONDS",
    integer(1, 86_400),
    "2",
    "Seconds of processor time that a function may compute without a pause. Beyond it the function is ended, and the response is 546.",
  ),
} satisfies Record<string, SettingDefinition<unknown>>;

export const MCP_SETTINGS = {
  mcp: withDefault(
    "MCP",
    oneOf("off", "read", "write"),
    "off",
    "Whether agents may use [/mcp](mcp.md) for their users. `read`: only tools that change nothing. `write`: also tools that change rows. `off`: 404.",
  ),
  mcpSchemas: optional(
    "MCP_SCHEMAS",
    list,
    "Schemas whose tables and functions are tools, separated by commas. Unset: all of PGRST_DB_SCHEMAS.",
  ),
  mcpMaxRows: withDefault(
    "MCP_MAX_ROWS",
    integer(1, 10_000),
    "200",
    "The most rows that one call of a tool reads or changes.",
  ),
  mcpMaxBytes: withDefault("MCP_MAX_BYTES", integer(1_000), "1000000", "The largest result of a tool, in bytes."),
  mcpRateLimit: withDefault(
    "MCP_RATE_LIMIT",
    integer(0),
    "120",
    "Calls a minute of one grant or API key, or of one user without a grant. 0: only RATE_LIMIT applies.",
  ),
} satisfies Record<string, SettingDefinition<unknown>>;
