import { hash } from "node:crypto";
import { toJavaScriptNumber } from "#runtime/json";
import type { Logger } from "#runtime/log";
import { CLOCK_SKEW_SECONDS, type Claims } from "../identity/claims.ts";
import { RemoteKeySet } from "../identity/remote-key-set.ts";
import { readTokenAlgorithm, verifySignature } from "../identity/tokens.ts";
import { assertionInvalid, providerUnavailable } from "./federation-errors.ts";
import { type DiscoverConfiguration, toOpenIdIdentity } from "./oauth-protocol.ts";
import type { ExternalIdentity, Provider } from "./provider.ts";

/** An ID token that an application has received from a provider, for example by the provider's own button or SDK. */
export type SubmittedIdToken = {
  readonly idToken: string;
  /** The text whose SHA-256, in hexadecimal digits, is the claim `nonce`. */
  readonly nonce: string | null;
  /** Required if the token has the claim `at_hash`. */
  readonly accessToken: string | null;
};

export type ReadIdToken = (provider: Provider, submitted: SubmittedIdToken) => Promise<ExternalIdentity>;

/** Verifies ID tokens with the keys, the issuer and the client ids of the configured provider; the token chooses none of them. */
export function makeIdTokenReader(discover: DiscoverConfiguration, log: Pick<Logger, "warn" | "info">): ReadIdToken {
  const keySets = new Map<string, RemoteKeySet>();
  const keySetOf = async (provider: Provider): Promise<RemoteKeySet> => {
    const { jwks_uri: url } = (await discover(provider)).serverMetadata();
    if (url === undefined) throw providerUnavailable(new Error("It publishes no keys"));
    const allowsPrivateNetwork = provider.settings.private_network ?? false;
    const name = JSON.stringify([url, provider.issuer, allowsPrivateNetwork]);
    const known = keySets.get(name);
    if (known) return known;
    const keySet = new RemoteKeySet({ url, trustedUrl: provider.issuer, allowsPrivateNetwork, log });
    keySets.set(name, keySet);
    return keySet;
  };

  return async (provider, submitted) => {
    const keySet = await keySetOf(provider);
    const claims = await readVerifiedClaims(submitted.idToken, keySet);
    const fault = findFault(claims, provider, submitted);
    if (fault !== null) throw assertionInvalid(new Error(fault));
    return toOpenIdIdentity(claims as Claims & { sub: string }, claims, null);
  };
}

async function readVerifiedClaims(token: string, keySet: RemoteKeySet): Promise<Claims> {
  const read = () => {
    const keys = { signing: null, verifying: keySet.current() };
    return verifySignature(token, keys, { clockTolerance: CLOCK_SKEW_SECONDS });
  };
  try {
    return read();
  } catch (error) {
    if (!(await keySet.refetch()) && keySet.isLoaded) throw assertionInvalid(error);
  }
  if (!keySet.isLoaded) throw providerUnavailable(new Error("Its keys cannot be fetched"));
  try {
    return read();
  } catch (error) {
    throw assertionInvalid(error);
  }
}

/** Checks the claims (OpenID Connect Core §3.1.3.7). Null if the token is for this service. */
function findFault(claims: Claims, provider: Provider, submitted: SubmittedIdToken): string | null {
  const { iss, aud, azp, sub, exp, iat } = claims;
  const clientIds: readonly unknown[] = [provider.clientId, ...(provider.settings.client_ids ?? [])];
  const audiences: readonly unknown[] = Array.isArray(aud) ? aud : [aud];
  const issuedAt = toJavaScriptNumber(iat);
  if (iss !== provider.issuer) return "The issuer of the ID token is another one";
  if (!audiences.some((each) => clientIds.includes(each))) return "The ID token is for another client";
  // If there is one audience, `azp` may be the provider's id of a mobile application.
  if (audiences.length > 1 && !clientIds.includes(azp ?? null)) {
    return "The ID token was issued to another client";
  }
  if (typeof sub !== "string") return "The ID token has no subject";
  if (toJavaScriptNumber(exp) === null || issuedAt === null) return "The ID token has no times";
  if (issuedAt > Date.now() / 1000 + CLOCK_SKEW_SECONDS) return "The ID token was issued in the future";
  return findNonceFault(claims, submitted) ?? findAccessTokenFault(claims, submitted);
}

function findNonceFault({ nonce: expected }: Claims, { nonce }: SubmittedIdToken): string | null {
  if (expected === undefined && nonce === null) return null;
  return nonce !== null && expected === hash("sha256", nonce, "hex") ? null : "The nonce is another one";
}

/** `at_hash` is the left half of the access token's hash, by the hash function of the signature. */
function findAccessTokenFault(
  { at_hash: expected }: Claims,
  { accessToken, idToken }: SubmittedIdToken,
): string | null {
  if (expected === undefined) return null;
  const bits = /(256|384|512)$/.exec(readTokenAlgorithm(idToken) ?? "")?.[1] ?? "512";
  const digest = accessToken === null ? null : hash(`sha${bits}`, accessToken, "buffer");
  const half = digest?.subarray(0, digest.length / 2).toString("base64url");
  return half === expected ? null : "The access token is missing or another one";
}
