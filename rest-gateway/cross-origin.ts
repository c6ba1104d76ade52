import type { IncomingHttpHeaders } from "node:http";
import type { Config } from "../engine/config/config.ts";

type Headers = Readonly<Record<string, string>>;

export type CrossOrigin = {
  /** What an answer says to the page that asked; one of a few objects. */
  headersFor(origin: string | undefined): Headers;
  /** The answer to a preflight; null when the request is none. */
  preflight(method: string, headers: IncomingHttpHeaders): Headers | null;
};

// PostgREST's methods and headers, in its order; then what is ours.
const METHODS = "GET, POST, PATCH, PUT, DELETE, OPTIONS, HEAD";
const SENDABLE = ["Accept", "Accept-Language", "Content-Language"];
const READABLE = [
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
].join(", ");
const ONE_DAY = "86400";

/** Any origin without cookies, or the named ones with: a browser must never send cookies along for a stranger. */
export function makeCrossOrigin({ corsOrigins }: Pick<Config, "corsOrigins">): CrossOrigin {
  const headersFor = corsOrigins === "*" ? forAnybody() : forNamed(new Set(corsOrigins));
  return {
    headersFor,
    preflight(method, headers) {
      if (method !== "OPTIONS" || !headers["access-control-request-method"]) return null;
      return {
        ...headersFor(headers.origin),
        "Access-Control-Allow-Methods": METHODS,
        "Access-Control-Allow-Headers": sendable(headers["access-control-request-headers"]),
        "Access-Control-Max-Age": ONE_DAY,
        Vary: "Origin, Access-Control-Request-Headers",
      };
    },
  };
}

/** Whatever the page would like to send. */
function sendable(asked = ""): string {
  const names = asked.split(",").map((name) => name.trim());
  return ["Authorization", ...names.filter(Boolean), ...SENDABLE].join(", ");
}

function forAnybody(): CrossOrigin["headersFor"] {
  const always = { "Access-Control-Allow-Origin": "*", "Access-Control-Expose-Headers": READABLE };
  return () => always;
}

function forNamed(origins: ReadonlySet<string>): CrossOrigin["headersFor"] {
  const toStranger = { Vary: "Origin" };
  const toFriend = (origin: string) => ({
    "Access-Control-Allow-Origin": origin,
    "Access-Control-Allow-Credentials": "true",
    "Access-Control-Expose-Headers": READABLE,
    Vary: "Origin",
  });
  const known = new Map([...origins].map((origin) => [origin, toFriend(origin)]));
  return (origin) => (origin === undefined ? toStranger : (known.get(origin) ?? toStranger));
}
