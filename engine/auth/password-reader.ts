import type { CredentialReader } from "../caller/caller.ts";
import { statedCaller } from "../caller/stated-caller.ts";
import type { Accounts } from "./accounts.ts";

/** Authenticates Basic credentials. Each request is a login attempt, throttled like any other. */
export function makePasswordReader({ login, readClaims }: Pick<Accounts, "login" | "readClaims">): CredentialReader {
  return async ({ login: shown }) => {
    if (!shown) return null;
    const { username, password, clientInfo } = shown;
    const claimsText = await login({ username, password }, clientInfo, readClaims);
    return statedCaller({ kind: "known", claimsText, expiresAt: null });
  };
}
