import type { Sender } from "../../engine/auth/sender.ts";
import type { GatewayRequest } from "../http.ts";

export function senderOf({ id, headers, connection }: GatewayRequest): Sender {
  return { address: connection().address, userAgent: headers["user-agent"] ?? null, requestId: id };
}
