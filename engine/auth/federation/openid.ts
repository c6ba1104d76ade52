import * as openid from "openid-client";
import { makeDiscovery } from "./discovery.ts";
import { throwAsApiError } from "./openid-errors.ts";
import type { ExternalIdentity, Provider, ProviderProtocol, ServiceUrls, SignOutHint } from "./provider.ts";
import { queryState } from "./query-state.ts";

type UserProfile = Readonly<Record<string, unknown>>;

const SCOPE = "openid profile email";

/** OpenID Connect: the code flow with PKCE, state and nonce. */
export function makeOpenIdProtocol() {
  const discover = makeDiscovery();
  return (provider: Provider, { callback, signedOut }: ServiceUrls): ProviderProtocol => ({
    async startSignIn(state) {
      const configuration = await discover(provider);
      const [nonce, codeVerifier] = [openid.randomNonce(), openid.randomPKCECodeVerifier()];
      const address = openid.buildAuthorizationUrl(configuration, {
        redirect_uri: callback,
        scope: provider.settings.scope ?? SCOPE,
        state,
        nonce,
        code_challenge: await openid.calculatePKCECodeChallenge(codeVerifier),
        code_challenge_method: "S256",
      });
      return { url: address.href, checks: { nonce, codeVerifier, requestId: null } };
    },

    stateOf: queryState,

    async readIdentity({ query }, state, { nonce, codeVerifier }) {
      const configuration = await discover(provider);
      const tokens = await openid
        .authorizationCodeGrant(configuration, new URL(`${callback}?${query}`), {
          expectedState: state,
          expectedNonce: nonce!,
          pkceCodeVerifier: codeVerifier!,
          idTokenExpected: true,
        })
        .catch(throwAsApiError);
      const claims = tokens.claims()!;
      const profile = await readProfile(configuration, tokens.access_token, claims).catch(throwAsApiError);
      return toIdentity(claims, profile, tokens.id_token!);
    },

    async signOutUrl({ proof }: SignOutHint, state) {
      const configuration = await discover(provider);
      if (!configuration.serverMetadata().end_session_endpoint) return null;
      const parameters = {
        post_logout_redirect_uri: signedOut,
        state,
        ...(proof !== null && { id_token_hint: proof }),
      };
      return openid.buildEndSessionUrl(configuration, parameters).href;
    },

    readLogout: async (callback) => ({ kind: "response", state: queryState(callback) }),
  });
}

/** Many providers return e-mail and name from the userinfo endpoint only. `email_verified` must come from the same source as the e-mail. */
async function readProfile(
  configuration: openid.Configuration,
  accessToken: string,
  claims: openid.IDToken,
): Promise<UserProfile> {
  const isEnough = claims.email !== undefined && claims.name !== undefined;
  if (isEnough || !configuration.serverMetadata().userinfo_endpoint) return claims;
  const userInfo = await openid.fetchUserInfo(configuration, accessToken, claims.sub);
  return { ...(claims.email === undefined ? userInfo : claims), name: claims.name ?? userInfo.name };
}

function toIdentity({ sub, amr }: openid.IDToken, profile: UserProfile, idToken: string): ExternalIdentity {
  const { email, email_verified: verified, name } = profile;
  return {
    subject: sub,
    email: typeof email === "string" ? email : null,
    // Some providers send it as a string.
    isEmailVerified: verified === true || verified === "true",
    name: typeof name === "string" ? name : null,
    // RFC 8176
    hasSecondFactor: Array.isArray(amr) && amr.includes("mfa"),
    message: null,
    signOut: { subject: sub, sessionIndex: null, proof: idToken },
  };
}
