import type { IncomingMessage, ServerResponse } from "node:http";
import helmet from "helmet";
import type { Config } from "../../engine/config/config.ts";

/** Whether clients may have come by HTTPS, here or at a proxy in front. */
export function mayBeSecure(settings: Pick<Config, "httpsCertificate" | "publicUrl" | "trustProxy">): boolean {
  const { httpsCertificate, publicUrl, trustProxy } = settings;
  return httpsCertificate !== null || Boolean(trustProxy) || (publicUrl?.startsWith("https:") ?? false);
}

/**
 * Of answers that are data: they cannot be sniffed, framed or run. A face that serves pages sets a policy of its own. What
 * goes over plain HTTP must not ask for HTTPS (RFC 6797, 7.2).
 */
export function securityHeaders({ overHttps }: { readonly overHttps: boolean }): Readonly<Record<string, string>> {
  const headers: Record<string, string> = {};
  const protect = helmet({
    contentSecurityPolicy: { useDefaults: false, directives: { defaultSrc: ["'none'"], frameAncestors: ["'none'"] } },
    crossOriginResourcePolicy: { policy: "cross-origin" },
    strictTransportSecurity: overHttps,
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
