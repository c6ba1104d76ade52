import type { Signers } from "#accounts";
import {
  type Caller,
  canIssueTokens,
  signToken,
  TokenError,
  type TokenKeys,
  verifySignature,
} from "#accounts/identity";
import { ApiError } from "#runtime";
import { isJsonObject } from "#runtime/json";
import { isSameObject, type ObjectAddress, type ObjectRow, type ObjectVersion } from "./object-rows.ts";
import { storageError } from "./storage-error.ts";
import { addressOf, type StorageRequest } from "./storage-request.ts";

/** The purpose of a signed address: none can be used for another one, and none is a token of the API. */
type Purpose = "storage:download" | "storage:upload" | "storage:image";

/** The dependencies of signed addresses. */
type SigningServices = { readonly keys: TokenKeys; readonly signers: Signers };

type SignedClaims = {
  readonly url: string;
  readonly exp: number;
  readonly signer: string;
  /** The object at the time of signing; null if the name was free. */
  readonly object: ObjectVersion | null;
  readonly transformations?: string;
};

/** A valid signature, with the current state of the signer. */
export type VerifiedSignature = SignedClaims & { readonly caller: Caller };

const LONGEST_SECONDS = 10 * 365 * 86_400;

/** Signs addresses as one caller. */
export async function openSigning(caller: Caller, { keys, signers }: SigningServices) {
  if (!canIssueTokens(keys)) {
    throw storageError("FeatureNotEnabled", "This deployment has no key to sign addresses with.", {
      hint: "Set JWT_PRIVATE_KEY or JWT_SECRET.",
    });
  }
  const signer = await signers.seal(caller);
  return (
    purpose: Purpose,
    { bucket, name }: ObjectAddress,
    seconds: number,
    about: Pick<SignedClaims, "object" | "transformations">,
  ): string => {
    const exp = Math.floor(Date.now() / 1000) + Math.min(seconds, LONGEST_SECONDS);
    return signToken({ ...about, signer, url: `${bucket}/${name}`, aud: purpose, exp }, keys);
  };
}

/** Throws unless we have signed the token for this purpose, it has not expired, and its signer is still valid. */
export async function verifySignedToken(
  purpose: Purpose,
  token: string | null,
  { keys, signers }: SigningServices,
): Promise<VerifiedSignature> {
  if (!token) throw storageError("InvalidRequest", "querystring must have required property 'token'");
  const claims = verify(token, keys);
  if (claims.aud !== purpose || !hasSigner(claims)) throw storageError("InvalidJWT");
  const caller = await openSigner(claims.signer, signers);
  if (caller === null) throw storageError("InvalidJWT");
  return { ...claims, caller };
}

/** Returns true if the address names its signer. Those of version 0.2.0 do not, and are refused. */
function hasSigner(claims: Readonly<Record<string, unknown>>): claims is SignedClaims {
  const { exp, signer, object } = claims;
  return typeof exp === "number" && typeof signer === "string" && (object === null || isJsonObject(object));
}

async function openSigner(signer: string, signers: Signers): Promise<Caller | null> {
  try {
    return await signers.open(signer);
  } catch (error) {
    if (!(error instanceof ApiError) || error.kind !== "unauthenticated") throw error;
    throw storageError("InvalidJWT", error.message, { cause: error });
  }
}

/** Throws if the signature belongs to another address. */
export function requireAddress({ url }: Pick<SignedClaims, "url">, { bucket, name }: ObjectAddress): void {
  if (url !== `${bucket}/${name}`) throw storageError("InvalidSignature", "The url do not match the signature");
}

/** Finds the object of a signed address, if it is still the same version and the signer may read it. */
export async function findSigned(
  purpose: Purpose,
  request: StorageRequest,
  services: SigningServices,
): Promise<{ readonly row: ObjectRow; readonly signature: VerifiedSignature }> {
  const address = addressOf(request);
  const signature = await verifySignedToken(purpose, request.query.get("token"), services);
  requireAddress(signature, address);
  const row = await request.rowsOf(signature.caller).findCurrent(address);
  if (!isSameObject(row, signature.object)) throw storageError("NoSuchKey");
  return { row, signature };
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
