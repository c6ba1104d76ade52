import { randomUUID } from "node:crypto";
import type pg from "pg";
import { type Config, withClaimAt } from "#config";
import { type AsOwner, inOwnerTransaction } from "#postgres/database";
import { ApiError } from "#runtime";
import type { ClaimsHook } from "./claims-hook.ts";
import { CLOCK_SKEW_SECONDS, type Claims } from "./identity/claims.ts";
import { CLIENT_INFO_SQL, type ClientInfo, clientInfoParameter } from "./identity/client-info.ts";
import { CredentialError } from "./identity/credential-error.ts";
import { LIFETIMES } from "./identity/lifetimes.ts";
import type { IssuingKeys } from "./identity/token-keys.ts";
import { signToken, TokenError, verifySignature } from "./identity/tokens.ts";
import { NO_SIGN_IN_PROOF, type OpenSignIn } from "./login.ts";
import { decryptText, digestOf, encryptText } from "./random-secrets.ts";

/** Both kinds of pairs belong to the same families: each kind can be exchanged for the other, and ends with it. */
export type TokenPairs<T extends TokenPair = TokenPair> = {
  /** Starts a family of refresh tokens. */
  readonly open: OpenSignIn<T>;
  /** Issues the next pair of a sign-in that has proved another factor by its access token; null if it has ended. */
  continueSignIn(client: pg.ClientBase, signIn: TokenSignIn, clientInfo: ClientInfo): Promise<T | null>;
  /**
   * Issues the next pair. Reusing a refresh token revokes its family, except for an immediate retry: with the same `retryKey`, or any retry
   * where the pairs have a reuse window.
   */
  refresh(refreshToken: string, clientInfo: ClientInfo, options?: RefreshOptions): Promise<T>;
  /** Revokes all refresh tokens of the user. */
  revoke(userId: string, clientInfo: ClientInfo): Promise<void>;
};

/** A sign-in by tokens, as the claims of its access token name it. */
export type TokenSignIn = { readonly userId: string; readonly sessionId: string | null };

type TokenRotation =
  | { readonly outcome: "rotated"; readonly claims: SessionClaims }
  | { readonly outcome: "repeated"; readonly sealed_answer: Buffer }
  | { readonly outcome: "reused" | "ended" };

const OPEN_TOKENS = `select auth.open_tokens($2, $3, ${LIFETIMES.refreshToken}, ${CLIENT_INFO_SQL}, $4, $5, $6) as claims`;
const CONTINUE_TOKENS = `select auth.continue_tokens($2, $3, $4, ${LIFETIMES.refreshToken}, ${CLIENT_INFO_SQL}) as claims`;
const ROTATE_TOKEN = `select * from auth.rotate_refresh_token($2, $3, ${LIFETIMES.refreshToken}, $4, ${CLIENT_INFO_SQL}, $5)`;
const STORE_RETRY_RESPONSE = `select auth.store_retry_response($1, $2, $3, ${LIFETIMES.refreshRetry})`;

type RefreshOptions = {
  readonly retryKey?: string | null;
  /** Throws if the user may not continue; the refresh token stays unused then. */
  readonly check?: CheckRefresh;
};
type CheckRefresh = (client: pg.ClientBase, userId: string) => Promise<void>;

/** The digest for pairs with a reuse window: every retry counts as one with the same key. No Idempotency-Key contains this character. */
const ANY_RETRY = digestOf("\0");

type TokenPairsOptions<T extends TokenPair> = {
  readonly asOwner: AsOwner;
  readonly issuer: TokenIssuer;
  readonly kind: PairKind<T>;
  /** Null if no function changes the claims. */
  readonly claimsHook?: ClaimsHook | null;
  /** True if a refresh token that is used again at once gets the same pair, without an Idempotency-Key. */
  readonly hasReuseWindow: boolean;
};

