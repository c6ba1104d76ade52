import type { LivingSession } from "../../engine/auth/sessions.ts";
import type { Routes } from "../gateway.ts";
import { type GatewayRequest, json } from "../http.ts";
import { authRequired } from "./credentials.ts";
import { crossSiteToken } from "./cross-site.ts";
import { OPTIONAL_TEXT, readFields, TEXT } from "./fields.ts";
import { senderOf } from "./sender.ts";
import type { AuthServices } from "./services.ts";
import { forgetSession, keepSession, readSessionCookie } from "./session-cookie.ts";

const LOGIN = { username: TEXT, password: TEXT, code: OPTIONAL_TEXT };

/** Signing in for browsers: whoever does is given a cookie. */
export function sessionRoutes({ accounts: { login, sessions }, guard }: AuthServices): Routes {
  const sessionOf = async ({ headers }: GatewayRequest): Promise<LivingSession & { readonly id: string }> => {
    const id = readSessionCookie(headers);
    const session = id === null ? null : await sessions.use(id);
    if (!session) throw authRequired();
    return { ...session, id: id! };
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
        guard(request.headers, id);
        await sessions.close(id, senderOf(request));
        return json(200, { message: "Signed out." }, forgetSession());
      },
    },
    "/api/auth/me": {
      GET: async (request) => {
        const { id, userId, username, claims, signedInAt } = await sessionOf(request);
        const info = { userId: Number(userId), username, role: claims.role, loginTime: signedInAt.toISOString() };
        return json(200, info, keepSession(id));
      },
    },
    "/csrf-token": {
      GET: async (request) => json(200, { csrfToken: crossSiteToken((await sessionOf(request)).id) }),
    },
  };
}
