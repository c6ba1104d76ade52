import { hash } from "node:crypto";
import type pg from "pg";
import { type AccessClaims, isUuid } from "#accounts";
import { ANY_RESOURCE, type Claims, CredentialError, readOAuthAccess, resourceAddress } from "#accounts/identity";
import { clientInfoOf, type GatewayResponse, jsonResponse, type MatchedRequest, type PatternRoutes } from "#http";
import { readForm } from "../request/read-body.ts";
import { authenticateClient } from "./authenticate-client.ts";
import { GRANT_TYPES, type OAuthClient } from "./client-store.ts";
import { OAuthError, withOAuthErrors } from "./oauth-error.ts";
import type { OAuthServices } from "./oauth-services.ts";
import type { OAuthSession, TokenReference } from "./oauth-store.ts";
import { refuseRepeated } from "./refuse-repeated.ts";

type ClientRequest = {
  readonly request: MatchedRequest;
  readonly client: OAuthClient;
  readonly parameters: URLSearchParams;
};

const VERIFIER = /^[\w.~-]{43,128}$/;
const JWT_SHAPE = /^[\w-]+\.[\w-]+\.[\w-]+$/;

/** Routes that applications call without a browser. */
export function oauthTokenRoutes(services: OAuthServices): PatternRoutes {
  const forClients = (handle: (request: ClientRequest) => Promise<GatewayResponse>) => (request: MatchedRequest) =>
    withOAuthErrors(async () => {
      const parameters = await readForm(request);
      refuseRepeated(parameters);
      return handle({
        request,
        parameters,
        client: await authenticateClient(request, parameters, services.oauthStore),
      });
    });
  const userInfo = (request: MatchedRequest) => withOAuthErrors(() => readUserInfo(request, services));
  return {
    "POST /oauth/token": forClients((request) => issueTokens(request, services)),
    "POST /oauth/revoke": forClients(async ({ request, client, parameters }) => {
      const reference = await findReference(parameters, client, services);
      if (reference) await services.oauthStore.revoke(client.id, reference, clientInfoOf(request));
      return jsonResponse(200, {});
    }),
    "POST /oauth/introspect": forClients((request) => introspect(request, services)),
    "GET /oauth/userinfo": userInfo,
    "POST /oauth/userinfo": userInfo,
  };
}

async function issueTokens(request: ClientRequest, services: OAuthServices): Promise<GatewayResponse> {
  const { parameters, client } = request;
  const grantType = GRANT_TYPES.find((each) => each === parameters.get("grant_type"));
  if (grantType === undefined) {
    throw new OAuthError("unsupported_grant_type", `grant_type must be ${GRANT_TYPES.join(" or ")}.`);
  }
  if (!client.grant_types.includes(grantType)) {
    throw new OAuthError("invalid_grant", "This client is not registered for this grant_type.");
  }
  const sign = (connection: pg.ClientBase, session: OAuthSession) =>
    toTokenResponse(connection, restrictTarget(parameters, session), client, services);
  const body =
    grantType === "refresh_token" ? await refresh(request, services, sign) : await exchange(request, services, sign);
  return jsonResponse(200, body, { "Cache-Control": "no-store", Pragma: "no-cache" });
}

type Sign = (connection: pg.ClientBase, session: OAuthSession) => Promise<object>;

async function exchange(
  { request, parameters, client }: ClientRequest,
  { oauthStore: store }: OAuthServices,
  sign: Sign,
) {
  const verifier = parameters.get("code_verifier") ?? "";
  if (!VERIFIER.test(verifier)) throw new OAuthError("invalid_request", "Send the code_verifier of this code (PKCE).");
  const submitted = {
    code: parameters.get("code") ?? "",
    clientId: client.id,
    redirectUri: parameters.get("redirect_uri") ?? "",
    challenge: hash("sha256", verifier, "base64url"),
  };
  // The address of the application is left out, since it would allow more password attempts from a network where the user has signed in.
  const clientInfo = { ...clientInfoOf(request), address: null };
  const body = await store.exchange(submitted, clientInfo, sign);
  if (body) return body;
  throw new OAuthError("invalid_grant", "The code, its redirect_uri or its code_verifier is wrong, used, or expired.");
}

async function refresh(
  { request, parameters, client }: ClientRequest,
  { oauthStore: store }: OAuthServices,
  sign: Sign,
) {
  const token = parameters.get("refresh_token") ?? "";
  const body = await store.refresh(token, client.id, clientInfoOf(request), sign);
  if (body) return body;
  throw new OAuthError("invalid_grant", "The refresh token is wrong, used, or expired: ask the user again.");
}

/** Restricts tokens to the resource that the user has approved, and to no more scopes. Throws before anything is committed. */
function restrictTarget(parameters: URLSearchParams, session: OAuthSession): OAuthSession {
  const { grant } = session;
  const resources = parameters.getAll("resource").map((each) => resourceAddress(each, ""));
  if (resources.some((each) => each !== grant.resource)) {
    throw new OAuthError("invalid_target", "The user has approved another resource.");
  }
  const scopes = (parameters.get("scope") ?? "").split(" ").filter((scope) => scope !== "");
  if (scopes.some((scope) => !grant.scopes.includes(scope))) {
    throw new OAuthError("invalid_scope", "The user has not approved these scopes.");
  }
  return scopes.length === 0 ? session : { ...session, grant: { ...grant, scopes } };
}

