import * as openid from "openid-client";
import { isExactNumber, parseExactly, textOfValue } from "../../exact-json.ts";
import { isJsonObject } from "../../json-object.ts";
import { assertionInvalid, providerUnavailable } from "./federation-errors.ts";
import { throwAsApiError } from "./openid-errors.ts";
import type { ExternalIdentity, Provider, ProviderProtocol, ServiceUrls } from "./provider.ts";
import { queryState } from "./query-state.ts";
import { isLoopback, makeSafeFetch } from "./safe-fetch.ts";

/** Plain OAuth 2.0: exchanges the code and reads the user from the userinfo endpoint. */
export function makeOAuthProtocol(provider: Provider, { callback }: ServiceUrls): ProviderProtocol {
  const configuration = configure(provider);
  return {
    async startSignIn(state) {
      const { scope } = provider.settings;
      const codeVerifier = openid.randomPKCECodeVerifier();
      const address = openid.buildAuthorizationUrl(configuration, {
        redirect_uri: callback,
        ...(scope !== undefined && { scope }),
        state,
        code_challenge: await openid.calculatePKCECodeChallenge(codeVerifier),
        code_challenge_method: "S256",
      });
      return { url: address.href, checks: { nonce: null, codeVerifier, requestId: null } };
    },

    stateOf: queryState,

    async readIdentity({ query }, state, { codeVerifier }) {
      const url = new URL(`${callback}?${query}`);
      const checks = { expectedState: state, pkceCodeVerifier: codeVerifier! };
      const tokens = await openid.authorizationCodeGrant(configuration, url, checks).catch(throwAsApiError);
      return toIdentity(provider, await readUserInfo(configuration, tokens.access_token));
    },

    // OAuth 2.0 has no logout.
    signOutUrl: async () => null,
    readLogout: async (callback) => ({ kind: "response", state: queryState(callback) }),
  };
}

function configure({ issuer, clientId, secret, settings }: Provider): openid.Configuration {
  const { authorization_endpoint, token_endpoint, userinfo_endpoint, private_network } = settings;
  const configuration = new openid.Configuration(
    {
      issuer,
      authorization_endpoint: authorization_endpoint!,
      token_endpoint: token_endpoint!,
      userinfo_endpoint: userinfo_endpoint!,
    },
    clientId!,
    {},
    secret === null ? openid.None() : openid.ClientSecretPost(secret),
  );
  const home = token_endpoint!;
  configuration[openid.customFetch] = makeSafeFetch({
    providerUrl: home,
    allowsPrivateNetwork: private_network ?? false,
  });
  if (isLoopback(URL.parse(home))) openid.allowInsecureRequests(configuration);
  return configuration;
}

async function readUserInfo(
  configuration: openid.Configuration,
  accessToken: string,
): Promise<Readonly<Record<string, unknown>>> {
  const address = new URL(configuration.serverMetadata().userinfo_endpoint!);
  const headers = new Headers({ Accept: "application/json" });
  const response = await openid
    .fetchProtectedResource(configuration, accessToken, address, "GET", null, headers)
    .catch(throwAsApiError);
  if (!response.ok) throw providerUnavailable(new Error(`Its userinfo endpoint returned ${response.status}`));
  const userInfo = parseUserInfo(await response.text());
  if (!isJsonObject(userInfo)) throw providerUnavailable(new Error("Its userinfo is not a JSON object"));
  return userInfo;
}

/** Keeps all digits of numeric subjects: JavaScript would round 64-bit ids. */
function parseUserInfo(text: string): unknown {
  try {
    return parseExactly(text);
  } catch {
    // The parser's message is omitted, because it quotes the input.
    return null;
  }
}

function toIdentity({ settings }: Provider, userInfo: Readonly<Record<string, unknown>>): ExternalIdentity {
  const names = { subject: "sub", email: "email", email_verified: "email_verified", name: "name", ...settings.claims };
  const textOf = (name: string) => {
    const value = Object.hasOwn(userInfo, name) ? userInfo[name] : null;
    if (typeof value === "number" || isExactNumber(value)) return textOfValue(value);
    return typeof value === "string" && value !== "" ? value : null;
  };
  const subject = textOf(names.subject);
  if (subject === null) throw assertionInvalid(new Error(`Its userinfo has no ${names.subject}`));
  return {
    subject,
    email: textOf(names.email),
    isEmailVerified: userInfo[names.email_verified] === true,
    name: textOf(names.name),
    hasSecondFactor: false,
    message: null,
    signOut: { subject, sessionIndex: null, proof: null },
  };
}
