import { userIdOf } from "../../engine/auth/user-id.ts";
import type { Caller, Callers, Credentials } from "../../engine/caller/caller.ts";
import type { CrossSite } from "../../engine/caller/cross-site.ts";
import { keepSession, readSessionCookie } from "../../engine/caller/session-cookie.ts";
import { ApiError } from "../../engine/errors.ts";
import type { GatewayRequest } from "../http.ts";
import { readBasicCredentials, withBasicChallenge } from "./basic-authentication.ts";

type IdentificationDependencies = { readonly callers: Callers; readonly crossSite: CrossSite };

export type IdentifiedUser = { readonly userId: string; readonly caller: Caller };

/**
 * Identifies the caller by any credential of the resource interface. Browsers send cookies and Basic credentials
 * automatically, so requests with these are checked for CSRF.
 */
export function identifyCaller(
  request: GatewayRequest,
  { callers, crossSite }: IdentificationDependencies,
): Caller | Promise<Caller> {
  const credentials = readCredentials(request);
  const { login = null, session = null } = credentials;
  const admitCaller = (caller: Caller): Caller => {
    request.admit(caller);
    if (login) crossSite.guard(request, null);
    if (caller.kind === "session") {
      crossSite.guard(request, session);
      request.tell(keepSession(session!));
    }
    return caller;
  };
  const caller = login ? identifyByPassword(callers, credentials) : callers.identify(credentials);
  return caller instanceof Promise ? caller.then(admitCaller) : admitCaller(caller);
}

async function identifyByPassword(callers: Callers, credentials: Credentials): Promise<Caller> {
  try {
    return await callers.identify(credentials);
  } catch (error) {
    throw withBasicChallenge(error);
  }
}

/** Requires a signed-in user; API keys are refused. */
export async function identifyUser(
  request: GatewayRequest,
  services: IdentificationDependencies,
): Promise<IdentifiedUser> {
  const caller = await identifyCaller(request, services);
  if (caller.kind === "anonymous") throw authRequired();
  if (caller.kind === "key") {
    throw new ApiError(403, "PERMISSION_DENIED", "This operation is not allowed with an API key; sign in.");
  }
  return { userId: userIdOf(caller.claims), caller };
}

export function authRequired(): ApiError {
  return new ApiError(401, "AUTH_REQUIRED", "Sign in first.", { headers: { "WWW-Authenticate": "Bearer" } });
}

const API_KEY_PARAMETER = "api_key";

/** Removes the API key from the query string. */
export function queryWithoutApiKey(rawQuery: string): string {
  if (!rawQuery.includes(`${API_KEY_PARAMETER}=`)) return rawQuery;
  return rawQuery
    .split("&")
    .filter((part) => !new URLSearchParams(part).has(API_KEY_PARAMETER))
    .join("&");
}

/** `Authorization: Bearer …` or `Basic …`, `X-API-Key: …`, `?api_key=…`, `Cookie: SESSION=…`, in this order of precedence. */
function readCredentials(request: GatewayRequest): Credentials {
  const { headers, rawQuery } = request;
  const login = readBasicCredentials(request);
  if (login) return { authorization: null, login };
  const { authorization = null, "x-api-key": inHeader } = headers;
  const inQuery = rawQuery.includes(`${API_KEY_PARAMETER}=`)
    ? new URLSearchParams(rawQuery).get(API_KEY_PARAMETER)
    : null;
  const apiKey = typeof inHeader === "string" && inHeader !== "" ? inHeader : inQuery;
  return { authorization, apiKey, session: readSessionCookie(headers) };
}
