import { makeTokenKeys } from "../../engine/caller/keys.ts";
import { signToken } from "../../engine/caller/tokens.ts";
import { CALLER } from "../schema.ts";

export const JWT_SECRET = "a secret of the benchmark, known to all contestants";

/** More than any cache of verified tokens holds; the one here has room for 10,000. */
const MANY = 30_000;

const keys = makeTokenKeys({ jwtSecret: JWT_SECRET, jwtSecretIsBase64: false, jwtPrivateKey: null });
const sign = (claims: object) => signToken({ iss: "bench", exp: 1_999_999_999, ...claims }, keys, { timestamp: false });

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
