import { integer, list, oneOf, optional, type SettingDefinition, text, withDefault } from "./setting-readers.ts";

export const FUNCTION_SETTINGS = {
  functions: optional(
    "FUNCTIONS",
    oneOf("on", "off"),
    "Whether this gateway runs [functions](functions.md). Unset: if they have a folder.",
  ),
  functionsDir: optional("FUNCTIONS_DIR", text, "Their folder. Unset: `functions`, or `supabase/functions`."),
  functionsMemory: withDefault(
    "FUNCTIONS_MEMORY",
    integer(32, 16_384),
    "256",
    "Megabytes of a function in a process; beyond it 546.",
  ),
  functionsTimeout: withDefault(
    "FUNCTIONS_TIMEOUT_SECONDS",
    integer(1, 86_400),
    "150",
    "Seconds until a response, and between its pieces; then 504.",
  ),
  functionsCpu: withDefault(
    "FUNCTIONS_CPU_SECONDS",
    integer(1, 86_400),
    "2",
    "Seconds of processor time without pause; beyond it 546.",
  ),
} satisfies Record<string, SettingDefinition<unknown>>;

export const MCP_SETTINGS = {
  mcp: withDefault(
    "MCP",
    oneOf("off", "read", "write"),
    "off",
    "Whether agents may use [/mcp](mcp.md). `read`: only tools that change nothing. `write`: all.",
  ),
  mcpSchemas: optional("MCP_SCHEMAS", list, "Schemas of the tools, separated by commas. Unset: PGRST_DB_SCHEMAS."),
  mcpMaxRows: withDefault("MCP_MAX_ROWS", integer(1, 10_000), "200", "Rows that a call reads or changes."),
  mcpMaxBytes: withDefault("MCP_MAX_BYTES", integer(1_000), "1000000", "Size of a result."),
  mcpRateLimit: withDefault(
    "MCP_RATE_LIMIT",
    integer(0),
    "120",
    "Calls a minute of a grant, key or user. 0: only RATE_LIMIT.",
  ),
} satisfies Record<string, SettingDefinition<unknown>>;
