import { makeTokenKeys, signToken } from "#accounts/identity";

export const JWT_SECRET = "a secret of the benchmark, known to all servers";

const keys = makeTokenKeys({ jwtSecret: JWT_SECRET, jwtSecretIsBase64: false, jwtPrivateKey: null });

/** Signs a token with these claims that outlasts any benchmark. */
export function signClaims(claims: object): string {
  return signToken({ exp: 1_999_999_999, ...claims }, keys, { timestamp: false });
}
