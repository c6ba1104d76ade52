import { LIFETIMES } from "../auth/lifetimes.ts";
import { readCookie } from "./cookies.ts";
import type { RequestHeaders } from "./occasion.ts";

const NAME = "SESSION";
const ATTRIBUTES = "Path=/; HttpOnly; Secure; SameSite=Strict";

type Headers = Readonly<Record<string, string>>;

/** The id as it was shown, whatever it is worth; null without one. */
export function readSessionCookie({ cookie }: RequestHeaders): string | null {
  return readCookie(cookie, NAME);
}

/** To be sent again while it is used: the browser lets go of it when the session would end without being used. */
export function keepSession(id: string): Headers {
  return { "Set-Cookie": `${NAME}=${id}; ${ATTRIBUTES}; Max-Age=${LIFETIMES.idleSession}` };
}

export function forgetSession(): Headers {
  return { "Set-Cookie": `${NAME}=; ${ATTRIBUTES}; Max-Age=0` };
}
