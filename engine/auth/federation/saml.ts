import { randomBytes } from "node:crypto";
import { type CacheProvider, type Profile, SAML, type SamlConfig, ValidateInResponseTo } from "@node-saml/node-saml";
import type { Addresses, Protocol, Provider } from "./provider.ts";
import { statementRefused } from "./refusals.ts";
import { type Element, readAssertion, SKEW_MS } from "./saml-assertion.ts";
import { readFarewell } from "./saml-farewell.ts";
import { checkResponse, decodeMessage, hasOwnSignature } from "./saml-message.ts";

export type SamlProtocol = Protocol & {
  /** What the provider wants to know of us. */
  readonly metadata: string;
};

/** SAML 2.0, a service provider of the web browser profile: requests by redirect, answers by post, signed assertions alone. */
export function samlProtocol(provider: Provider, addresses: Addresses): SamlProtocol {
  const { issuer, settings } = provider;
  const saml = (more?: Partial<SamlConfig>) => new SAML({ ...configure(provider, addresses), ...more });
  return {
    get metadata() {
      return saml().generateServiceProviderMetadata(null, settings.certificate ?? null);
    },

    async depart(state) {
      const requestId = `_${randomBytes(20).toString("hex")}`;
      const address = await saml({ generateUniqueId: () => requestId }).getAuthorizeUrlAsync(state, undefined, {});
      return { address, kept: { nonce: null, codeVerifier: null, requestId } };
    },

    stateOf: ({ form }) => form.get("RelayState") ?? "",

    async arrive({ form }, _state, kept) {
      const SAMLResponse = form.get("SAMLResponse") ?? "";
      const requestId = kept.requestId!;
      const xml = decodeMessage(SAMLResponse);
      checkResponse(xml, addresses.callback);
      const strict = {
        validateInResponseTo: ValidateInResponseTo.always,
        cacheProvider: knowing(requestId),
        // A response need not be signed, but a signature that it has must be valid.
        wantAuthnResponseSigned: hasOwnSignature(xml),
      };
      const { profile } = await saml(strict).validatePostResponseAsync({ SAMLResponse }).catch(refuse);
      // Parsed by the library from the bytes that were signed.
      const signed = profile?.getAssertion?.() as { readonly Assertion: Element } | undefined;
      if (!signed) throw statementRefused(new Error("There is no assertion"));
      return readAssertion(signed.Assertion, { provider, recipient: addresses.callback, requestId });
    },

    async signOutAddress({ subject, sessionIndex, proof }, state) {
      if (settings.logout_url === undefined) return null;
      const { Format, NameQualifier, SPNameQualifier } = JSON.parse(proof ?? "{}") as Record<string, string>;
      const user = {
        issuer,
        nameID: subject,
        nameIDFormat: Format,
        nameQualifier: NameQualifier,
        spNameQualifier: SPNameQualifier,
        ...(sessionIndex !== null && { sessionIndex }),
      };
      return saml().getLogoutUrlAsync(user as Profile, state, {});
    },

    readFarewell: (arrival) => readFarewell(saml(), arrival, addresses.signedOut),
  };
}

function configure({ issuer, clientId, secret, settings }: Provider, addresses: Addresses): SamlConfig {
  const { certificates, entry_point, logout_url, name_id_format } = settings;
  return {
    issuer: clientId ?? addresses.metadata,
    callbackUrl: addresses.callback,
    logoutCallbackUrl: addresses.signedOut,
    idpIssuer: issuer,
    idpCert: [...certificates!],
    entryPoint: entry_point!,
    logoutUrl: logout_url ?? entry_point!,
    ...(secret !== null && { privateKey: secret }),
    signatureAlgorithm: "sha256",
    digestAlgorithm: "sha256",
    identifierFormat: name_id_format ?? null,
    // How users prove who they are is between them and the provider.
    disableRequestedAuthnContext: true,
    wantAssertionsSigned: true,
    acceptedClockSkewMs: SKEW_MS,
  };
}

/** The request that this browser left with is the only one that can be answered. */
function knowing(requestId: string): CacheProvider {
  const now = new Date().toISOString();
  return {
    getAsync: async (id) => (id === requestId ? now : null),
    saveAsync: async () => null,
    removeAsync: async () => null,
  };
}

function refuse(error: unknown): never {
  throw statementRefused(error);
}
