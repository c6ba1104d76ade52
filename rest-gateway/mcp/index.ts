export { CallAudit } from "./call-audit.ts";
export type { RunTableRequest } from "./call-tool.ts";
export { MCP_PATH, makeMcpHandler, toMcpErrorResponse } from "./mcp-handler.ts";
export type { ExtendServer, McpSdk } from "./protocol-server.ts";
