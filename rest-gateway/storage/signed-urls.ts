import { canIssueTokens, signToken, TokenError, type TokenKeys, verifySignature } from "#accounts/identity";
import type { ObjectAddress } from "./object-rows.ts";
import { storageError } from "./storage-error.ts";

/** What a signed address is for: none can be used as another, and none is a token of the API. */
type Purpose = "storage:download" | "storage:upload" | "storage:image";

type SignedClaims = {
  readonly url: string;
  readonly exp: number;
  readonly owner?: string | null;
  readonly upsert?: boolean;
  readonly transformations?: string;
};

const LONGEST_SECONDS = 10 * 365 * 86_400;

export function signAddress(
  purpose: Purpose,
  { bucket, name }: ObjectAddress,
  seconds: number,
  keys: TokenKeys,
  about: Omit<SignedClaims, "url" | "exp"> = {},
): string {
  if (!canIssueTokens(keys)) {
    throw storageError("FeatureNotEnabled", "This deployment has no key to sign addresses with.", {
      hint: "Set JWT_PRIVATE_KEY or JWT_SECRET.",
    });
  }
  const exp = Math.floor(Date.now() / 1000) + Math.min(seconds, LONGEST_SECONDS);
  return signToken({ ...about, url: `${bucket}/${name}`, aud: purpose, exp }, keys);
}

/** Throws unless we have signed this address for this purpose, and its time has not passed. */
export function checkSignature(
  purpose: Purpose,
  { bucket, name }: ObjectAddress,
  token: string | null,
  keys: TokenKeys,
): SignedClaims {
  if (!token) throw storageError("InvalidRequest", "querystring must have required property 'token'");
  const claims = verify(token, keys);
  if (claims.aud !== purpose || typeof claims.exp !== "number") throw storageError("InvalidJWT");
  if (claims.url !== `${bucket}/${name}`) throw storageError("InvalidSignature", "The url do not match the signature");
  return claims as unknown as SignedClaims;
}

function verify(token: string, keys: TokenKeys): Readonly<Record<string, unknown>> {
  try {
    return verifySignature(token, keys);
  } catch (error) {
    const isExpired = error instanceof TokenError && error.isExpired;
    throw storageError("InvalidJWT", isExpired ? '"exp" claim timestamp check failed' : "Invalid JWT", {
      cause: error,
    });
  }
}
