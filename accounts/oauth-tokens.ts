import { randomUUID } from "node:crypto";
import type pg from "pg";
import type { Config } from "#config";
import type { ClaimsHook } from "./claims-hook.ts";
import { resourceAddress } from "./identity/oauth-access.ts";
import type { IssuingKeys } from "./identity/token-keys.ts";
import { signToken } from "./identity/tokens.ts";
import type { AccessClaims, SessionClaims, TokenIssuer } from "./token-pairs.ts";

/** The grant of a user to an application. */
export type OAuthGrant = {
  readonly id: string;
  readonly clientId: string;
  readonly scopes: readonly string[];
  /** The address of the resource (RFC 8707). */
  readonly resource: string;
  readonly expiresAt: Date;
};

type IdTokenOptions = { readonly clientId: string; readonly nonce: string | null; readonly claims: AccessClaims };

/** Tokens for applications that act for users. Their refresh tokens are no JWTs, so that no other interface exchanges them. */
export type OAuthTokens = {
  /** Returns the claim `iss`, the public address. */
  issuer(): string;
  /** True if others can verify our tokens, because the key is no secret. Otherwise there is no OpenID Connect. */
  readonly canBeVerified: boolean;
  /** The algorithm of signatures. */
  readonly algorithm: string;
  /** Signs an access token (RFC 9068) with the claims of the user's own tokens. It can be used at its resource only. */
  signAccess(
    client: pg.ClientBase,
    claims: SessionClaims,
    grant: OAuthGrant,
  ): Promise<{ readonly accessToken: string; readonly expiresIn: number; readonly subject: string }>;
  /** Signs an ID token (OpenID Connect), which is refused as an access token. */
  signIdToken(options: IdTokenOptions): string;
};

type OAuthTokensOptions = {
  readonly keys: IssuingKeys;
  readonly tokens: Pick<TokenIssuer, "sessionTokens" | "signAccess">;
  readonly claimsHook: ClaimsHook | null;
  readonly siteUrl: () => string;
  readonly config: Pick<Config, "jwtAudience" | "oauthAccessSeconds">;
};

export function makeOAuthTokens({ keys, tokens, claimsHook, siteUrl, config }: OAuthTokensOptions): OAuthTokens {
  const { jwtAudience, oauthAccessSeconds } = config;
  const issuer = () => resourceAddress(siteUrl(), "");
  return {
    issuer,
    canBeVerified: keys.signing.key.type === "private",
    algorithm: keys.signing.algorithm,

    async signAccess(client, claims, grant) {
      const own = tokens.sessionTokens.claimsOf(claims);
      const event = { user_id: claims.id, authentication_method: "oauth_provider/authorization_code", claims: own };
      const lifetime = Math.floor(grant.expiresAt.getTime() / 1000) - claims.iat;
      const expiresIn = Math.max(1, Math.min(oauthAccessSeconds, lifetime));
      // These claims follow the hook, so that it cannot widen the grant.
      const all = {
        ...(claimsHook ? await claimsHook(client, event) : own),
        iss: issuer(),
        aud: jwtAudience === null ? grant.resource : [grant.resource, jwtAudience],
        exp: claims.iat + expiresIn,
        jti: randomUUID(),
        client_id: grant.clientId,
        scope: grant.scopes.join(" "),
        oauth_grant_id: grant.id,
      };
      return { accessToken: tokens.signAccess(all, "at+jwt"), expiresIn, subject: String(own.sub) };
    },

    signIdToken({ clientId, nonce, claims }) {
      const now = Math.floor(Date.now() / 1000);
      const own = { iss: issuer(), aud: clientId, iat: now, exp: now + oauthAccessSeconds, type: "id" };
      return signToken({ ...claims, ...own, ...(nonce !== null && { nonce }) }, keys);
    },
  };
}
