import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import helmet from "helmet";
import type { Config } from "#config";

type CorsHeaders = Readonly<Record<string, string>>;

type CorsPolicy = {
  /** Returns the CORS headers of a response; one of a few shared objects. */
  headersFor(origin: string | undefined): CorsHeaders;
  /** Returns the headers of a preflight response; null if the request is not a preflight. */
  preflight(method: string, headers: IncomingHttpHeaders): CorsHeaders | null;
};

// The methods and headers are those of PostgREST in its order, then ours.
const ALLOWED_METHODS = "GET, POST, PATCH, PUT, DELETE, OPTIONS, HEAD";
const DEFAULT_REQUEST_HEADERS = ["Accept", "Accept-Language", "Content-Language"];
const EXPOSED_HEADERS = [
  "Content-Encoding",
  "Content-Location",
  "Content-Range",
  "Content-Type",
  "Date",
  "Location",
  "Server",
  "Transfer-Encoding",
  "Range-Unit",
  "ETag",
  "Idempotent-Replayed",
  "Link",
  "Mcp-Session-Id",
  "Preference-Applied",
  "Retry-After",
  "Server-Timing",
  "X-API-Sunset",
  "X-API-Warn",
  "X-Consistency",
  "X-RateLimit-Limit",
  "X-RateLimit-Remaining",
  "X-RateLimit-Reset",
  "X-Request-Id",
  ...["cursor", "handle", "has-data", "offset", "schema", "up-to-date"].map((name) => `electric-${name}`),
].join(", ");
const MAX_AGE_SECONDS = "86400";

/** Allows any origin without credentials, or listed origins with credentials: cookies must not be sent for unlisted origins. */
export function makeCorsPolicy({ corsOrigins }: Pick<Config, "corsOrigins">): CorsPolicy {
  const headersFor = corsOrigins === "*" ? headersForAnyOrigin() : headersForListedOrigins(new Set(corsOrigins));
  return {
    headersFor,
    preflight(method, headers) {
      if (method !== "OPTIONS" || !headers["access-control-request-method"]) return null;
      return {
        ...headersFor(headers.origin),
        "Access-Control-Allow-Methods": ALLOWED_METHODS,
        "Access-Control-Allow-Headers": allowedRequestHeaders(headers["access-control-request-headers"]),
        "Access-Control-Max-Age": MAX_AGE_SECONDS,
        Vary: "Origin, Access-Control-Request-Headers",
      };
    },
  };
}

/** All requested headers are allowed. */
function allowedRequestHeaders(requestedHeaders = ""): string {
  const names = requestedHeaders.split(",").map((name) => name.trim());
  return ["Authorization", ...names.filter(Boolean), ...DEFAULT_REQUEST_HEADERS].join(", ");
}

function headersForAnyOrigin(): CorsPolicy["headersFor"] {
  const always = { "Access-Control-Allow-Origin": "*", "Access-Control-Expose-Headers": EXPOSED_HEADERS };
  return () => always;
}

function headersForListedOrigins(origins: ReadonlySet<string>): CorsPolicy["headersFor"] {
  const forOthers = { Vary: "Origin" };
  const forListed = (origin: string) => ({
    "Access-Control-Allow-Origin": origin,
    "Access-Control-Allow-Credentials": "true",
    "Access-Control-Expose-Headers": EXPOSED_HEADERS,
    Vary: "Origin",
  });
  const byOrigin = new Map([...origins].map((origin) => [origin, forListed(origin)]));
  return (origin) => (origin === undefined ? forOthers : (byOrigin.get(origin) ?? forOthers));
}

/** True if clients may use HTTPS, here or at a proxy. */
export function mayBeSecure(settings: Pick<Config, "httpsCertificate" | "publicUrl" | "trustProxy">): boolean {
  const { httpsCertificate, publicUrl, trustProxy } = settings;
  return httpsCertificate !== null || Boolean(trustProxy) || (publicUrl?.startsWith("https:") ?? false);
}

/**
 * Returns the headers of data responses: they cannot be sniffed, framed or run; pages set their own policy. Plain HTTP must
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
