import { LIFETIMES } from "../../../engine/auth/lifetimes.ts";
import { readCookie } from "../../../engine/caller/cookies.ts";
import type { RequestHeaders } from "../../../engine/caller/occasion.ts";

const NAME = "SIGNING_IN";
const ATTRIBUTES = "Path=/auth/sign-in; HttpOnly; Secure; SameSite=Strict";

/** The pending login, between password and code. */
export function readPendingCookie({ cookie }: RequestHeaders): string | null {
  return readCookie(cookie, NAME);
}

export function setPendingCookie(pending: string): string {
  return `${NAME}=${pending}; ${ATTRIBUTES}; Max-Age=${LIFETIMES.pendingSignIn}`;
}

export function clearPendingCookie(): string {
  return `${NAME}=; ${ATTRIBUTES}; Max-Age=0`;
}
