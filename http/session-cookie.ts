import { LIFETIMES } from "../engine/accounts/lifetimes.ts";
import { type RequestHeaders, readCookie } from "./request-info.ts";

const SESSION_COOKIE = "SESSION";
const SESSION_COOKIE_ATTRIBUTES = "Path=/; HttpOnly; Secure; SameSite=Strict";

type CookieHeader = Readonly<Record<string, string>>;

/** The id as it was shown, whatever it is worth; null without one. */
export function readSessionCookie({ cookie }: RequestHeaders): string | null {
  return readCookie(cookie, SESSION_COOKIE);
}

/** To be sent again while it is used: the browser lets go of it when the session would end without being used. */
export function setSessionCookie(id: string): CookieHeader {
  return { "Set-Cookie": `${SESSION_COOKIE}=${id}; ${SESSION_COOKIE_ATTRIBUTES}; Max-Age=${LIFETIMES.idleSession}` };
}

export function clearSessionCookie(): CookieHeader {
  return { "Set-Cookie": `${SESSION_COOKIE}=; ${SESSION_COOKIE_ATTRIBUTES}; Max-Age=0` };
}
