import { isExactNumber, toAddressText } from "#runtime/json";
import { accountRequired } from "./auth-errors.ts";
import type { Claims } from "./identity/claims.ts";

/** Returns the id of the account, as `auth.uid()` finds it; null if neither the subject nor the claim `user_id` is one. */
export function readUserId({ sub, user_id: userId }: Claims): string | null {
  return toUserId(sub) ?? toUserId(userId);
}

function toUserId(claim: unknown): string | null {
  const text = ["string", "number"].includes(typeof claim) || isExactNumber(claim) ? toAddressText(claim) : "";
  return /^[1-9]\d{0,17}$/.test(text) ? text : null;
}

/** Returns the id of the user; throws if the caller is not a user. */
export function userIdOf(claims: Claims): string {
  const id = readUserId(claims);
  if (id === null) throw accountRequired();
  return id;
}
