import { generateSecret } from "../../engine/auth/random-secret.ts";
import { crossSiteToken } from "../../engine/caller/cross-site.ts";
import { forgetSession, keepSession } from "../../engine/caller/session-cookie.ts";
import type { Routes } from "../gateway.ts";
import { type GatewayRequest, json } from "../http.ts";
import type { AuthDependencies } from "./auth-dependencies.ts";
import { OPTIONAL_TEXT, readFields, TEXT } from "./body-fields.ts";
import { clientInfoOf } from "./client-info.ts";
import { authRequired } from "./credentials.ts";
import { findSession, type RequestSession } from "./request-session.ts";

const LOGIN_FIELDS = { username: TEXT, password: TEXT, code: OPTIONAL_TEXT };

/** Sign-in for browsers, with a session cookie. */
export function sessionRoutes({ accounts: { login, sessions }, crossSite }: AuthDependencies): Routes {
  const requireSession = async (request: GatewayRequest): Promise<RequestSession> => {
    const session = await findSession(request, sessions);
    if (!session) throw authRequired();
    crossSite.guard(request, session.id);
    return session;
  };

  return {
    "/api/auth/login": {
      POST: async (request) => {
        const credentials = await readFields(request, LOGIN_FIELDS);
        const { id, username, claims } = await login(credentials, clientInfoOf(request), sessions.open);
        return json(200, { username, role: claims.role, message: "Signed in." }, keepSession(id));
      },
    },
    "/api/auth/logout": {
      POST: async (request) => {
        const { id } = await requireSession(request);
        await sessions.close(id, clientInfoOf(request));
        return json(200, { message: "Signed out." }, forgetSession());
      },
    },
    "/api/auth/me": {
      GET: async (request) => {
        const { userId, username, claims, signedInAt } = await requireSession(request);
        const info = { userId: Number(userId), username, role: claims.role, loginTime: signedInAt.toISOString() };
        return json(200, info);
      },
    },
    "/csrf-token": {
      GET: async (request) => {
        const session = await findSession(request, sessions);
        // Without a session, the token is random and matches nothing.
        return json(200, { csrfToken: crossSiteToken(session?.id ?? generateSecret()) });
      },
    },
  };
}
