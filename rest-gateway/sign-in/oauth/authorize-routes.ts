import { API_RESOURCE, resourceAddress } from "#accounts/identity";
import { clientInfoOf, type GatewayResponse, type MatchedRequest, type PatternRoutes } from "#http";
import { html, makeRenderPage, seeOther } from "#rest-gateway/pages";
import { findUnstorable } from "#runtime/json";
import { readForm } from "../request/read-body.ts";
import { makeFindClient } from "./client-documents.ts";
import { isRegisteredRedirect } from "./client-metadata.ts";
import type { OAuthClient } from "./client-store.ts";
import { OAUTH_RESOURCES } from "./metadata-routes.ts";
import { OAuthError } from "./oauth-error.ts";
import type { OAuthServices } from "./oauth-services.ts";
import type { AuthorizationRequest } from "./oauth-store.ts";
import { toRedirectAddress, withParameters } from "./redirect-address.ts";
import { refuseRepeated } from "./refuse-repeated.ts";
import { readScopes } from "./scopes.ts";

export const CONSENT_PATH = "/auth/oauth/consent";

/** An error that the redirect reports to the application (RFC 6749 §4.1.2.1). */
class RedirectedError extends Error {
  readonly code: string;

  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}

const S256_CHALLENGE = /^[\w-]{43}$/;
const MAX_STATE_LENGTH = 4_000;
const MAX_NONCE_LENGTH = 1_000;

/** Handles `/authorize`: checks the request of an application, stores it, and redirects to the page where the user decides. */
export function authorizeRoutes(services: OAuthServices): PatternRoutes {
  const render = makeRenderPage({ formTargets: [] });
  const handle = async (request: MatchedRequest, parameters: URLSearchParams): Promise<GatewayResponse> => {
    try {
      return await beginAuthorization(request, parameters, services);
    } catch (thrown) {
      if (!(thrown instanceof OAuthError)) throw thrown;
      // There is no redirect, because the address may be an attacker's.
      const content = html`<p class="alert" role="alert">${thrown.message}</p><p>Go back to the application that has led you here.</p>`;
      return render({ title: "This application cannot ask for access", content, status: 400 });
    }
  };
  return {
    "GET /oauth/authorize": (request) => handle(request, request.query),
    "POST /oauth/authorize": async (request) => handle(request, await readForm(request)),
  };
}

async function beginAuthorization(
  request: MatchedRequest,
  parameters: URLSearchParams,
  services: OAuthServices,
): Promise<GatewayResponse> {
  const { oauthStore: store, config, accounts, limitExpensive } = services;
  refuseRepeated(parameters);
  refuseUnstorable(parameters);
  const findClient = makeFindClient({
    store,
    isEnabled: config.oauthClientDocuments,
    limit: () => limitExpensive(request),
  });
  const client = await findClient(parameters.get("client_id") ?? "");
  if (!client) throw new OAuthError("invalid_client", "The application (client_id) is not known here.");
  const redirectUri = readRedirect(parameters, client);
  try {
    const id = await store.begin(readAuthorization(parameters, client, redirectUri, services), clientInfoOf(request));
    return seeOther(withParameters(config.oauthConsentUrl ?? CONSENT_PATH, { authorization_id: id }));
  } catch (thrown) {
    if (!(thrown instanceof RedirectedError)) throw thrown;
    const { code: error, message: error_description } = thrown;
    const refused = { redirect_uri: redirectUri, state: parameters.get("state") };
    return seeOther(toRedirectAddress(refused, accounts.oauthTokens.issuer(), { error, error_description }));
  }
}

function refuseUnstorable(parameters: URLSearchParams): void {
  if ([...parameters.values()].some((value) => findUnstorable(value) !== null)) {
    throw new OAuthError("invalid_request", "A parameter contains a character that cannot be stored.");
  }
}

function readRedirect(parameters: URLSearchParams, client: OAuthClient): string {
  const requested =
    parameters.get("redirect_uri") ?? (client.redirect_uris.length === 1 ? client.redirect_uris[0]! : "");
  if (isRegisteredRedirect(requested, client)) return requested;
  throw new OAuthError(
    "invalid_redirect_uri",
    "The address to return to (redirect_uri) is not one of this application.",
  );
}

function readAuthorization(
  parameters: URLSearchParams,
  client: OAuthClient,
  redirectUri: string,
  { accounts }: OAuthServices,
): AuthorizationRequest {
  const { oauthTokens } = accounts;
  const [state, nonce] = [parameters.get("state"), parameters.get("nonce")];
  if (parameters.has("request") || parameters.has("request_uri")) {
    throw new RedirectedError("request_not_supported", "Send the parameters themselves.");
  }
  if (parameters.get("response_type") !== "code") {
    throw new RedirectedError("unsupported_response_type", "response_type must be code.");
  }
  if ((parameters.get("response_mode") ?? "query") !== "query") throw invalid("response_mode must be query.");
  const challenge = parameters.get("code_challenge") ?? "";
  if (parameters.get("code_challenge_method") !== "S256" || !S256_CHALLENGE.test(challenge)) {
    throw invalid("PKCE is required: send code_challenge with code_challenge_method=S256.");
  }
  if ((state ?? "").length > MAX_STATE_LENGTH) throw invalid("state is too long.");
  if ((nonce ?? "").length > MAX_NONCE_LENGTH) throw invalid("nonce is too long.");
  const prompts = (parameters.get("prompt") ?? "").split(" ");
  // The cookie of the session is not sent with navigations from other sites, so nobody can be signed in without a page.
  if (prompts.includes("none")) throw new RedirectedError("interaction_required", "The user has to be asked.");
  const scopes = readScopes(parameters.get("scope"), client.scope, oauthTokens.canBeVerified);
  if (scopes.length === 0) throw new RedirectedError("invalid_scope", "None of the scopes is known here.");
  return {
    client_id: client.id,
    redirect_uri: redirectUri,
    scopes,
    resource: readResource(parameters.getAll("resource"), oauthTokens.issuer()),
    challenge,
    state,
    nonce,
    asks_always: prompts.some((prompt) => prompt === "consent" || prompt === "login"),
  };
}

/** Reads the resource that the tokens are for (RFC 8707). The default is the API. */
function readResource(requested: readonly string[], issuer: string): string {
  const known = OAUTH_RESOURCES.map((path) => resourceAddress(issuer, path));
  const resources = new Set(requested.map((each) => resourceAddress(each, "")));
  if (resources.size === 0) return resourceAddress(issuer, API_RESOURCE);
  const [resource] = resources;
  if (resources.size === 1 && known.includes(resource!)) return resource!;
  throw new RedirectedError("invalid_target", `The resource must be one of: ${known.join(", ")}.`);
}

function invalid(message: string): RedirectedError {
  return new RedirectedError("invalid_request", message);
}
