import type { Claims } from "../caller/claims.ts";
import { isExactNumber, textOfValue } from "../exact-json.ts";
import { noAccount } from "./refusals.ts";

/** As `auth.uid()` reads it; null for a subject that is no id of ours. */
export function readUserId({ sub }: Claims): string | null {
  const text = ["string", "number"].includes(typeof sub) || isExactNumber(sub) ? textOfValue(sub) : "";
  return /^[1-9]\d{0,17}$/.test(text) ? text : null;
}

/** For what is done by users alone. */
export function userIdOf(claims: Claims): string {
  const id = readUserId(claims);
  if (id === null) throw noAccount();
  return id;
}
