import { keepSession } from "../../engine/caller/session-cookie.ts";
import type { Routes } from "../gateway.ts";
import { json } from "../http.ts";
import { readIdempotencyKey } from "../idempotency/read-idempotency-key.ts";
import type { LimitedAuthDependencies } from "./auth-dependencies.ts";
import { OPTIONAL_INTEGER, OPTIONAL_TEXT, readFields, TEXT } from "./body-fields.ts";
import { clientInfoOf } from "./client-info.ts";
import { identifyUser } from "./credentials.ts";

const ACCOUNT_FIELDS = {
  name: TEXT,
  email: TEXT,
  password: TEXT,
  username: OPTIONAL_TEXT,
  age: OPTIONAL_INTEGER,
};
const LOGIN_FIELDS = { username: TEXT, password: TEXT, code: OPTIONAL_TEXT };
const PASSWORD_CHANGE_FIELDS = { currentPassword: TEXT, newPassword: TEXT };

/** Sign-in for programs, with an access token and a refresh token. */
export function tokenRoutes(services: LimitedAuthDependencies): Routes {
  const { register, findRegistrationFaults, login, changePassword, tokens, sessions } = services.accounts;
  return {
    "/auth/register": {
      POST: async (request) => {
        await services.limitExpensive(request);
        const account = await readFields(request, ACCOUNT_FIELDS, findRegistrationFaults);
        const { user, opened } = await register(account, clientInfoOf(request), tokens.open);
        return json(201, { user, ...opened });
      },
    },
    "/auth/login": {
      POST: async (request) => {
        const credentials = await readFields(request, LOGIN_FIELDS);
        return json(200, await login(credentials, clientInfoOf(request), tokens.open));
      },
    },
    "/auth/refresh": {
      POST: async (request) => {
        const { refreshToken } = await readFields(request, { refreshToken: TEXT });
        const retryKey = readIdempotencyKey(request.headers);
        return json(200, await tokens.refresh(refreshToken, clientInfoOf(request), { retryKey }));
      },
    },
    "/auth/logout": {
      POST: async (request) => {
        const { userId } = await identifyUser(request, services);
        await tokens.revoke(userId, clientInfoOf(request));
        return json(200, { message: "Signed out. All refresh tokens of this user are revoked." });
      },
    },
    "/auth/password": {
      POST: async (request) => {
        const { userId, caller } = await identifyUser(request, services);
        const change = await readFields(request, PASSWORD_CHANGE_FIELDS);
        const clientInfo = clientInfoOf(request);
        if (caller.kind !== "session") return json(200, await changePassword(userId, change, clientInfo, tokens.open));
        const { id } = await changePassword(userId, change, clientInfo, sessions.open);
        return json(
          200,
          { message: "The password is changed. All other sessions and tokens are revoked." },
          keepSession(id),
        );
      },
    },
  };
}
