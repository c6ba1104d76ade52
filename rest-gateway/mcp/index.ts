export { CallAudit } from "./call-audit.ts";
export type { RunTableRequest } from "./call-tool.ts";
export { ClientRequests } from "./client-requests.ts";
export { makeMcpHandler, toMcpErrorResponse } from "./mcp-handler.ts";
export { MCP_PATH } from "./protocol-handler.ts";
export type { ExtendServer } from "./protocol-server.ts";
