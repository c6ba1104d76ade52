import type { ClientInfo } from "../../engine/auth/client-info.ts";
import type { GatewayRequest } from "../http.ts";

export function clientInfoOf({ id, headers, connection }: GatewayRequest): ClientInfo {
  return { address: connection().address, userAgent: headers["user-agent"] ?? null, requestId: id };
}
