import { generateSecret } from "#accounts";
import {
  clearSessionCookie,
  clientInfoOf,
  csrfTokenOf,
  type GatewayRequest,
  type GatewayRoutes,
  jsonResponse,
  setSessionCookie,
} from "#http";
import {
  type AuthDependencies,
  authenticateUser,
  authRequired,
  findSession,
  type LimitedAuthDependencies,
  type RequestSession,
  requireSecondFactor,
} from "#rest-gateway/authenticate";
import { readIdempotencyKey } from "#rest-gateway/pipeline";
import { OPTIONAL_INTEGER, OPTIONAL_TEXT, readFields, TEXT } from "./request/read-body.ts";

const ACCOUNT_FIELDS = {
  name: TEXT,
  email: TEXT,
  password: TEXT,
  username: OPTIONAL_TEXT,
  age: OPTIONAL_INTEGER,
};
const LOGIN_FIELDS = { username: TEXT, password: TEXT, code: OPTIONAL_TEXT };
const PASSWORD_CHANGE_FIELDS = { currentPassword: TEXT, newPassword: TEXT };

/** Routes for sign-in by programs, with an access token and a refresh token. */
export function tokenRoutes(services: LimitedAuthDependencies): GatewayRoutes {
  const { register, findRegistrationFaults, login, changePassword, tokens, sessions } = services.accounts;
  return {
    "/auth/register": {
      POST: async (request) => {
        await services.limitExpensive(request);
        const account = await readFields(request, ACCOUNT_FIELDS, findRegistrationFaults);
        const { user, opened } = await register(account, clientInfoOf(request), tokens.open);
        return jsonResponse(201, { user, ...opened });
      },
    },
    "/auth/login": {
      POST: async (request) => {
        const credentials = await readFields(request, LOGIN_FIELDS);
        return jsonResponse(200, await login(credentials, clientInfoOf(request), tokens.open));
      },
    },
    "/auth/refresh": {
      POST: async (request) => {
        const { refreshToken } = await readFields(request, { refreshToken: TEXT });
        const retryKey = readIdempotencyKey(request.headers);
        return jsonResponse(200, await tokens.refresh(refreshToken, clientInfoOf(request), { retryKey }));
      },
    },
    "/auth/logout": {
      POST: async (request) => {
        const { userId } = await authenticateUser(request, services);
        await tokens.revoke(userId, clientInfoOf(request));
        return jsonResponse(200, { message: "Signed out. All refresh tokens of this user are revoked." });
      },
    },
    "/auth/password": {
      POST: async (request) => {
        const { userId, caller } = await authenticateUser(request, services);
        await requireSecondFactor(caller, services);
        const change = await readFields(request, PASSWORD_CHANGE_FIELDS);
        const clientInfo = clientInfoOf(request);
        if (caller.kind !== "session")
          return jsonResponse(200, await changePassword(userId, change, clientInfo, tokens.open));
        const { id } = await changePassword(userId, change, clientInfo, sessions.open);
        return jsonResponse(
          200,
          { message: "The password is changed. All other sessions and tokens are revoked." },
          setSessionCookie(id),
        );
      },
    },
  };
}

/** Routes for sign-in by browsers, with a session cookie. */
export function sessionRoutes({ accounts: { login, sessions }, csrf }: AuthDependencies): GatewayRoutes {
  const requireSession = async (request: GatewayRequest): Promise<RequestSession> => {
    const session = await findSession(request, sessions);
    if (!session) throw authRequired();
    csrf.checkRequest(request, session.id);
    return session;
  };

  return {
    "/api/auth/login": {
      POST: async (request) => {
        const credentials = await readFields(request, LOGIN_FIELDS);
        const { id, username, claims } = await login(credentials, clientInfoOf(request), sessions.open);
        return jsonResponse(200, { username, role: claims.role, message: "Signed in." }, setSessionCookie(id));
      },
    },
    "/api/auth/logout": {
      POST: async (request) => {
        const { id } = await requireSession(request);
        await sessions.close(id, clientInfoOf(request));
        return jsonResponse(200, { message: "Signed out." }, clearSessionCookie());
      },
    },
    "/api/auth/me": {
      GET: async (request) => {
        const { userId, username, claims, signedInAt } = await requireSession(request);
        const info = { userId: Number(userId), username, role: claims.role, loginTime: signedInAt.toISOString() };
        return jsonResponse(200, info);
      },
    },
    "/csrf-token": {
      GET: async (request) => {
        const session = await findSession(request, sessions);
        // Without a session, the token is random and matches nothing.
        return jsonResponse(200, { csrfToken: csrfTokenOf(session?.id ?? generateSecret()) });
      },
    },
  };
}
