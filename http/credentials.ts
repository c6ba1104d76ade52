import { LIFETIMES } from "#accounts/identity";
import { type RequestHeaders, readCookie } from "./request-info.ts";

const SESSION_COOKIE = "SESSION";
const SESSION_COOKIE_ATTRIBUTES = "Path=/; HttpOnly; Secure; SameSite=Strict";

type CookieHeader = Readonly<Record<string, string>>;

/** Returns the session id, which is not verified yet; null without a cookie. */
export function readSessionCookie({ cookie }: RequestHeaders): string | null {
  return readCookie(cookie, SESSION_COOKIE);
}

/** The cookie is sent again with each use, because it expires together with the idle session. */
export function setSessionCookie(id: string): CookieHeader {
  return { "Set-Cookie": `${SESSION_COOKIE}=${id}; ${SESSION_COOKIE_ATTRIBUTES}; Max-Age=${LIFETIMES.idleSession}` };
}

export function clearSessionCookie(): CookieHeader {
  return { "Set-Cookie": `${SESSION_COOKIE}=; ${SESSION_COOKIE_ATTRIBUTES}; Max-Age=0` };
}

/** Headers that authenticate a request. */
export const CREDENTIAL_HEADERS = ["authorization", "apikey", "x-api-key", "cookie"] as const;

/** The same headers, for `Vary`. */
export const CREDENTIAL_VARY = "Authorization, apikey, X-API-Key, Cookie";

type ApiKeyHeader = "apikey" | "x-api-key";

/** Returns the first API key in the accepted headers, which is not verified yet; otherwise the one in the query; null without a key. */
export function readApiKey(
  headers: RequestHeaders,
  accepted: readonly ApiKeyHeader[],
  readQuery: () => string | null | undefined,
): string | null {
  for (const name of accepted) {
    const key = headers[name];
    if (typeof key === "string" && key !== "") return key;
  }
  return readQuery() || null;
}

const API_KEY_PARAMETER = "api_key";

/** Returns the key of `?api_key=…`, which is not verified yet; null without one. */
export function readApiKeyParameter(rawQuery: string): string | null {
  if (!rawQuery.includes(`${API_KEY_PARAMETER}=`)) return null;
  return new URLSearchParams(rawQuery).get(API_KEY_PARAMETER);
}

export function queryWithoutApiKey(rawQuery: string): string {
  if (!rawQuery.includes(`${API_KEY_PARAMETER}=`)) return rawQuery;
  return rawQuery
    .split("&")
    .filter((part) => !new URLSearchParams(part).has(API_KEY_PARAMETER))
    .join("&");
}
