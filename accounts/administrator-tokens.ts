import type { Config } from "#config";
import { type AsOwner, inOwnerTransaction } from "#postgres/database";
import { makeClaimsHook } from "./claims-hook.ts";
import type { Claims } from "./identity/claims.ts";
import { LIFETIMES } from "./identity/lifetimes.ts";
import type { IssuingKeys } from "./identity/token-keys.ts";
import { type AccessClaims, makeTokenIssuer, type SessionClaims } from "./token-pairs.ts";
import { readUserId } from "./user-id.ts";
import { SESSION_CLAIM } from "./validate-claims.ts";

export type IssuedToken = { readonly accessToken: string; readonly claims: AccessClaims };

/** Tokens for some minutes, which belong to no refresh token. */
type AdministratorTokens = {
  /** Issues a token for the user of a session cookie: the token ends with the session. Null if there is no such account. */
  forUser(userId: string, sessionDigest: unknown): Promise<IssuedToken | null>;
  /** Issues a token for callers on this machine: it names a role and no user. */
  forRole(role: string): IssuedToken;
  /** Issues a token for callers on this machine: it names the user, and a role that need not be the user's. Null if there is no such account. */
  forUserInRole(userId: string, role: string): Promise<IssuedToken | null>;
  /** Issues a token with the claims that the user would have after signing in now. Null if there is no such account. */
  asUser(userId: string, actor: Claims): Promise<IssuedToken | null>;
  asRole(role: string, actor: Claims): IssuedToken;
};

/** The actor of the tokens that callers on this machine get without signing in. */
const LOCAL_OPERATOR = "operator";
const ACTOR_CLAIMS: ReadonlySet<string> = new Set([
  ...["user_id", "role", "iat", "session_id", "sid", "api_key"],
  SESSION_CLAIM,
]);

type AdministratorTokensOptions = {
  readonly asOwner: AsOwner;
  readonly keys: IssuingKeys;
  readonly config: Pick<Config, "jwtIssuer" | "jwtAudience" | "jwtRoleClaim" | "authSubject" | "claimsHook">;
};

/** The level of assurance is the one that the account's sign-ins must reach. */
const CLAIMS = `
  select auth.session_claims(account.user_id, null)
    || pg_catalog.jsonb_build_object('aal', case when auth.has_factor(account.user_id) then 'aal2' else 'aal1' end, 'amr', '[]'::pg_catalog.jsonb) as claims
  from auth.users as account where account.user_id = $1 and account.deleted_at is null`;

export function makeAdministratorTokens({ asOwner, keys, config }: AdministratorTokensOptions): AdministratorTokens {
  const issuer = makeTokenIssuer({ ...config, keys });
  const claimsHook = config.claimsHook === null ? null : makeClaimsHook(config.claimsHook);

  const issue = (claims: AccessClaims): IssuedToken => ({ accessToken: issuer.signAccess(claims), claims });

  const issueForUser = (userId: string, further: AccessClaims): Promise<IssuedToken | null> =>
    inOwnerTransaction(asOwner, async (client) => {
      const { rows } = await client.query<{ claims: SessionClaims }>(CLAIMS, [userId]);
      const found = rows[0]?.claims;
      if (!found) return null;
      const { session_id: _none, ...claims } = issuer.sessionTokens.claimsOf(found);
      const shortened = { ...claims, exp: found.iat + LIFETIMES.administratorToken };
      const event = { user_id: found.id, authentication_method: "token_refresh", claims: shortened };
      // The function of CLAIMS_HOOK must not remove the actor.
      return issue({ ...(claimsHook ? await claimsHook(client, event) : shortened), ...further });
    });

  const issueForRole = (role: string, further: AccessClaims): IssuedToken => {
    const iat = Math.floor(Date.now() / 1000);
    const { jwtIssuer: iss, jwtAudience: aud } = config;
    return issue({
      ...{ role, iss, iat, exp: iat + LIFETIMES.administratorToken },
      ...(aud !== null && { aud }),
      ...further,
    });
  };

  return {
    forUser: (userId, sessionDigest) => issueForUser(userId, sessionDigest ? { [SESSION_CLAIM]: sessionDigest } : {}),
    forRole: (role) => issueForRole(role, {}),
    forUserInRole: (userId, role) => issueForUser(userId, { role }),
    asUser: (userId, actor) => issueForUser(userId, { act: actorOf(actor) }),
    asRole: (role, actor) => issueForRole(role, { act: actorOf(actor) }),
  };
}

/** Returns the actor (RFC 8693, 4.1): the administrator, with the claims that limit the lifetime of its own token, session or key. */
function actorOf(claims: Claims): Claims {
  const sub = typeof claims.sub === "string" ? claims.sub : (readUserId(claims) ?? LOCAL_OPERATOR);
  return { sub, ...Object.fromEntries(Object.entries(claims).filter(([name]) => ACTOR_CLAIMS.has(name))) };
}
