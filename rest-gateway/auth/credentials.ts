import { userIdOf } from "../../engine/auth/user-id.ts";
import type { Caller, Callers, Credentials } from "../../engine/caller/caller.ts";
import type { CrossSite } from "../../engine/caller/cross-site.ts";
import { keepSession, readSessionCookie } from "../../engine/caller/session-cookie.ts";
import { ApiError } from "../../engine/errors.ts";
import type { GatewayRequest } from "../http.ts";
import { challenged, readBasic } from "./basic.ts";

type Services = { readonly callers: Callers; readonly crossSite: CrossSite };

export type User = { readonly userId: string; readonly caller: Caller };

/**
 * Who asks, by any credential of the conventional interface. A browser shows its cookie, and a password that it has once
 * been told, unasked: a change by those wants more.
 */
export function identifyCaller(request: GatewayRequest, { callers, crossSite }: Services): Caller | Promise<Caller> {
  const credentials = credentialsOf(request);
  const { login = null, session = null } = credentials;
  const welcome = (caller: Caller): Caller => {
    request.admit(caller);
    if (login) crossSite.guard(request, null);
    if (caller.kind === "session") {
      crossSite.guard(request, session);
      request.tell(keepSession(session!));
    }
    return caller;
  };
  const caller = login ? challenging(callers, credentials) : callers.identify(credentials);
  return caller instanceof Promise ? caller.then(welcome) : welcome(caller);
}

async function challenging(callers: Callers, credentials: Credentials): Promise<Caller> {
  try {
    return await callers.identify(credentials);
  } catch (error) {
    throw challenged(error);
  }
}

/** For what users do to their own accounts, and no program with a key of theirs. */
export async function identifyUser(request: GatewayRequest, services: Services): Promise<User> {
  const caller = await identifyCaller(request, services);
  if (caller.kind === "anonymous") throw authRequired();
  if (caller.kind === "key") {
    throw new ApiError(403, "PERMISSION_DENIED", "An API key may not do this; sign in.");
  }
  return { userId: userIdOf(caller.claims), caller };
}

export function authRequired(): ApiError {
  return new ApiError(401, "AUTH_REQUIRED", "Sign in first.", { headers: { "WWW-Authenticate": "Bearer" } });
}

const KEY_IN_QUERY = "api_key";

/** What is asked for, whoever asks. */
export function queryWithoutApiKey(rawQuery: string): string {
  if (!rawQuery.includes(`${KEY_IN_QUERY}=`)) return rawQuery;
  return rawQuery
    .split("&")
    .filter((part) => !new URLSearchParams(part).has(KEY_IN_QUERY))
    .join("&");
}

/** `Authorization: Bearer …` or `Basic …`, `X-API-Key: …`, `?api_key=…`, `Cookie: SESSION=…`; of several the first counts. */
function credentialsOf(request: GatewayRequest): Credentials {
  const { headers, rawQuery } = request;
  const login = readBasic(request);
  if (login) return { authorization: null, login };
  const { authorization = null, "x-api-key": inHeader } = headers;
  const inQuery = rawQuery.includes(`${KEY_IN_QUERY}=`) ? new URLSearchParams(rawQuery).get(KEY_IN_QUERY) : null;
  const apiKey = typeof inHeader === "string" && inHeader !== "" ? inHeader : inQuery;
  return { authorization, apiKey, session: readSessionCookie(headers) };
}
