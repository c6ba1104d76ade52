import * as openid from "openid-client";
import { makeDiscovery } from "./discovery.ts";
import { fromLibrary } from "./openid-faults.ts";
import type { Addresses, Protocol, Provider, SignOutHint, Statement } from "./provider.ts";
import { queryState } from "./query-state.ts";

type Profile = Readonly<Record<string, unknown>>;

const SCOPE = "openid profile email";

/** OpenID Connect: the code flow with PKCE, state and nonce. */
export function makeOpenId() {
  const discover = makeDiscovery();
  return (provider: Provider, { callback, signedOut }: Addresses): Protocol => ({
    async depart(state) {
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
      return { address: address.href, kept: { nonce, codeVerifier, requestId: null } };
    },

    stateOf: queryState,

    async arrive({ query }, state, { nonce, codeVerifier }) {
      const configuration = await discover(provider);
      const tokens = await openid
        .authorizationCodeGrant(configuration, new URL(`${callback}?${query}`), {
          expectedState: state,
          expectedNonce: nonce!,
          pkceCodeVerifier: codeVerifier!,
          idTokenExpected: true,
        })
        .catch(fromLibrary);
      const claims = tokens.claims()!;
      const profile = await readProfile(configuration, tokens.access_token, claims).catch(fromLibrary);
      return toStatement(claims, profile, tokens.id_token!);
    },

    async signOutAddress({ proof }: SignOutHint, state) {
      const configuration = await discover(provider);
      if (!configuration.serverMetadata().end_session_endpoint) return null;
      const parameters = {
        post_logout_redirect_uri: signedOut,
        state,
        ...(proof !== null && { id_token_hint: proof }),
      };
      return openid.buildEndSessionUrl(configuration, parameters).href;
    },

    readFarewell: async (arrival) => ({ kind: "answered", state: queryState(arrival) }),
  });
}

/** Many providers tell who somebody is at this address alone. An e-mail address is verified by who tells it. */
async function readProfile(
  configuration: openid.Configuration,
  accessToken: string,
  claims: openid.IDToken,
): Promise<Profile> {
  const isEnough = claims.email !== undefined && claims.name !== undefined;
  if (isEnough || !configuration.serverMetadata().userinfo_endpoint) return claims;
  const told = await openid.fetchUserInfo(configuration, accessToken, claims.sub);
  return { ...(claims.email === undefined ? told : claims), name: claims.name ?? told.name };
}

function toStatement({ sub, amr }: openid.IDToken, profile: Profile, idToken: string): Statement {
  const { email, email_verified: verified, name } = profile;
  return {
    subject: sub,
    email: typeof email === "string" ? email : null,
    // Some providers write it as a text.
    isEmailVerified: verified === true || verified === "true",
    name: typeof name === "string" ? name : null,
    // RFC 8176
    hasSecondFactor: Array.isArray(amr) && amr.includes("mfa"),
    message: null,
    signOut: { subject: sub, sessionIndex: null, proof: idToken },
  };
}
