import { hash } from "node:crypto";
import type { SignInParameters } from "#accounts/federation";
import { clientInfoOf, type GatewayResponse, jsonResponse } from "#http";
import { ApiError } from "#runtime";
import {
  type AuthRequest,
  type AuthRouteHandler,
  type AuthV1Routes,
  type AuthV1Services,
  authenticateUser,
  readJsonBody,
  readText,
  requireSecondFactor,
  type SignedInUser,
} from "./auth-v1-request.ts";
import { errorParameters, redirect, redirectToClient, withFragment, withQuery } from "./client-redirect.ts";
import { readCodeChallenge, readRedirect } from "./code-request.ts";
import { authError, validationFailed } from "./errors.ts";
import { toSessionJson } from "./session-json.ts";

/** Parameters that clients may pass on to the provider. */
const HINTS = ["access_type", "acr_values", "domain_hint", "hd", "login_hint", "prompt", "ui_locales"];
const MAX_HINT_LENGTH = 500;
/** The issuers in messages about providers that are not configured. */
const KNOWN_ISSUERS: Readonly<Record<string, string>> = {
  apple: "https://appleid.apple.com",
  facebook: "https://www.facebook.com",
  google: "https://accounts.google.com",
  kakao: "https://kauth.kakao.com",
};
const UUID_PATTERN = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/i;
const CALLBACK_BODY_LIMIT = { bytes: 64 * 1024, isAnonymous: true } as const;

/** Routes for sign-in through identity providers. */
export function providerRoutes(services: AuthV1Services): AuthV1Routes {
  return {
    "GET /authorize": (request) => begin(request, services, null),
    "GET /callback": (request) => finish(request, services, request.rawQuery),
    // Some providers post the response.
    "POST /callback": async (request) => finish(request, services, String(await request.readBody(CALLBACK_BODY_LIMIT))),
    "GET /user/identities/authorize": async (request) => {
      const { userId } = await authenticateForLinking(request, services);
      return begin(request, services, userId);
    },
    "DELETE /user/identities/{identity}": (request) => unlink(request, services),
    "POST /sso": (request) => beginSso(request, services),
  };
}

async function authenticateForLinking(request: AuthRequest, services: AuthV1Services): Promise<SignedInUser> {
  const user = await authenticateUser(request, services);
  if (!services.config.manualLinking) throw authError(404, "manual_linking_disabled", "Manual linking is disabled");
  await requireSecondFactor(user, services, [403, "AAL2 required to change identities"]);
  return user;
}

/** Begins a sign-in; `userId` is the signed-in user who links an identity. */
async function begin(request: AuthRequest, services: AuthV1Services, userId: string | null): Promise<GatewayResponse> {
  const { query } = request;
  const requested = {
    redirectTo: readRedirect(services, request),
    codeChallenge: toS256(query.get("code_challenge") ?? "", query.get("code_challenge_method") ?? ""),
    userId,
    parameters: readParameters(query),
  };
  // Without a verifier, anybody who is sent to the provider would link an identity to another person's account.
  if (userId !== null && requested.codeChallenge === null) {
    throw validationFailed('Linking an identity requires PKCE: create the client with flowType "pkce"');
  }
  const provider = query.get("provider") ?? "";
  const url = await services.federation
    .beginForClient(provider, requested, clientInfoOf(request))
    .catch(asUnsupportedProvider);
  return query.get("skip_http_redirect") === "true" ? jsonResponse(200, { url }) : redirect(new URL(url));
}

async function finish(request: AuthRequest, services: AuthV1Services, query: string): Promise<GatewayResponse> {
  try {
    const callback = { query, form: new URLSearchParams() };
    return redirectToClient(await services.federation.finishForClient(callback, clientInfoOf(request)));
  } catch (error) {
    // The state is unknown, and so is the URL of the client.
    const target = new URL(readRedirect(services, { ...request, query: new URLSearchParams(), headers: {} }));
    const parameters = errorParameters(error);
    return redirect(withFragment(withQuery(target, parameters), parameters));
  }
}

async function unlink(request: AuthRequest, services: AuthV1Services): Promise<GatewayResponse> {
  const { userId } = await authenticateForLinking(request, services);
  const { identity = "" } = request.parameters;
  if (!UUID_PATTERN.test(identity)) throw authError(404, "validation_failed", "identity_id must be an UUID");
  switch (await services.federation.unlinkIdentity(userId, identity, clientInfoOf(request))) {
    case "unlinked":
      return jsonResponse(200, {});
    case "absent":
      throw authError(422, "identity_not_found", "Identity doesn't exist");
    case "last":
      throw authError(422, "single_identity_not_deletable", "User must have at least 1 identity after unlinking");
  }
}

