import { CALLER } from "../measuring/schema.ts";
import { signClaims } from "./sign-claims.ts";

/** More than any cache of verified tokens holds; the one here has room for 10,000. */
const MANY = 30_000;

const sign = (claims: object) => signClaims({ iss: "bench", ...claims });

/** What Supabase's clients send along as the deployment's key. */
export const API_KEY = sign({ role: "anon" });

export const TOKENS = {
  /** The same one each time. */
  cached: callerTokens(1),
  /** Each one for the first time, as far as anybody remembers. */
  fresh: callerTokens(MANY),
};

function callerTokens(count: number): readonly string[] {
  const claims = { sub: CALLER, name: "Bench", role: "authenticated" };
  return Array.from({ length: count }, (_, index) => sign({ ...claims, jti: String(index) }));
}
