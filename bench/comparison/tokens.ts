import { CALLER } from "../measuring/schema.ts";
import { signClaims } from "./sign-claims.ts";

/** The number of tokens exceeds any cache of verified tokens; the cache here has room for 10,000. */
const MANY = 30_000;

const sign = (claims: object) => signClaims({ iss: "bench", ...claims });

/** The key of the deployment, which Supabase's clients send with each request. */
export const API_KEY = sign({ role: "anon" });

export const TOKENS = {
  /** One token, the same for each request. */
  cached: callerTokens(1),
  /** Tokens that no cache still holds when they are used again. */
  fresh: callerTokens(MANY),
};

function callerTokens(count: number): readonly string[] {
  const claims = { sub: CALLER, name: "Bench", role: "authenticated" };
  return Array.from({ length: count }, (_, index) => sign({ ...claims, jti: String(index) }));
}
