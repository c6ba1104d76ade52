import { randomBytes } from "node:crypto";
import { promisify } from "node:util";
import { inflateRaw } from "node:zlib";
import type { CacheProvider, Profile, SAML, SamlConfig } from "@node-saml/node-saml";
import { ApiError } from "#runtime";
import { assertionInvalid } from "./federation-errors.ts";
import type {
  CallbackRequest,
  ExternalIdentity,
  LogoutMessage,
  Provider,
  ProviderProtocol,
  ServiceUrls,
} from "./provider.ts";
import { CLOCK_SKEW_MS, readAssertion, type XmlElement } from "./saml-assertion.ts";
import {
  checkDestination,
  checkMessage,
  checkResponse,
  decodeMessage,
  hasOwnSignature,
  invalidMessage,
  MAX_MESSAGE_BYTES,
  rootAttribute,
} from "./saml-message.ts";

/** The library is loaded at first use, because most deployments have no SAML provider. */
const loadLibrary = () => import("@node-saml/node-saml");

const LOGOUT_PARAMETERS: readonly string[] = ["SAMLRequest", "SAMLResponse", "RelayState", "SigAlg", "Signature"];
const STRONG_SIGNATURE = /#rsa-sha(256|384|512)$/;
/** The maximum age of a logout request. */
const MAX_LOGOUT_AGE_MS = 5 * 60_000;

type SamlProtocol = ProviderProtocol & {
  /** Returns the service provider's metadata document. */
  metadata(): Promise<string>;
};

/** A SAML 2.0 service provider (web browser SSO): requests by redirect, responses by POST, signed assertions only. */
export function makeSamlProtocol(provider: Provider, serviceUrls: ServiceUrls): SamlProtocol {
  const { issuer, settings } = provider;
  const openSaml = async (more?: Partial<SamlConfig>) => {
    const { SAML } = await loadLibrary();
    return new SAML({ ...samlConfiguration(provider, serviceUrls), ...more });
  };
  return {
    async metadata() {
      const saml = await openSaml();
      return saml.generateServiceProviderMetadata(null, settings.certificate ?? null);
    },

    async startSignIn(state) {
      const requestId = `_${randomBytes(20).toString("hex")}`;
      const saml = await openSaml({ generateUniqueId: () => requestId });
      const address = await saml.getAuthorizeUrlAsync(state, undefined, {});
      return { url: address, checks: { nonce: null, codeVerifier: null, requestId } };
    },

    stateOf: ({ form }) => form.get("RelayState") ?? "",

    readIdentity: ({ form }, _state, { requestId }) =>
      readResponse(form.get("SAMLResponse") ?? "", { provider, serviceUrls, requestId: requestId! }),

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
      const saml = await openSaml();
      return saml.getLogoutUrlAsync(user as Profile, state, {});
    },

    readLogout: async (callback) => readLogoutMessage(await openSaml(), callback, serviceUrls.signedOut),
  };
}

type ExpectedResponse = {
  readonly provider: Provider;
  readonly serviceUrls: ServiceUrls;
  /** The id of the request that this browser started with. */
  readonly requestId: string;
};

/** Verifies the response to a sign-in request. */
async function readResponse(
  SAMLResponse: string,
  { provider, serviceUrls, requestId }: ExpectedResponse,
): Promise<ExternalIdentity> {
  const xml = decodeMessage(SAMLResponse);
  checkResponse(xml, serviceUrls.callback);
  const { SAML, ValidateInResponseTo } = await loadLibrary();
  const saml = new SAML({
    ...samlConfiguration(provider, serviceUrls),
    validateInResponseTo: ValidateInResponseTo.always,
    cacheProvider: makeRequestIdCache(requestId),
    // The response's own signature is optional, but must be valid if present.
    wantAuthnResponseSigned: hasOwnSignature(xml),
  });
  const { profile } = await saml.validatePostResponseAsync({ SAMLResponse }).catch(throwInvalidAssertion);
  // The library has parsed this from the signed bytes.
  const signed = profile?.getAssertion?.() as { readonly Assertion: XmlElement } | undefined;
  if (!signed) throw assertionInvalid(new Error("There is no assertion"));
  return readAssertion(signed.Assertion, { provider, recipient: serviceUrls.callback, requestId });
}

