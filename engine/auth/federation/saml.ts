import { randomBytes } from "node:crypto";
import { type CacheProvider, type Profile, SAML, type SamlConfig, ValidateInResponseTo } from "@node-saml/node-saml";
import { assertionInvalid } from "./federation-errors.ts";
import type { Provider, ProviderProtocol, ServiceUrls } from "./provider.ts";
import { readAssertion, SKEW_MS, type XmlElement } from "./saml-assertion.ts";
import { readLogoutMessage } from "./saml-logout.ts";
import { checkResponse, decodeMessage, hasOwnSignature } from "./saml-message.ts";

export type SamlProtocol = ProviderProtocol & {
  /** The service provider's metadata document. */
  readonly metadata: string;
};

/** A SAML 2.0 service provider (web browser SSO): requests by redirect, responses by POST, signed assertions only. */
export function makeSamlProtocol(provider: Provider, addresses: ServiceUrls): SamlProtocol {
  const { issuer, settings } = provider;
  const saml = (more?: Partial<SamlConfig>) => new SAML({ ...configure(provider, addresses), ...more });
  return {
    get metadata() {
      return saml().generateServiceProviderMetadata(null, settings.certificate ?? null);
    },

    async startSignIn(state) {
      const requestId = `_${randomBytes(20).toString("hex")}`;
      const address = await saml({ generateUniqueId: () => requestId }).getAuthorizeUrlAsync(state, undefined, {});
      return { url: address, checks: { nonce: null, codeVerifier: null, requestId } };
    },

    stateOf: ({ form }) => form.get("RelayState") ?? "",

    async readIdentity({ form }, _state, checks) {
      const SAMLResponse = form.get("SAMLResponse") ?? "";
      const requestId = checks.requestId!;
      const xml = decodeMessage(SAMLResponse);
      checkResponse(xml, addresses.callback);
      const strict = {
        validateInResponseTo: ValidateInResponseTo.always,
        cacheProvider: makeRequestIdCache(requestId),
        // The response's own signature is optional, but must be valid if present.
        wantAuthnResponseSigned: hasOwnSignature(xml),
      };
      const { profile } = await saml(strict).validatePostResponseAsync({ SAMLResponse }).catch(throwInvalidAssertion);
      // The library has parsed this from the signed bytes.
      const signed = profile?.getAssertion?.() as { readonly Assertion: XmlElement } | undefined;
      if (!signed) throw assertionInvalid(new Error("There is no assertion"));
      return readAssertion(signed.Assertion, { provider, recipient: addresses.callback, requestId });
    },

    async signOutUrl({ subject, sessionIndex, proof }, state) {
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

    readLogout: (callback) => readLogoutMessage(saml(), callback, addresses.signedOut),
  };
}

function configure({ issuer, clientId, secret, settings }: Provider, addresses: ServiceUrls): SamlConfig {
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
    // The provider decides how users authenticate.
    disableRequestedAuthnContext: true,
    wantAssertionsSigned: true,
    acceptedClockSkewMs: SKEW_MS,
  };
}

/** Accepts responses only to the request that this browser started with. */
function makeRequestIdCache(requestId: string): CacheProvider {
  const now = new Date().toISOString();
  return {
    getAsync: async (id) => (id === requestId ? now : null),
    saveAsync: async () => null,
    removeAsync: async () => null,
  };
}

function throwInvalidAssertion(error: unknown): never {
  throw assertionInvalid(error);
}
