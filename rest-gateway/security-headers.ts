import type { IncomingMessage, ServerResponse } from "node:http";
import helmet from "helmet";

/** Of answers that are data: they cannot be sniffed, framed or run. A face that serves pages sets a policy of its own. */
export function securityHeaders(): Readonly<Record<string, string>> {
  const headers: Record<string, string> = {};
  const protect = helmet({
    contentSecurityPolicy: { useDefaults: false, directives: { defaultSrc: ["'none'"], frameAncestors: ["'none'"] } },
    crossOriginResourcePolicy: { policy: "cross-origin" },
    // These speak of pages, and of browsers that are no more.
    crossOriginOpenerPolicy: false,
    originAgentCluster: false,
    xDnsPrefetchControl: false,
    xDownloadOptions: false,
    xFrameOptions: false,
    xPermittedCrossDomainPolicies: false,
    xXssProtection: false,
  });
  // They are the same for every answer, so helmet is asked once.
  const answer = { setHeader: (name: string, value: string) => (headers[name] = value), removeHeader: () => {} };
  protect({} as IncomingMessage, answer as unknown as ServerResponse, () => {});
  return Object.freeze(headers);
}
