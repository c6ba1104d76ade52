import { createHmac, timingSafeEqual } from "node:crypto";
import type { Config } from "#config";
import { HttpError } from "./http-error.ts";
import type { RequestHeaders } from "./request-info.ts";

export const CSRF_TOKEN_HEADER = "x-csrf-token";
const SAFE_METHODS: readonly string[] = ["GET", "HEAD", "OPTIONS"];

type CsrfRequest = { readonly method: string; readonly headers: RequestHeaders };

/** Protects requests that a browser authenticates automatically, by its cookie or by stored Basic credentials. */
export type CsrfProtection = {
  /** Throws 403 for a change from a page of another site, or, with a session, without the CSRF token of that session. */
  checkRequest(request: CsrfRequest, session: string | null): void;
  /** The same for a form, which sends the token as a field. */
  checkForm(request: CsrfRequest, session: string | null, token: string | null): void;
  /** True if the page that opens a WebSocket is ours or of CORS_ORIGINS; WebSockets send no CSRF token. */
  isAllowedOrigin(headers: RequestHeaders): boolean;
};

/** The token is derived from the session id, which no page can read; so it need not be stored, and any gateway can verify it. */
export function csrfTokenOf(session: string): string {
  return createHmac("sha256", session).update("cross-site token").digest("base64url");
}

/** Checks the token, which only a page that can read our responses has, and also the origin of the request. */
export function makeCsrfProtection({
  corsOrigins,
  publicUrl,
}: Pick<Config, "corsOrigins" | "publicUrl">): CsrfProtection {
  const ownOrigins = publicUrl === null ? [] : [new URL(publicUrl).origin];
  const allowedOrigins = new Set(corsOrigins === "*" ? ownOrigins : [...corsOrigins, ...ownOrigins]);

  const isAllowedOrigin = ({ origin, host }: RequestHeaders): boolean =>
    typeof origin === "string" && (allowedOrigins.has(origin) || URL.parse(origin)?.host === host);

  /** Programs send neither of the two headers. */
  const isCrossSite = (headers: RequestHeaders): boolean => {
    const site = headers["sec-fetch-site"];
    if (site === "same-origin" || site === "none") return false;
    return headers.origin === undefined ? site !== undefined : !isAllowedOrigin(headers);
  };

  const checkForm: CsrfProtection["checkForm"] = ({ method, headers }, session, token) => {
    if (SAFE_METHODS.includes(method)) return;
    if (isCrossSite(headers)) {
      throw new HttpError(403, "PERMISSION_DENIED", "A page of another site may not do this in the user's name.");
    }
    if (session === null || (token !== null && isEqual(token, csrfTokenOf(session)))) return;
    throw new HttpError(403, "PERMISSION_DENIED", "The X-CSRF-Token is missing, or not the one of this session.", {
      hint: "Get it from GET /csrf-token after signing in.",
    });
  };

  return {
    checkRequest(request, session) {
      const token = request.headers[CSRF_TOKEN_HEADER];
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
