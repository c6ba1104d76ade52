import { newSecret } from "../../engine/auth/secret.ts";
import { crossSiteToken } from "../../engine/caller/cross-site.ts";
import { forgetSession, keepSession } from "../../engine/caller/session-cookie.ts";
import type { Routes } from "../gateway.ts";
import { type GatewayRequest, json } from "../http.ts";
import { authRequired } from "./credentials.ts";
import { OPTIONAL_TEXT, readFields, TEXT } from "./fields.ts";
import { senderOf } from "./sender.ts";
import type { AuthServices } from "./services.ts";
import { findSession, type ShownSession } from "./shown-session.ts";

const LOGIN = { username: TEXT, password: TEXT, code: OPTIONAL_TEXT };

/** Signing in for browsers: whoever does is given a cookie. */
export function sessionRoutes({ accounts: { login, sessions }, crossSite }: AuthServices): Routes {
  const sessionOf = async (request: GatewayRequest): Promise<ShownSession> => {
    const session = await findSession(request, sessions);
    if (!session) throw authRequired();
    crossSite.guard(request, session.id);
    return session;
  };

  return {
    "/api/auth/login": {
      POST: async (request) => {
        const credentials = await readFields(request, LOGIN);
        const { id, username, claims } = await login(credentials, senderOf(request), sessions.open);
        return json(200, { username, role: claims.role, message: "Signed in." }, keepSession(id));
      },
    },
    "/api/auth/logout": {
      POST: async (request) => {
        const { id } = await sessionOf(request);
        await sessions.close(id, senderOf(request));
        return json(200, { message: "Signed out." }, forgetSession());
      },
    },
    "/api/auth/me": {
      GET: async (request) => {
        const { userId, username, claims, signedInAt } = await sessionOf(request);
        const info = { userId: Number(userId), username, role: claims.role, loginTime: signedInAt.toISOString() };
        return json(200, info);
      },
    },
    "/csrf-token": {
      GET: async (request) => {
        const session = await findSession(request, sessions);
        // Whoever asks is told one; without a session it is good for none.
        return json(200, { csrfToken: crossSiteToken(session?.id ?? newSecret()) });
      },
    },
  };
}
