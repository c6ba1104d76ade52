import { createHmac, timingSafeEqual } from "node:crypto";
import type { Config } from "../engine/config/config.ts";
import { ApiError } from "../engine/errors.ts";
import type { RequestHeaders } from "./request-info.ts";

const TOKEN_HEADER = "x-csrf-token";
const SAFE_METHODS: readonly string[] = ["GET", "HEAD", "OPTIONS"];

type CsrfRequest = { readonly method: string; readonly headers: RequestHeaders };

/** What a browser shows unasked, its cookie or a password that it was once told, is not enough to change something. */
export type CsrfProtection = {
  /**
   * Refuses a change that a page of somebody else may have had a browser send. It wants the token of the session; without
   * a session it goes by the page's address alone.
   */
  checkRequest(request: CsrfRequest, session: string | null): void;
  /** The same for a form, which shows the token among its fields. */
  checkForm(request: CsrfRequest, session: string | null, token: string | null): void;
  /** Whether the page that opens a socket is ours, or one of CORS_ORIGINS: a socket shows no token. */
  isAllowedOrigin(headers: RequestHeaders): boolean;
};

/** Bound to the session, whose id no page can read: nothing is to be kept, and any gateway knows it. */
export function csrfTokenOf(session: string): string {
  return createHmac("sha256", session).update("cross-site token").digest("base64url");
}

/** The token proves that the page could read an answer of ours; where the request came from is looked at besides. */
export function makeCsrfProtection({
  corsOrigins,
  publicUrl,
}: Pick<Config, "corsOrigins" | "publicUrl">): CsrfProtection {
  const ownOrigins = publicUrl === null ? [] : [new URL(publicUrl).origin];
  const allowedOrigins = new Set(corsOrigins === "*" ? ownOrigins : [...corsOrigins, ...ownOrigins]);

  const isAllowedOrigin = ({ origin, host }: RequestHeaders): boolean =>
    typeof origin === "string" && (allowedOrigins.has(origin) || URL.parse(origin)?.host === host);

  /** No browser, no page: a program says neither. */
  const isCrossSite = (headers: RequestHeaders): boolean => {
    const site = headers["sec-fetch-site"];
    if (site === "same-origin" || site === "none") return false;
    return headers.origin === undefined ? site !== undefined : !isAllowedOrigin(headers);
  };

  const checkForm: CsrfProtection["checkForm"] = ({ method, headers }, session, token) => {
    if (SAFE_METHODS.includes(method)) return;
    if (isCrossSite(headers)) {
      throw new ApiError(403, "PERMISSION_DENIED", "A page of another site may not do this in the user's name.");
    }
    if (session === null || (token !== null && isEqual(token, csrfTokenOf(session)))) return;
    throw new ApiError(403, "PERMISSION_DENIED", "The X-CSRF-Token is missing, or not the one of this session.", {
      hint: "Get it from GET /csrf-token after signing in.",
    });
  };

  return {
    checkRequest(request, session) {
      const token = request.headers[TOKEN_HEADER];
      checkForm(request, session, typeof token === "string" ? token : null);
    },
    checkForm,
    isAllowedOrigin,
  };
}

function isEqual(actual: string, expected: string): boolean {
  const [one, other] = [Buffer.from(actual), Buffer.from(expected)];
  return one.length === other.length && timingSafeEqual(one, other);
}
