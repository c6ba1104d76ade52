import {
  clientInfoOf,
  type GatewayResponse,
  HttpError,
  jsonResponse,
  type MatchedRequest,
  type PatternRoutes,
} from "#http";
import { approve, type Decision, deny, openDecision } from "../oauth/decisions.ts";
import type { OAuthServices } from "../oauth/oauth-services.ts";
import { authenticateUser, readJsonBody, readText, requireSecondFactor, type SignedInUser } from "./auth-v1-request.ts";
import { authError, validationFailed } from "./errors.ts";

/** Routes for `supabase.auth.oauth`: consent pages of applications, and lists of grants. */
export function grantRoutes(services: OAuthServices): PatternRoutes {
  const { oauthStore: store } = services;
  const requireUser = async (request: MatchedRequest): Promise<SignedInUser> => {
    const user = await authenticateUser(request, services);
    await requireSecondFactor(user, services, [403, "AAL2 session is required to give applications access"]);
    return user;
  };
  return {
    "GET /oauth/authorizations/{authorization}": async (request) => {
      const user = await requireUser(request);
      const decision = await readDecision(request, user, services);
      if (decision.isGranted) return redirectResponse(await approveAs(user, decision, request, services));
      return jsonResponse(200, toDetails(decision));
    },
    "POST /oauth/authorizations/{authorization}/consent": async (request) => {
      const user = await requireUser(request);
      const action = readText(await readJsonBody(request), "action");
      if (action !== "approve" && action !== "deny") throw validationFailed("action must be approve or deny");
      const decision = await readDecision(request, user, services);
      return redirectResponse(
        action === "approve"
          ? await approveAs(user, decision, request, services)
          : await deny(decision, user.userId, services),
      );
    },
    "GET /user/oauth/grants": async (request) => {
      const { userId } = await requireUser(request);
      const grants = await store.grants(userId);
      return jsonResponse(
        200,
        grants.map(({ clientId: id, clientName: name, clientUri: uri, logoUri, scopes, resource, ...times }) => ({
          client: { id, name, uri: uri ?? "", logo_uri: logoUri ?? "" },
          scopes,
          resource,
          granted_at: times.grantedAt,
          expires_at: times.expiresAt,
          last_used_at: times.lastUsedAt,
        })),
      );
    },
    "DELETE /user/oauth/grants": async (request) => {
      const { userId } = await requireUser(request);
      const clientId = request.query.get("client_id") ?? "";
      if (clientId === "" || clientId.includes("\0")) throw validationFailed("client_id query parameter is required");
      if (!(await store.withdraw(userId, clientId, clientInfoOf(request)))) {
        throw authError(404, "oauth_consent_not_found", "No active grant found for this client");
      }
      return { status: 204, headers: {}, body: null };
    },
  };
}

function readDecision(request: MatchedRequest, { userId }: SignedInUser, services: OAuthServices): Promise<Decision> {
  return openDecision(request.parameters.authorization ?? "", userId, services).catch((thrown: unknown) => {
    if (!(thrown instanceof HttpError) || thrown.status !== 404) throw thrown;
    throw authError(404, "oauth_authorization_not_found", "authorization not found");
  });
}

function approveAs(
  { userId, caller }: SignedInUser,
  decision: Decision,
  request: MatchedRequest,
  services: OAuthServices,
): Promise<string> {
  const { amr } = caller.claims;
  const [latest] = Array.isArray(amr) ? (amr as readonly { readonly timestamp?: unknown }[]) : [];
  const seconds = Number(latest?.timestamp ?? caller.claims.iat);
  const signedInAt = Number.isFinite(seconds) ? new Date(seconds * 1000) : new Date();
  return approve(decision, { userId, signedInAt }, services, clientInfoOf(request));
}

function toDetails({ request, client, user }: Decision): object {
  const url = new URL(request.redirect_uri);
  return {
    authorization_id: request.id,
    redirect_uri: request.redirect_uri.slice(0, request.redirect_uri.length - url.search.length),
    client: { id: client.id, name: client.name, uri: client.uri ?? "", logo_uri: client.logo_uri ?? "" },
    user: { id: user.id, email: user.email },
    scope: request.scopes.join(" "),
    resource: request.resource,
  };
}

function redirectResponse(address: string): GatewayResponse {
  return jsonResponse(200, { redirect_url: address });
}
