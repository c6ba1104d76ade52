import { randomUUID } from "node:crypto";
import jwt from "jsonwebtoken";
import type { TokenKeys } from "../caller/keys.ts";
import { signToken, verifySignature } from "../caller/tokens.ts";
import { unauthorized } from "../caller/unauthorized.ts";
import { withClaimAt } from "../claim-path.ts";
import type { Config } from "../config/config.ts";
import { ApiError } from "../errors.ts";
import { LIFETIMES } from "./lifetimes.ts";

/** What `auth.token_claims` says of a user. */
export type UserClaims = {
  readonly sub: string;
  readonly name: string;
  readonly role: string;
  readonly permissions: readonly string[];
};
export type TokenClaims = UserClaims & { readonly iat: number };

export type TokenPair = {
  readonly accessToken: string;
  readonly refreshToken: string;
  /** Seconds that the access token lasts. */
  readonly expiresIn: number;
  readonly tokenType: "Bearer";
};

export type TokenMint = {
  newRefreshToken(userId: string): string;
  pairOf(claims: TokenClaims, refreshToken: string): TokenPair;
  /** Whose refresh token it is; whether it is still good is for the database to say. */
  readRefreshToken(token: string): { readonly userId: string };
};

type MintOptions = Pick<Config, "jwtIssuer" | "jwtAudience" | "jwtRoleClaim"> & { readonly keys: TokenKeys };

/** How far the clocks of two gateways may be apart, in seconds. */
const SKEW = 30;

/** Makes the tokens of this deployment. */
export function makeTokenMint({ keys, jwtIssuer, jwtAudience, jwtRoleClaim }: MintOptions): TokenMint {
  const forUs = { iss: jwtIssuer, ...(jwtAudience !== null && { aud: jwtAudience }) };
  return {
    newRefreshToken(userId) {
      const now = Math.floor(Date.now() / 1000);
      const claims = { sub: userId, type: "refresh", jti: randomUUID(), iat: now, exp: now + LIFETIMES.refreshToken };
      return signToken({ ...claims, ...forUs }, keys);
    },
    pairOf({ sub, name, role, permissions, iat }, refreshToken) {
      const exp = iat + LIFETIMES.accessToken;
      const claims = { sub, name, role, permissions, iat, exp, ...forUs };
      return {
        // Also where this deployment looks for the role (PGRST_JWT_ROLE_CLAIM_KEY).
        accessToken: signToken(withClaimAt(claims, jwtRoleClaim, role), keys),
        refreshToken,
        expiresIn: LIFETIMES.accessToken,
        tokenType: "Bearer",
      };
    },
    readRefreshToken(token) {
      const { sub, type } = verify(token, keys);
      if (type !== "refresh" || typeof sub !== "string") {
        throw new ApiError(400, "VALIDATION_ERROR", "This is a token, but no refresh token.", {
          details: [{ field: "refreshToken", message: "Send the refreshToken of the pair." }],
        });
      }
      return { userId: sub };
    },
  };
}

function verify(token: string, keys: TokenKeys): jwt.JwtPayload {
  try {
    const claims = verifySignature(token, keys, { clockTolerance: SKEW });
    return typeof claims === "string" ? {} : claims;
  } catch (error) {
    if (error instanceof jwt.TokenExpiredError) {
      throw unauthorized("TOKEN_EXPIRED", "The refresh token has expired; sign in again.", "JWT expired", {
        cause: error,
      });
    }
    throw unauthorized("INVALID_TOKEN", "This is no refresh token of this service.", "This is no refresh token", {
      cause: error,
    });
  }
}