export function makeTokenPairs<T extends TokenPair>(options: TokenPairsOptions<T>): TokenPairs<T> {
  const { asOwner, issuer, hasReuseWindow } = options;
  return {
    async open(client, userId, clientInfo, proof = NO_SIGN_IN_PROOF) {
      const refreshToken = issuer.newRefreshToken(userId);
      const { rows } = await client.query<{ claims: SessionClaims }>(OPEN_TOKENS, [
        clientInfoParameter(clientInfo),
        userId,
        digestOf(refreshToken),
        proof.methods,
        proof.aal,
        proof.isComplete ?? false,
      ]);
      return issueTokens(client, options, rows[0]!.claims, { refreshToken, method: proof.methods[0] ?? "password" });
    },

    async continueSignIn(client, { userId, sessionId }, clientInfo) {
      const refreshToken = issuer.newRefreshToken(userId);
      const values = [clientInfoParameter(clientInfo), userId, sessionId, digestOf(refreshToken)];
      const { rows } = await client.query<{ claims: SessionClaims | null }>(CONTINUE_TOKENS, values);
      const { claims } = rows[0]!;
      return claims && issueTokens(client, options, claims, { refreshToken, method: claims.amr[0]?.method ?? "totp" });
    },

    async refresh(refreshToken, clientInfo, { retryKey, check = async () => {} } = {}) {
      const { userId } = issuer.readRefreshToken(refreshToken);
      const retryDigest = hasReuseWindow ? ANY_RETRY : retryKey ? digestOf(retryKey) : null;
      // Throw only after the transaction, so that a revocation is committed.
      const pair = await inOwnerTransaction(asOwner, (client) =>
        rotateToken(client, options, { userId, refreshToken, retryDigest, clientInfo, check }),
      );
      if (pair) return pair;
      throw new CredentialError(
        "refreshTokenUsed",
        "The refresh token was used before, or has expired; sign in again.",
        "JWT expired",
      );
    },

    async revoke(userId, clientInfo) {
      await inOwnerTransaction(asOwner, (client) =>
        client.query(`select auth.revoke_refresh_tokens($2, ${CLIENT_INFO_SQL})`, [
          clientInfoParameter(clientInfo),
          userId,
        ]),
      );
    },
  };
}

type TokenRefresh = {
  readonly userId: string;
  readonly refreshToken: string;
  readonly retryDigest: Buffer | null;
  readonly clientInfo: ClientInfo;
  readonly check: CheckRefresh;
};

/** Returns the next pair, or the previous response for a retry; null if the token was used before or has expired. */
async function rotateToken<T extends TokenPair>(
  client: pg.ClientBase,
  options: TokenPairsOptions<T>,
  { userId, refreshToken, retryDigest, clientInfo, check }: TokenRefresh,
): Promise<T | null> {
  const { issuer, hasReuseWindow } = options;
  const next = issuer.newRefreshToken(userId);
  const usedDigest = digestOf(refreshToken);
  const values = [clientInfoParameter(clientInfo), usedDigest, digestOf(next), retryDigest, hasReuseWindow];
  const { rows } = await client.query<TokenRotation>(ROTATE_TOKEN, values);
  const rotation = rows[0]!;
  if (rotation.outcome === "repeated") return JSON.parse(decryptText(rotation.sealed_answer, refreshToken));
  if (rotation.outcome !== "rotated") return null;
  await check(client, userId);
  const issued = { refreshToken: next, method: "token_refresh" };
  const pair = await issueTokens(client, options, rotation.claims, issued);
  if (retryDigest) {
    const encrypted = encryptText(JSON.stringify(pair), refreshToken);
    await client.query(STORE_RETRY_RESPONSE, [usedDigest, retryDigest, encrypted]);
  }
  return pair;
}

/** Signs the claims that CLAIMS_HOOK returns, in the transaction that stores the refresh token. */
async function issueTokens<T extends TokenPair>(
  client: pg.ClientBase,
  { issuer, kind, claimsHook }: TokenPairsOptions<T>,
  claims: SessionClaims,
  { refreshToken, method }: { readonly refreshToken: string; readonly method: string },
): Promise<T> {
  const signed = kind.claimsOf(claims);
  const event = { user_id: claims.id, authentication_method: method, claims: signed };
  return kind.pairOf(issuer.sign(claimsHook ? await claimsHook(client, event) : signed, refreshToken), claims);
}

/** The result of `auth.token_claims`. */
export type UserClaims = {
  readonly sub: string;
  readonly name: string;
  readonly role: string;
  readonly permissions: readonly string[];
};
type TokenClaims = UserClaims & {
  readonly iat: number;
  /** The id of the account, in a database whose subjects are uuids. */
  readonly user_id?: string;
  /** The level that the sign-in must reach before its tokens act outside /auth/v1; missing if it has. */
  readonly required_aal?: string;
  readonly session_id?: string;
};
/** The result of `auth.session_claims`. */
export type SessionClaims = TokenClaims & {
  /** The uuid of the account. */
  readonly id: string;
  readonly session_id: string;
  /** The methods by which the user signed in, the latest first. */
  readonly amr: readonly { readonly method: string }[];
};

export type TokenPair = {
  readonly accessToken: string;
  readonly refreshToken: string;
  /** The lifetime of the access token, in seconds. */
  readonly expiresIn: number;
  readonly tokenType: "Bearer";
};

/** A pair for clients of Supabase Auth. */
export type SessionTokens = TokenPair & { readonly userId: string; readonly sessionId: string };

export type AccessClaims = Readonly<Record<string, unknown>>;

