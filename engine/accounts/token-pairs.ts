import { randomUUID } from "node:crypto";
import type pg from "pg";
import { withClaimAt } from "../config/claim-path.ts";
import type { Config } from "../config/config.ts";
import { type AsOwner, inOwnerTransaction } from "../database/owner-pool.ts";
import { ApiError } from "../errors.ts";
import { CLOCK_SKEW_SECONDS, type Claims } from "../identity/claims.ts";
import { CLIENT_INFO_SQL, type ClientInfo, clientInfoParameter } from "../identity/client-info.ts";
import type { IssuingKeys } from "../identity/token-keys.ts";
import { signToken, TokenError, verifySignature } from "../identity/tokens.ts";
import { unauthorized } from "../identity/unauthorized.ts";
import { LIFETIMES } from "./lifetimes.ts";
import type { OpenSignIn } from "./login.ts";
import { decryptText, digestOf, encryptText } from "./random-secrets.ts";

export type TokenPairs = {
  /** Starts a family of refresh tokens. */
  readonly open: OpenSignIn<TokenPair>;
  /** Issues the next pair. Reusing a refresh token revokes its family, except for an immediate retry with the same `retryKey`. */
  refresh(
    refreshToken: string,
    clientInfo: ClientInfo,
    options?: { readonly retryKey?: string | null },
  ): Promise<TokenPair>;
  /** Revokes all refresh tokens of the user. */
  revoke(userId: string, clientInfo: ClientInfo): Promise<void>;
};

type TokenRotation =
  | { readonly outcome: "rotated"; readonly claims: TokenClaims }
  | { readonly outcome: "repeated"; readonly sealed_answer: Buffer }
  | { readonly outcome: "reused" | "ended" };

const OPEN_TOKENS = `select auth.open_tokens($2, $3, ${LIFETIMES.refreshToken}, ${CLIENT_INFO_SQL}) as claims`;
const ROTATE_TOKEN = `select * from auth.rotate_refresh_token($2, $3, ${LIFETIMES.refreshToken}, $4, ${CLIENT_INFO_SQL})`;
const STORE_RETRY_RESPONSE = `select auth.store_retry_response($1, $2, $3, ${LIFETIMES.refreshRetry})`;

export function makeTokenPairs(asOwner: AsOwner, issuer: TokenIssuer): TokenPairs {
  return {
    async open(client, userId, clientInfo) {
      const refreshToken = issuer.newRefreshToken(userId);
      const { rows } = await client.query<{ claims: TokenClaims }>(OPEN_TOKENS, [
        clientInfoParameter(clientInfo),
        userId,
        digestOf(refreshToken),
      ]);
      return issuer.issuePair(rows[0]!.claims, refreshToken);
    },

    async refresh(refreshToken, clientInfo, { retryKey } = {}) {
      const { userId } = issuer.readRefreshToken(refreshToken);
      const retryDigest = retryKey ? digestOf(retryKey) : null;
      // Throw only after the transaction, so that a revocation is committed.
      const pair = await inOwnerTransaction(asOwner, (client) =>
        rotateToken(client, issuer, { userId, refreshToken, retryDigest, clientInfo }),
      );
      if (pair) return pair;
      throw unauthorized(
        "INVALID_TOKEN",
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
};

/** Returns the next pair, or the previous response for a retry; null if the token was used before or has expired. */
async function rotateToken(
  client: pg.ClientBase,
  issuer: TokenIssuer,
  { userId, refreshToken, retryDigest, clientInfo }: TokenRefresh,
): Promise<TokenPair | null> {
  const next = issuer.newRefreshToken(userId);
  const usedDigest = digestOf(refreshToken);
  const values = [clientInfoParameter(clientInfo), usedDigest, digestOf(next), retryDigest];
  const { rows } = await client.query<TokenRotation>(ROTATE_TOKEN, values);
  const rotation = rows[0]!;
  if (rotation.outcome === "repeated") return JSON.parse(decryptText(rotation.sealed_answer, refreshToken));
  if (rotation.outcome !== "rotated") return null;
  const pair = issuer.issuePair(rotation.claims, next);
  if (retryDigest) {
    const encrypted = encryptText(JSON.stringify(pair), refreshToken);
    await client.query(STORE_RETRY_RESPONSE, [usedDigest, retryDigest, encrypted]);
  }
  return pair;
}

/** The result of `auth.token_claims`. */
export type UserClaims = {
  readonly sub: string;
  readonly name: string;
  readonly role: string;
  readonly permissions: readonly string[];
};
type TokenClaims = UserClaims & { readonly iat: number };

export type TokenPair = {
  readonly accessToken: string;
  readonly refreshToken: string;
  /** The lifetime of the access token, in seconds. */
  readonly expiresIn: number;
  readonly tokenType: "Bearer";
};

type TokenIssuer = {
  newRefreshToken(userId: string): string;
  issuePair(claims: TokenClaims, refreshToken: string): TokenPair;
  /** Verifies the signature and returns the user; the database decides whether the token is still valid. */
  readRefreshToken(token: string): { readonly userId: string };
};

type TokenIssuerOptions = Pick<Config, "jwtIssuer" | "jwtAudience" | "jwtRoleClaim"> & { readonly keys: IssuingKeys };

/** Issues access and refresh tokens. */
export function makeTokenIssuer({ keys, jwtIssuer, jwtAudience, jwtRoleClaim }: TokenIssuerOptions): TokenIssuer {
  const issuerClaims = { iss: jwtIssuer, ...(jwtAudience !== null && { aud: jwtAudience }) };
  return {
    newRefreshToken(userId) {
      const now = Math.floor(Date.now() / 1000);
      const claims = { sub: userId, type: "refresh", jti: randomUUID(), iat: now, exp: now + LIFETIMES.refreshToken };
      return signToken({ ...claims, ...issuerClaims }, keys);
    },
    issuePair({ sub, name, role, permissions, iat }, refreshToken) {
      const exp = iat + LIFETIMES.accessToken;
      const claims = { sub, name, role, permissions, iat, exp, ...issuerClaims };
      return {
        // Also sets the claim that this deployment reads the role from (PGRST_JWT_ROLE_CLAIM_KEY).
        accessToken: signToken(withClaimAt(claims, jwtRoleClaim, role), keys),
        refreshToken,
        expiresIn: LIFETIMES.accessToken,
        tokenType: "Bearer",
      };
    },
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
      throw unauthorized("TOKEN_EXPIRED", "The refresh token has expired; sign in again.", "JWT expired", {
        cause: error,
      });
    }
    throw unauthorized("INVALID_TOKEN", "This is not a refresh token of this service.", "This is not a refresh token", {
      cause: error,
    });
  }
}