/** Begins a sign-in through the provider of an organisation (SAML). */
async function beginSso(request: AuthRequest, services: AuthV1Services): Promise<GatewayResponse> {
  const body = await readJsonBody(request);
  const providers = await services.federation.list();
  if (!providers.some(({ kind }) => kind === "saml")) {
    throw authError(404, "saml_provider_disabled", "SAML 2.0 is disabled");
  }
  const [name, domain] = [readText(body, "provider_id"), readText(body, "domain")];
  if (name === "" && domain === "") throw validationFailed("A provider_id or domain needs to be provided");
  const provider = await services.federation.findOrganisation(name === "" ? { domain } : { name });
  if (provider === null) {
    const missing = name === "" ? "No SSO provider assigned for this domain" : "No such SSO provider";
    throw authError(404, "sso_provider_not_found", missing);
  }
  const query = new URLSearchParams({ redirect_to: readText(body, "redirect_to") });
  const requested = {
    redirectTo: readRedirect(services, { ...request, query }),
    codeChallenge: toS256(readText(body, "code_challenge"), readText(body, "code_challenge_method")),
    userId: null,
    parameters: { scopes: [], hints: {} },
  };
  const url = await services.federation.beginForClient(provider, requested, clientInfoOf(request));
  return body.skip_http_redirect === true ? jsonResponse(200, { url }) : redirect(new URL(url));
}

/** Exchanges an ID token that the application has received from a provider for a session. */
export function idTokenGrant(services: AuthV1Services): AuthRouteHandler {
  const { accounts, federation } = services;
  const { open } = accounts.authSessions;
  return async (request) => {
    const body = await readJsonBody(request);
    const [idToken, provider] = [readText(body, "id_token"), readText(body, "provider")];
    if (idToken === "") throw validationFailed("id_token required");
    const linking = body.link_identity === true ? (await authenticateForLinking(request, services)).userId : null;
    const submitted = {
      provider,
      idToken,
      nonce: readText(body, "nonce") || null,
      accessToken: readText(body, "access_token") || null,
      linking,
    };
    const session = await federation
      .signInWithIdToken(submitted, clientInfoOf(request), open)
      .catch((error) => throwIdTokenError(error, { provider, isLink: linking !== null }));
    return jsonResponse(200, toSessionJson(session));
  };
}

/** Returns the challenge as S256, whichever method the client uses; null without PKCE. */
function toS256(challenge: string, method: string): string | null {
  const read = readCodeChallenge(challenge, method);
  return read?.method === "plain" ? hash("sha256", read.challenge, "base64url") : (read?.challenge ?? null);
}

function readParameters(query: URLSearchParams): SignInParameters {
  const scopes = (query.get("scopes") ?? "").split(/[\s,]+/).filter((scope) => /^[!#-[\]-~]{1,200}$/.test(scope));
  const hints = HINTS.flatMap((name) => {
    const value = query.get(name) ?? "";
    return value !== "" && value.length <= MAX_HINT_LENGTH ? [[name, value] as const] : [];
  });
  return { scopes, hints: Object.fromEntries(hints) };
}

function asUnsupportedProvider(error: unknown): never {
  if (error instanceof ApiError && error.kind === "notFound") {
    throw validationFailed("Unsupported provider: provider is not enabled");
  }
  throw error;
}

type IdTokenAttempt = { readonly provider: string; readonly isLink: boolean };

function throwIdTokenError(error: unknown, { provider, isLink }: IdTokenAttempt): never {
  if (!(error instanceof ApiError)) throw error;
  if (isLink && error.code === "RESOURCE_CONFLICT") {
    throw authError(422, "identity_already_exists", "Identity is already linked to another user");
  }
  if (error.kind !== "notFound") throw error;
  const issuer = Object.hasOwn(KNOWN_ISSUERS, provider) ? KNOWN_ISSUERS[provider] : undefined;
  if (issuer === undefined) throw validationFailed(`Custom OIDC provider "${provider}" not allowed`);
  throw authError(400, "provider_disabled", `Provider (issuer "${issuer}") is not enabled`);
}