/** The differences between the two kinds of pairs. */
type PairKind<T extends TokenPair, C extends TokenClaims = SessionClaims> = {
  /** The claims of the access token. */
  readonly claimsOf: (claims: C) => AccessClaims;
  readonly pairOf: (pair: TokenPair, claims: C) => T;
};

export type TokenIssuer = {
  newRefreshToken(userId: string): string;
  readonly pairs: PairKind<TokenPair, TokenClaims>;
  /** The access token has all claims that Supabase Auth signs. */
  readonly sessionTokens: PairKind<SessionTokens>;
  /** The type is that of the token's header; the default is `JWT`. */
  signAccess(claims: AccessClaims, type?: string): string;
  sign(claims: AccessClaims, refreshToken: string): TokenPair;
  issuePair(claims: TokenClaims, refreshToken: string): TokenPair;
  /** Verifies the signature and returns the user; the database decides whether the token is still valid. */
  readRefreshToken(token: string): { readonly userId: string };
};

type TokenIssuerOptions = Pick<Config, "jwtIssuer" | "jwtAudience" | "jwtRoleClaim" | "authSubject"> & {
  readonly keys: IssuingKeys;
};

/** Issues access and refresh tokens. */
export function makeTokenIssuer(options: TokenIssuerOptions): TokenIssuer {
  const { keys, jwtIssuer, jwtAudience, jwtRoleClaim, authSubject: subjects } = options;
  const issuerClaims = { iss: jwtIssuer, ...(jwtAudience !== null && { aud: jwtAudience }) };

  const withExpiry = (claims: TokenClaims) => ({ ...claims, exp: claims.iat + LIFETIMES.accessToken, ...issuerClaims });
  const userIdOf = ({ sub, user_id }: TokenClaims) => user_id ?? sub;
  const subjectOf = (claims: SessionClaims) => {
    if (subjects === null) return {};
    return subjects === "id" ? { sub: userIdOf(claims) } : { sub: claims.id, user_id: userIdOf(claims) };
  };

  const pairs: TokenIssuer["pairs"] = {
    claimsOf: ({ sub, user_id, name, role, permissions, iat, required_aal, session_id: sid }) => {
      const optional = { ...(user_id && { user_id }), ...(required_aal && { required_aal }) };
      return { ...withExpiry({ sub, ...optional, name, role, permissions, iat }), ...(sid && { sid }) };
    },
    pairOf: (pair) => pair,
  };
  const sessionTokens: TokenIssuer["sessionTokens"] = {
    claimsOf: (all) => {
      const { id: _id, ...claims } = all;
      return withExpiry(Object.assign({ aud: "authenticated" }, claims, subjectOf(all)));
    },
    pairOf: (pair, claims) => ({ ...pair, userId: userIdOf(claims), sessionId: claims.session_id }),
  };
  // Also sets the claim that this deployment reads the role from (PGRST_JWT_ROLE_CLAIM_KEY).
  const signAccess = (claims: AccessClaims, type = "JWT") =>
    signToken(withClaimAt(claims, jwtRoleClaim, String(claims.role)), keys, { type });
  const sign: TokenIssuer["sign"] = (claims, refreshToken) => ({
    accessToken: signAccess(claims),
    refreshToken,
    expiresIn: LIFETIMES.accessToken,
    tokenType: "Bearer",
  });

  return {
    newRefreshToken(userId) {
      const now = Math.floor(Date.now() / 1000);
      const claims = { sub: userId, type: "refresh", jti: randomUUID(), iat: now, exp: now + LIFETIMES.refreshToken };
      return signToken({ ...claims, ...issuerClaims }, keys);
    },
    pairs,
    sessionTokens,
    signAccess,
    sign,
    issuePair: (claims, refreshToken) => sign(pairs.claimsOf(claims), refreshToken),
    readRefreshToken(token) {
      const { sub, type } = verifyRefreshToken(token, keys);
      if (type !== "refresh" || typeof sub !== "string") {
        throw new ApiError("invalid", "VALIDATION_ERROR", "This token is not a refresh token.", {
          details: [{ field: "refreshToken", message: "Send the refreshToken of the pair." }],
        });
      }
      return { userId: sub };
    },
  };
}

function verifyRefreshToken(token: string, keys: IssuingKeys): Claims {
  try {
    return verifySignature(token, keys, { clockTolerance: CLOCK_SKEW_SECONDS });
  } catch (error) {
    if (error instanceof TokenError && error.isExpired) {
      throw new CredentialError("refreshTokenExpired", "The refresh token has expired; sign in again.", "JWT expired", {
        cause: error,
      });
    }
    throw new CredentialError(
      "refreshTokenInvalid",
      "This is not a refresh token of this service.",
      "This is not a refresh token",
      {
        cause: error,
      },
    );
  }
}
