import { parseJsonExactly } from "#runtime/json";
import { signClaims } from "../comparison/sign-claims.ts";

/** The public API key. */
export const ANON_KEY = signClaims({ role: "anon" });

/** The token of a signed-in user. */
export const HONEST_TOKEN = signClaims({ sub: "1", role: "authenticated" });

/** Returns a token whose claim is a number with all its digits. */
export function tenantToken(tenant: string): string {
  return signClaims({ role: "authenticated", tenant: parseJsonExactly(tenant) });
}

export const JSON_TYPE = { "Content-Type": "application/json" };

export function credentials(token: string): Readonly<Record<string, string>> {
  return { apikey: ANON_KEY, Authorization: `Bearer ${token}` };
}
