import { LIFETIMES } from "../../../engine/auth/lifetimes.ts";
import { readCookie } from "../../../engine/caller/cookies.ts";
import type { RequestHeaders } from "../../../engine/caller/occasion.ts";

const NAME = "SIGNING_IN";
const ATTRIBUTES = "Path=/auth/sign-in; HttpOnly; Secure; SameSite=Strict";

/** Who has shown the password and is asked for a code. */
export function readPending({ cookie }: RequestHeaders): string | null {
  return readCookie(cookie, NAME);
}

export function keepPending(pending: string): string {
  return `${NAME}=${pending}; ${ATTRIBUTES}; Max-Age=${LIFETIMES.pendingSignIn}`;
}

export function forgetPending(): string {
  return `${NAME}=; ${ATTRIBUTES}; Max-Age=0`;
}
