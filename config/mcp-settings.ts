import { integer, list, oneOf, optional, type SettingDefinition, withDefault } from "./setting-readers.ts";

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