async function toTokenResponse(
  connection: pg.ClientBase,
  { grant, claims, refreshToken, nonce, signedInAt }: OAuthSession,
  client: OAuthClient,
  { accounts: { oauthTokens } }: OAuthServices,
): Promise<object> {
  const { accessToken, expiresIn, subject } = await oauthTokens.signAccess(connection, claims, grant);
  const idClaims = {
    sub: subject,
    ...profileClaims(claims, grant.scopes),
    ...(signedInAt && { auth_time: Math.floor(signedInAt.getTime() / 1000) }),
  };
  const hasIdToken = grant.scopes.includes("openid") && oauthTokens.canBeVerified;
  return {
    access_token: accessToken,
    token_type: "Bearer",
    expires_in: expiresIn,
    ...(client.grant_types.includes("refresh_token") && { refresh_token: refreshToken }),
    scope: grant.scopes.join(" "),
    ...(hasIdToken && { id_token: oauthTokens.signIdToken({ clientId: client.id, nonce, claims: idClaims }) }),
  };
}

/** Returns the claims about the user that the scopes allow. Addresses and numbers are empty until they are proved. */
function profileClaims(claims: Claims, scopes: readonly string[]): AccessClaims {
  const has = (scope: string) => scopes.includes(scope);
  const { name, email, phone } = claims;
  return {
    ...(has("profile") && { name }),
    ...(has("email") && email ? { email, email_verified: true } : {}),
    ...(has("phone") && phone ? { phone_number: phone, phone_number_verified: true } : {}),
  };
}

/** Reads user info (OpenID Connect Core §5.3), with a token for any of our resources. */
async function readUserInfo(request: MatchedRequest, { authenticator }: OAuthServices): Promise<GatewayResponse> {
  const { authorization } = request.headers;
  if (!/^bearer\s+\S/i.test(authorization ?? "")) throw unauthorized("Send the access token.");
  const claims = await verifyAccessToken(authorization!, authenticator);
  request.admit(null);
  const access = claims && readOAuthAccess(claims);
  if (!access) throw unauthorized("The access token has expired, or does not belong to an application.");
  if (!access.scopes.includes("openid")) {
    const headers = { "WWW-Authenticate": 'Bearer error="insufficient_scope", scope="openid"' };
    throw new OAuthError("insufficient_scope", "The user has not approved the scope openid.", { status: 403, headers });
  }
  return jsonResponse(200, { sub: claims.sub, ...profileClaims(claims, access.scopes) });
}

function unauthorized(message: string): OAuthError {
  const headers = { "WWW-Authenticate": 'Bearer error="invalid_token"' };
  return new OAuthError("invalid_token", message, { status: 401, headers });
}

/** Verifies an access token; null if it is invalid. */
async function verifyAccessToken(
  authorization: string,
  authenticator: OAuthServices["authenticator"],
): Promise<Claims | null> {
  try {
    return (await authenticator.authenticate({ authorization, resource: ANY_RESOURCE })).claims;
  } catch (error) {
    if (error instanceof CredentialError) return null;
    throw error;
  }
}

/** Introspects a token (RFC 7662), for clients with a secret, about their own tokens. */
async function introspect({ client, parameters }: ClientRequest, services: OAuthServices): Promise<GatewayResponse> {
  if (client.secret_hash === null)
    throw new OAuthError("invalid_client", "Only clients with a secret may ask.", { status: 401 });
  const reference = await findReference(parameters, client, services);
  const session = reference && (await services.oauthStore.findSession(client.id, reference));
  if (!session) return jsonResponse(200, { active: false });
  const claims = "claims" in reference ? (reference.claims as Claims) : null;
  const seconds = (date: Date) => Math.floor(date.getTime() / 1000);
  return jsonResponse(200, {
    active: true,
    client_id: client.id,
    // A token may have been issued for fewer scopes.
    scope: claims?.scope ?? session.scopes.join(" "),
    aud: session.resource,
    iss: services.accounts.oauthTokens.issuer(),
    token_type: claims ? "Bearer" : "refresh_token",
    sub: claims?.sub ?? session.userId,
    iat: claims?.iat ?? seconds(session.issuedAt),
    exp: claims?.exp ?? seconds(session.expiresAt),
  });
}

/** Finds the client's sign-in that a token belongs to; null for an access token that is invalid, or of another client. */
async function findReference(
  parameters: URLSearchParams,
  client: OAuthClient,
  { authenticator }: OAuthServices,
): Promise<(TokenReference & { readonly claims?: Claims }) | null> {
  const token = parameters.get("token") ?? "";
  if (token === "") throw new OAuthError("invalid_request", "Send the token.");
  if (!JWT_SHAPE.test(token)) return { refreshToken: token };
  const claims = await verifyAccessToken(`Bearer ${token}`, authenticator);
  if (!claims || readOAuthAccess(claims)?.clientId !== client.id) return null;
  const { session_id: sessionId } = claims;
  return typeof sessionId === "string" && isUuid(sessionId) ? { sessionId, claims } : null;
}
