import { createHmac, timingSafeEqual } from "node:crypto";
import type { Config } from "../config/config.ts";
import { ApiError } from "../errors.ts";
import type { RequestHeaders } from "./occasion.ts";

const HEADER = "x-csrf-token";
const SAFE: readonly string[] = ["GET", "HEAD", "OPTIONS"];

type Asked = { readonly method: string; readonly headers: RequestHeaders };

/** What a browser shows unasked, its cookie or a password that it was once told, is not enough to change something. */
export type CrossSite = {
  /**
   * Refuses a change that a page of somebody else may have had a browser send. It wants the token of the session; without
   * a session it goes by the page's address alone.
   */
  guard(request: Asked, session: string | null): void;
  /** The same for a form, which shows the token among its fields. */
  guardForm(request: Asked, session: string | null, token: string | null): void;
  /** Whether the page that opens a socket is ours, or one of CORS_ORIGINS: a socket shows no token. */
  isOwnPage(headers: RequestHeaders): boolean;
};

/** Bound to the session, whose id no page can read: nothing is to be kept, and any gateway knows it. */
export function crossSiteToken(session: string): string {
  return createHmac("sha256", session).update("cross-site token").digest("base64url");
}

/** The token proves that the page could read an answer of ours; where the request came from is looked at besides. */
export function makeCrossSite({ corsOrigins, publicUrl }: Pick<Config, "corsOrigins" | "publicUrl">): CrossSite {
  const own = publicUrl === null ? [] : [new URL(publicUrl).origin];
  const friends = new Set(corsOrigins === "*" ? own : [...corsOrigins, ...own]);

  const isFriend = ({ origin, host }: RequestHeaders): boolean =>
    typeof origin === "string" && (friends.has(origin) || URL.parse(origin)?.host === host);

  /** No browser, no page: a program says neither. */
  const isForeign = (headers: RequestHeaders): boolean => {
    const site = headers["sec-fetch-site"];
    if (site === "same-origin" || site === "none") return false;
    return headers.origin === undefined ? site !== undefined : !isFriend(headers);
  };

  const guardForm: CrossSite["guardForm"] = ({ method, headers }, session, token) => {
    if (SAFE.includes(method)) return;
    if (isForeign(headers)) {
      throw new ApiError(403, "PERMISSION_DENIED", "A page of another site may not do this in the user's name.");
    }
    if (session === null || (token !== null && isEqual(token, crossSiteToken(session)))) return;
    throw new ApiError(403, "PERMISSION_DENIED", "The X-CSRF-Token is missing, or not the one of this session.", {
      hint: "Get it from GET /csrf-token after signing in.",
    });
  };

  return {
    guard(request, session) {
      const shown = request.headers[HEADER];
      guardForm(request, session, typeof shown === "string" ? shown : null);
    },
    guardForm,
    isOwnPage: isFriend,
  };
}

function isEqual(shown: string, expected: string): boolean {
  const [one, other] = [Buffer.from(shown), Buffer.from(expected)];
  return one.length === other.length && timingSafeEqual(one, other);
}
