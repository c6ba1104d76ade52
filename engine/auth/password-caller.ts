import type { CredentialReader } from "../caller/caller.ts";
import { statedCaller } from "../caller/stated-caller.ts";
import type { Accounts } from "./accounts.ts";

/** Reads the name and the password that a program shows with each request: a sign-in each time, throttled like any other. */
export function readPasswords({ login, identity }: Pick<Accounts, "login" | "identity">): CredentialReader {
  return async ({ login: shown }) => {
    if (!shown) return null;
    const { username, password, sender } = shown;
    const claimsText = await login({ username, password }, sender, identity);
    return statedCaller({ kind: "known", claimsText, expiresAt: null });
  };
}
