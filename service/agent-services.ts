import { RequestLimit } from "#postgres/rate-limits";
import { CallAudit, type ExtendServer } from "#rest-gateway/mcp";
import type { ServiceCore } from "./shared-services.ts";

/** What the calls of agents need for as long as the service runs. */
export type AgentServices = {
  readonly audit: CallAudit;
  /** Null: calls are limited as other requests only. */
  readonly limit: RequestLimit | null;
  /** Adds what the tests of the protocol call. */
  readonly extend: ExtendServer | undefined;
};

export function openAgentServices(
  { config, asOwner, supervisor, log }: ServiceCore,
  extend: ExtendServer | undefined,
  opened: AsyncDisposableStack,
): AgentServices {
  const audit = new CallAudit(asOwner, log);
  const isLimited = config.mcp !== "off" && config.mcpRateLimit > 0;
  const limit = isLimited ? new RequestLimit({ limit: config.mcpRateLimit, asOwner, supervisor, log }) : null;
  opened.defer(() => limit?.close());
  opened.defer(() => audit.write());
  return { audit, limit, extend };
}
