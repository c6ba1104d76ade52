import type { Authenticator } from "#accounts/identity";
import { type GatewayHandler, type GatewayRequest, makeRouteFinder, toHttpError } from "#http";
import { authenticateTableCaller } from "#rest-gateway/table/authenticate";
import { oauthRoutes } from "../oauth/oauth-routes.ts";
import { accountRoutes } from "./account-routes.ts";
import { adminRoutes } from "./admin-routes.ts";
import type { AuthV1Routes, AuthV1Services } from "./auth-v1-request.ts";
import { authError, COMMON_HEADERS } from "./errors.ts";
import { factorRoutes } from "./factor-routes.ts";
import { mailRoutes } from "./mail-routes.ts";
import { clientAdministrationRoutes, registrationRoutes } from "./oauth-client-routes.ts";
import { grantRoutes } from "./oauth-grant-routes.ts";
import { passkeyRoutes } from "./passkey-routes.ts";
import { providerRoutes } from "./provider-routes.ts";
import { settingsRoutes } from "./settings-routes.ts";
import { tokenRoutes } from "./token-routes.ts";

export const AUTH_V1_PREFIX = "/auth/v1";

/** Paths for requests without a key: links and redirects, verification keys of tokens, health checks, and applications. */
const OPEN_PATHS: ReadonlySet<string> = new Set([
  "/authorize",
  "/callback",
  "/verify",
  "/.well-known/jwks.json",
  "/health",
  ...["/oauth/authorize", "/oauth/token", "/oauth/revoke", "/oauth/introspect", "/oauth/userinfo"],
  "/oauth/clients/register",
]);

/** The interface of Supabase Auth (GoTrue), over the accounts of `/auth`: parses requests, and formats responses. */
export function authV1Handler(services: AuthV1Services): GatewayHandler {
  const findRoute = makeRouteFinder(authV1Routes(services));
  const { requireApiKey } = services.config;
  return async (request) => {
    const path = request.path.slice(AUTH_V1_PREFIX.length);
    const { handle, parameters } = findRoute(request.method, path);
    if (!OPEN_PATHS.has(path)) await checkApiKey(request, services.authenticator, requireApiKey);
    const query = new URLSearchParams(request.rawQuery);
    const response = await handle({ ...request, parameters, query });
    return { ...response, headers: { ...COMMON_HEADERS, ...response.headers } };
  };
}

export function authV1Routes(services: AuthV1Services): AuthV1Routes {
  return {
    ...settingsRoutes(services),
    ...tokenRoutes(services),
    ...mailRoutes(services),
    ...accountRoutes(services),
    ...adminRoutes(services),
    ...providerRoutes(services),
    ...factorRoutes(services),
    ...passkeyRoutes(services),
    ...oauthRoutes(services),
    ...(services.config.oauthServer && {
      ...registrationRoutes(services),
      ...grantRoutes(services),
      ...clientAdministrationRoutes(services),
    }),
  };
}

/** Checks the key, which identifies the deployment's client, as at /rest/v1. The routes that require a bearer token read it. */
async function checkApiKey(request: GatewayRequest, authenticator: Authenticator, isRequired: boolean): Promise<void> {
  const { authorization: _authorization, ...headers } = request.headers;
  const { rawQuery } = request;
  try {
    await authenticateTableCaller({ headers, rawQuery }, authenticator, isRequired);
  } catch (error) {
    const { status, message, hint } = toHttpError(error);
    if (status !== 401) throw error;
    throw authError(401, "no_authorization", message, { hint });
  }
}