function samlConfiguration({ issuer, clientId, secret, settings }: Provider, serviceUrls: ServiceUrls): SamlConfig {
  const { certificates, entry_point, logout_url, name_id_format } = settings;
  return {
    issuer: clientId ?? serviceUrls.metadata,
    callbackUrl: serviceUrls.callback,
    logoutCallbackUrl: serviceUrls.signedOut,
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
    acceptedClockSkewMs: CLOCK_SKEW_MS,
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

/** Verifies a LogoutRequest or a LogoutResponse, by the POST or the redirect binding. */
async function readLogoutMessage(saml: SAML, { query, form }: CallbackRequest, ownUrl: string): Promise<LogoutMessage> {
  const isPosted = form.size > 0;
  const {
    SAMLRequest,
    SAMLResponse,
    RelayState = "",
    ...signature
  } = readLogoutParameters(isPosted ? form : new URLSearchParams(query));
  const kind = SAMLRequest === undefined ? "LogoutResponse" : "LogoutRequest";
  const encoded = (SAMLRequest ?? SAMLResponse)!;
  const xml = isPosted ? decodeMessage(encoded) : await inflateMessage(encoded);
  checkMessage(xml, kind);
  checkDestination(xml, ownUrl);

  const verify = (): Promise<{ profile: Profile | null }> => {
    if (!isPosted) return verifyRedirect(saml, { encoded, kind, RelayState, ...signature }, query);
    return kind === "LogoutRequest"
      ? saml.validatePostRequestAsync({ SAMLRequest: encoded })
      : saml.validatePostResponseAsync({ SAMLResponse: encoded });
  };
  const { profile } = await verify().catch((error) => {
    throw assertionInvalid(error);
  });
  if (kind === "LogoutResponse") return { kind: "response", state: RelayState };

  const madeAt = Date.parse(rootAttribute(xml, "IssueInstant") ?? "");
  if (!profile || !(Math.abs(Date.now() - madeAt) < MAX_LOGOUT_AGE_MS)) throw invalidMessage("its time is not current");
  return {
    kind: "request",
    message: { id: profile.ID!, expiresAt: new Date(madeAt + MAX_LOGOUT_AGE_MS) },
    subject: profile.nameID,
    sessionIndex: profile.sessionIndex ?? null,
    responseUrl: (isDone) => saml.getLogoutResponseUrlAsync(profile, RelayState, {}, isDone),
  };
}

/** Refuses duplicate parameters: the signature covers the query text, in which another parser could choose another one. */
function readLogoutParameters(sent: URLSearchParams): Partial<Record<string, string>> {
  const parameters = Object.fromEntries(sent);
  const isOdd =
    sent.size !== Object.keys(parameters).length || ![...sent.keys()].every((name) => LOGOUT_PARAMETERS.includes(name));
  const hasOne = (parameters.SAMLRequest === undefined) !== (parameters.SAMLResponse === undefined);
  if (hasOne && !isOdd) return parameters;
  throw new ApiError(
    "invalid",
    "VALIDATION_ERROR",
    "Send one SAMLRequest or SAMLResponse, with its RelayState and signature.",
  );
}

type RedirectParameters = Partial<Record<string, string>> & { readonly encoded: string; readonly kind: string };

/** The signature is checked here because the library accepts messages without one. */
async function verifyRedirect(saml: SAML, { encoded, kind, ...parameters }: RedirectParameters, query: string) {
  if (!parameters.Signature || !STRONG_SIGNATURE.test(parameters.SigAlg ?? ""))
    throw new Error("It is not signed, or its digest is weak");
  const name = kind === "LogoutRequest" ? "SAMLRequest" : "SAMLResponse";
  return saml.validateRedirectAsync({ ...parameters, [name]: encoded }, query);
}

async function inflateMessage(encoded: string): Promise<string> {
  const inflated = await promisify(inflateRaw)(Buffer.from(encoded, "base64"), {
    maxOutputLength: MAX_MESSAGE_BYTES,
  }).catch(() => null);
  if (inflated) return inflated.toString("utf8");
  throw invalidMessage("it cannot be decompressed");
}
