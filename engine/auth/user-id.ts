import type { Claims } from "../caller/claims.ts";
import { isExactNumber, textOfValue } from "../exact-json.ts";
import { accountRequired } from "./auth-errors.ts";

/** The same as `auth.uid()`: null if the subject is not a user id. */
export function readUserId({ sub }: Claims): string | null {
  const text = ["string", "number"].includes(typeof sub) || isExactNumber(sub) ? textOfValue(sub) : "";
  return /^[1-9]\d{0,17}$/.test(text) ? text : null;
}

/** Throws if the caller is not a user. */
export function userIdOf(claims: Claims): string {
  const id = readUserId(claims);
  if (id === null) throw accountRequired();
  return id;
}
