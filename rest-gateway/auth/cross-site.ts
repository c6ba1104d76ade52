import { createHmac, timingSafeEqual } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import type { Config } from "../../engine/config/config.ts";
import { ApiError } from "../../engine/errors.ts";

const HEADER = "x-csrf-token";

/** Refuses what a page of somebody else may have had a browser send. Without a session it goes by the page's address alone. */
export type CrossSiteGuard = (headers: IncomingHttpHeaders, session: string | null) => void;

/** Bound to the session, whose id no page can read: nothing is to be kept, and any gateway knows it. */
export function crossSiteToken(session: string): string {
  return createHmac("sha256", session).update("cross-site token").digest("base64url");
}

/** The token proves that the page could read an answer of ours; where the request came from is looked at besides. */
export function makeCrossSiteGuard({ corsOrigins }: Pick<Config, "corsOrigins">): CrossSiteGuard {
  const friends = new Set(corsOrigins === "*" ? [] : corsOrigins);
  return (headers, session) => {
    if (isForeign(headers, friends)) {
      throw new ApiError(403, "PERMISSION_DENIED", "A page of another site may not do this in the user's name.");
    }
    if (session === null) return;
    const shown = headers[HEADER];
    if (typeof shown === "string" && isEqual(shown, crossSiteToken(session))) return;
    throw new ApiError(403, "PERMISSION_DENIED", "The X-CSRF-Token is missing, or not the one of this session.", {
      hint: "Get it from GET /csrf-token after signing in.",
    });
  };
}

/** No browser, no page: a program says neither. */
function isForeign({ origin, host, ...headers }: IncomingHttpHeaders, friends: ReadonlySet<string>): boolean {
  const site = headers["sec-fetch-site"];
  if (site === "same-origin" || site === "none") return false;
  if (origin === undefined) return site !== undefined;
  return !friends.has(origin) && URL.parse(origin)?.host !== host;
}

function isEqual(shown: string, expected: string): boolean {
  const [one, other] = [Buffer.from(shown), Buffer.from(expected)];
  return one.length === other.length && timingSafeEqual(one, other);
}
