import { randomUUID } from "node:crypto";
import jwt from "jsonwebtoken";
import type { TokenKeys } from "../caller/keys.ts";
import { signToken, verifySignature } from "../caller/tokens.ts";
import { unauthorized } from "../caller/unauthorized.ts";
import { withClaimAt } from "../claim-path.ts";
import type { Config } from "../config/config.ts";
import { ApiError } from "../errors.ts";
import { LIFETIMES } from "./lifetimes.ts";

/** The result of `auth.token_claims`. */
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
  /** The lifetime of the access token, in seconds. */
  readonly expiresIn: number;
  readonly tokenType: "Bearer";
};

export type TokenIssuer = {
  newRefreshToken(userId: string): string;
  issuePair(claims: TokenClaims, refreshToken: string): TokenPair;
  /** Verifies the signature and returns the user; the database decides whether the token is still valid. */
  readRefreshToken(token: string): { readonly userId: string };
};

type IssuerOptions = Pick<Config, "jwtIssuer" | "jwtAudience" | "jwtRoleClaim"> & { readonly keys: TokenKeys };

/** The accepted clock difference between gateways, in seconds. */
const CLOCK_TOLERANCE = 30;

/** Issues access and refresh tokens. */
export function makeTokenIssuer({ keys, jwtIssuer, jwtAudience, jwtRoleClaim }: IssuerOptions): TokenIssuer {
  const forUs = { iss: jwtIssuer, ...(jwtAudience !== null && { aud: jwtAudience }) };
  return {
    newRefreshToken(userId) {
      const now = Math.floor(Date.now() / 1000);
      const claims = { sub: userId, type: "refresh", jti: randomUUID(), iat: now, exp: now + LIFETIMES.refreshToken };
      return signToken({ ...claims, ...forUs }, keys);
    },
    issuePair({ sub, name, role, permissions, iat }, refreshToken) {
      const exp = iat + LIFETIMES.accessToken;
      const claims = { sub, name, role, permissions, iat, exp, ...forUs };
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
        throw new ApiError(400, "VALIDATION_ERROR", "This token is not a refresh token.", {
          details: [{ field: "refreshToken", message: "Send the refreshToken of the pair." }],
        });
      }
      return { userId: sub };
    },
  };
}

function verifyRefreshToken(token: string, keys: TokenKeys): jwt.JwtPayload {
  try {
    const claims = verifySignature(token, keys, { clockTolerance: CLOCK_TOLERANCE });
    return typeof claims === "string" ? {} : claims;
  } catch (error) {
    if (error instanceof jwt.TokenExpiredError) {
      throw unauthorized("TOKEN_EXPIRED", "The refresh token has expired; sign in again.", "JWT expired", {
        cause: error,
      });
    }
    throw unauthorized("INVALID_TOKEN", "This is not a refresh token of this service.", "This is not a refresh token", {
      cause: error,
    });
  }
}
