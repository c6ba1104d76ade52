import type { AuthSession } from "#accounts";
import { CredentialError } from "#accounts/identity";
import { clientInfoOf, HttpError, jsonResponse } from "#http";
import { ApiError } from "#runtime";
import type { JsonObject } from "#runtime/json";
import {
  type AuthRequest,
  type AuthRouteHandler,
  type AuthV1Routes,
  type AuthV1Services,
  readJsonBody,
  readText,
} from "./auth-v1-request.ts";
import { readPhone } from "./code-request.ts";
import { authError, credentialRejected, validationFailed } from "./errors.ts";
import { pkceGrant } from "./mail-routes.ts";
import { idTokenGrant } from "./provider-routes.ts";
import { toSessionJson } from "./session-json.ts";

/** Routes that exchange a proof of sign-in for a session. */
export function tokenRoutes(services: AuthV1Services): AuthV1Routes {
  const grants: Readonly<Record<string, AuthRouteHandler>> = {
    password: passwordGrant(services),
    refresh_token: refreshGrant(services),
    pkce: pkceGrant(services),
    id_token: idTokenGrant(services),
    web3: () => {
      throw authError(422, "web3_provider_disabled", "Web3 provider is disabled");
    },
  };
  return {
    "POST /token": (request) => {
      const type = request.query.get("grant_type") ?? "";
      const grant = Object.hasOwn(grants, type) ? grants[type]! : null;
      if (grant === null) throw validationFailed(`Unsupported grant_type: "${type}"`);
      return grant(request);
    },
  };
}

function passwordGrant({ accounts }: AuthV1Services): AuthRouteHandler {
  const { openConfirmed } = accounts.authSessions;
  return async (request) => {
    const body = await readJsonBody(request);
    const [email, phone, password] = [readText(body, "email"), readText(body, "phone"), readText(body, "password")];
    if (email !== "" && phone !== "") {
      throw validationFailed("Only an email address or phone number should be provided on login.");
    }
    if (email === "" && phone === "") throw validationFailed("missing email or phone");
    const username = email === "" ? await findUsername(accounts, body) : email;
    const session = await accounts.passwordLogin({ username, password }, clientInfoOf(request), openConfirmed);
    if (session === null) {
      throw email === "" ? authError(400, "phone_not_confirmed", "Phone not confirmed") : emailNotConfirmed();
    }
    return jsonResponse(200, toSessionJson(session));
  };
}

function findUsername({ phones }: AuthV1Services["accounts"], body: JsonObject): Promise<string> {
  if (!phones) throw authError(400, "phone_provider_disabled", "Phone logins are disabled");
  return phones.usernameOf(readPhone(body));
}

function emailNotConfirmed() {
  return authError(400, "email_not_confirmed", "Email not confirmed");
}

function refreshGrant({ accounts: { authSessions } }: AuthV1Services): AuthRouteHandler {
  const refresh = async (request: AuthRequest, refreshToken: string): Promise<AuthSession> => {
    try {
      return await authSessions.refresh(refreshToken, clientInfoOf(request));
    } catch (error) {
      throw error instanceof ApiError && !(error instanceof HttpError) ? refreshError(error) : error;
    }
  };
  return async (request) => {
    const refreshToken = readText(await readJsonBody(request), "refresh_token");
    if (refreshToken === "") throw validationFailed("refresh_token required");
    return jsonResponse(200, toSessionJson(await refresh(request, refreshToken)));
  };
}

function refreshError(error: ApiError): ApiError {
  if (error instanceof CredentialError) return credentialRejected(error.reason, error.message);
  const isRefused = error.kind === "unauthenticated" || error.kind === "invalid";
  return isRefused ? credentialRejected("refreshTokenInvalid") : error;
}
