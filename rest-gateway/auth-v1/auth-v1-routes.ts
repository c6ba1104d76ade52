import type { Authenticator } from "../../engine/identity/authenticator.ts";
import { methodNotAllowed, notFound, toHttpError } from "../../http/http-error.ts";
import type { GatewayHandler, GatewayRequest } from "../http/request.ts";
import type { GatewayResponse } from "../http/response.ts";
import { authenticateTableCaller } from "../table/authenticate.ts";
import { accountRoutes } from "./account-routes.ts";
import { adminRoutes } from "./admin-routes.ts";
import type { AuthRouteHandler, AuthV1Routes, AuthV1Services } from "./auth-v1-request.ts";
import { authError, COMMON_HEADERS } from "./errors.ts";
import { factorRoutes } from "./factor-routes.ts";
import { mailRoutes } from "./mail-routes.ts";
import { passkeyRoutes } from "./passkey-routes.ts";
import { providerRoutes } from "./provider-routes.ts";
import { settingsRoutes } from "./settings-routes.ts";
import { tokenRoutes } from "./token-routes.ts";

export const AUTH_V1_PREFIX = "/auth/v1";

/** Paths for requests without headers: of links and redirects, of verifiers of tokens, and of health checks. */
const OPEN_PATHS: ReadonlySet<string> = new Set([
  "/authorize",
  "/callback",
  "/verify",
  "/.well-known/jwks.json",
  "/health",
]);

/** The interface of Supabase Auth (GoTrue), over the accounts of `/auth`: parses requests, and formats responses. */
export function authV1Handler(services: AuthV1Services): GatewayHandler {
  const findRoute = makeRouteFinder({
    ...settingsRoutes(services),
    ...tokenRoutes(services),
    ...mailRoutes(services),
    ...accountRoutes(services),
    ...adminRoutes(services),
    ...providerRoutes(services),
    ...factorRoutes(services),
    ...passkeyRoutes(services),
  });
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

/** The key identifies the deployment's client, as at /rest/v1. The bearer token is read by the routes that require one. */
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

type FoundRoute = {
  readonly handle: AuthRouteHandler;
  readonly parameters: Readonly<Record<string, string>>;
};

type RoutePattern = { readonly segments: readonly string[]; readonly methods: Map<string, AuthRouteHandler> };

/** Finds the handler of a method and path; throws 404 or 405. */
function makeRouteFinder(routes: AuthV1Routes): (method: string, path: string) => FoundRoute {
  const patterns = new Map<string, RoutePattern>();
  for (const [name, handle] of Object.entries(routes)) {
    const [method = "", path = ""] = name.split(" ");
    const pattern = patterns.get(path) ?? { segments: path.split("/"), methods: new Map() };
    pattern.methods.set(method, handle);
    patterns.set(path, pattern);
  }
  return (method, path) => {
    // A trailing slash is ignored.
    const segments = path.replace(/\/$/, "").split("/");
    for (const pattern of patterns.values()) {
      const parameters = matchSegments(pattern.segments, segments);
      if (!parameters) continue;
      const handle = pattern.methods.get(method) ?? (method === "HEAD" ? pattern.methods.get("GET") : undefined);
      const allow = [...pattern.methods.keys(), "OPTIONS"].sort().join(", ");
      if (handle) return { handle, parameters };
      if (method === "OPTIONS") return { handle: () => optionsResponse(allow), parameters };
      throw methodNotAllowed(method, allow);
    }
    throw notFound();
  };
}

function optionsResponse(allow: string): GatewayResponse {
  return { status: 204, headers: { Allow: allow }, body: null };
}

/** The values of `{name}` segments; null if the path does not match. */
function matchSegments(pattern: readonly string[], segments: readonly string[]): Record<string, string> | null {
  if (pattern.length !== segments.length) return null;
  const parameters: Record<string, string> = {};
  for (const [index, expected] of pattern.entries()) {
    const name = /^\{(\w+)\}$/.exec(expected)?.[1];
    const segment = segments[index]!;
    if (name === undefined) {
      if (segment !== expected) return null;
    } else {
      parameters[name] = decodeSegment(segment);
    }
  }
  return parameters;
}

function decodeSegment(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    throw notFound();
  }
}
