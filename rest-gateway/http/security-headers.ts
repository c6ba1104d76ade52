import type { IncomingMessage, ServerResponse } from "node:http";
import helmet from "helmet";
import type { Config } from "../../engine/config/config.ts";

/** Whether clients may use HTTPS, here or at a proxy. */
export function mayBeSecure(settings: Pick<Config, "httpsCertificate" | "publicUrl" | "trustProxy">): boolean {
  const { httpsCertificate, publicUrl, trustProxy } = settings;
  return httpsCertificate !== null || Boolean(trustProxy) || (publicUrl?.startsWith("https:") ?? false);
}

/**
 * Headers of data responses: they cannot be sniffed, framed or run; pages set a policy of their own. Plain HTTP must
 * not send Strict-Transport-Security (RFC 6797, 7.2).
 */
export function securityHeaders({ overHttps }: { readonly overHttps: boolean }): Readonly<Record<string, string>> {
  const headers: Record<string, string> = {};
  const protect = helmet({
    contentSecurityPolicy: { useDefaults: false, directives: { defaultSrc: ["'none'"], frameAncestors: ["'none'"] } },
    crossOriginResourcePolicy: { policy: "cross-origin" },
    strictTransportSecurity: overHttps,
    // These apply to pages or to old browsers only.
    crossOriginOpenerPolicy: false,
    originAgentCluster: false,
    xDnsPrefetchControl: false,
    xDownloadOptions: false,
    xFrameOptions: false,
    xPermittedCrossDomainPolicies: false,
    xXssProtection: false,
  });
  // The headers are the same for all responses, so helmet runs once.
  const response = { setHeader: (name: string, value: string) => (headers[name] = value), removeHeader: () => {} };
  protect({} as IncomingMessage, response as unknown as ServerResponse, () => {});
  return Object.freeze(headers);
}
