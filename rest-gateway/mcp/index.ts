export { CallAudit } from "./call-audit.ts";
export { ClientRequests } from "./client-requests.ts";
export { makeMcpHandler, toMcpErrorResponse } from "./mcp-handler.ts";
export { MCP_PATH } from "./protocol-handler.ts";
export type { ExtendServer } from "./protocol-server.ts";
