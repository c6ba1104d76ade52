import { integer, list, oneOf, optional, type SettingDefinition, text, withDefault } from "./setting-readers.ts";

// Settings with one description share a row of docs/settings.md.
const CALL_LIMITS = "Rows that a call reads or changes; size of a result.";
const FUNCTION_LIMITS = "Megabytes of a function in a process; processor time without pause. Then 546.";
const FUNCTION_FOLDER =
  "Runs the [functions](functions.md) of a folder. Unset: if `functions` or `supabase/functions` exists.";

export const FUNCTION_SETTINGS = {
  functions: optional("FUNCTIONS", oneOf("on", "off"), FUNCTION_FOLDER),
  functionsDir: optional("FUNCTIONS_DIR", text, FUNCTION_FOLDER),
  functionsMemory: withDefault("FUNCTIONS_MEMORY", integer(32, 16_384), "256", FUNCTION_LIMITS),
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
