import * as openid from "openid-client";
import { isExactNumber, parseExactly, textOfValue } from "../../exact-json.ts";
import { isJsonObject } from "../../json-object.ts";
import { fromLibrary } from "./openid-faults.ts";
import { isLoopback, makeOutgoing } from "./outgoing.ts";
import type { Addresses, Protocol, Provider, Statement } from "./provider.ts";
import { queryState } from "./query-state.ts";
import { providerUnavailable, statementRefused } from "./refusals.ts";

/** OAuth 2.0 alone: the code is exchanged, and what the token opens says who it is. */
export function oauthProtocol(provider: Provider, { callback }: Addresses): Protocol {
  const configuration = configure(provider);
  return {
    async depart(state) {
      const { scope } = provider.settings;
      const codeVerifier = openid.randomPKCECodeVerifier();
      const address = openid.buildAuthorizationUrl(configuration, {
        redirect_uri: callback,
        ...(scope !== undefined && { scope }),
        state,
        code_challenge: await openid.calculatePKCECodeChallenge(codeVerifier),
        code_challenge_method: "S256",
      });
      return { address: address.href, kept: { nonce: null, codeVerifier, requestId: null } };
    },

    stateOf: queryState,

    async arrive({ query }, state, { codeVerifier }) {
      const url = new URL(`${callback}?${query}`);
      const checks = { expectedState: state, pkceCodeVerifier: codeVerifier! };
      const tokens = await openid.authorizationCodeGrant(configuration, url, checks).catch(fromLibrary);
      return toStatement(provider, await readUserInfo(configuration, tokens.access_token));
    },

    // There is no end of a session in OAuth 2.0.
    signOutAddress: async () => null,
    readFarewell: async (arrival) => ({ kind: "answered", state: queryState(arrival) }),
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
  configuration[openid.customFetch] = makeOutgoing({ home, isPrivateAllowed: private_network ?? false });
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
    .catch(fromLibrary);
  if (!response.ok) throw providerUnavailable(new Error(`Its userinfo endpoint answers ${response.status}`));
  const told = parseProfile(await response.text());
  if (!isJsonObject(told)) throw providerUnavailable(new Error("Its userinfo is no JSON object"));
  return told;
}

/** With all digits of a subject that is a number: two of 64 bits may be one to JavaScript. */
function parseProfile(text: string): unknown {
  try {
    return parseExactly(text);
  } catch {
    // What the parser says of its fault is left out: it quotes what it read.
    return null;
  }
}

function toStatement({ settings }: Provider, told: Readonly<Record<string, unknown>>): Statement {
  const names = { subject: "sub", email: "email", email_verified: "email_verified", name: "name", ...settings.claims };
  const textOf = (name: string) => {
    const value = Object.hasOwn(told, name) ? told[name] : null;
    if (typeof value === "number" || isExactNumber(value)) return textOfValue(value);
    return typeof value === "string" && value !== "" ? value : null;
  };
  const subject = textOf(names.subject);
  if (subject === null) throw statementRefused(new Error(`Its userinfo has no ${names.subject}`));
  return {
    subject,
    email: textOf(names.email),
    isEmailVerified: told[names.email_verified] === true,
    name: textOf(names.name),
    hasSecondFactor: false,
    message: null,
    signOut: { subject, sessionIndex: null, proof: null },
  };
}
