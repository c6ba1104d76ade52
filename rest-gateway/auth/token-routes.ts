import { keepSession } from "../../engine/caller/session-cookie.ts";
import type { Routes } from "../gateway.ts";
import { json } from "../http.ts";
import { readIdempotencyKey } from "../idempotency/read-idempotency-key.ts";
import { identifyUser } from "./credentials.ts";
import { OPTIONAL_INTEGER, OPTIONAL_TEXT, readFields, TEXT } from "./fields.ts";
import { senderOf } from "./sender.ts";
import type { CostlyServices } from "./services.ts";

const ACCOUNT = {
  name: TEXT,
  email: TEXT,
  password: TEXT,
  username: OPTIONAL_TEXT,
  age: OPTIONAL_INTEGER,
};
const LOGIN = { username: TEXT, password: TEXT, code: OPTIONAL_TEXT };
const PASSWORD_CHANGE = { currentPassword: TEXT, newPassword: TEXT };

/** Signing in for programs: whoever does is given a pair of tokens. */
export function tokenRoutes(services: CostlyServices): Routes {
  const { register, login, changePassword, tokens, sessions } = services.accounts;
  return {
    "/auth/register": {
      POST: async (request) => {
        await services.limitExpensive(request);
        const account = await readFields(request, ACCOUNT);
        const { user, opened } = await register(account, senderOf(request), tokens.open);
        return json(201, { user, ...opened });
      },
    },
    "/auth/login": {
      POST: async (request) => {
        const credentials = await readFields(request, LOGIN);
        return json(200, await login(credentials, senderOf(request), tokens.open));
      },
    },
    "/auth/refresh": {
      POST: async (request) => {
        const { refreshToken } = await readFields(request, { refreshToken: TEXT });
        const retryKey = readIdempotencyKey(request.headers);
        return json(200, await tokens.refresh(refreshToken, senderOf(request), { retryKey }));
      },
    },
    "/auth/logout": {
      POST: async (request) => {
        const { userId } = await identifyUser(request, services);
        await tokens.revoke(userId, senderOf(request));
        return json(200, { message: "Signed out: no refresh token of this user is good any more." });
      },
    },
    "/auth/password": {
      POST: async (request) => {
        const { userId, caller } = await identifyUser(request, services);
        const change = await readFields(request, PASSWORD_CHANGE);
        const sender = senderOf(request);
        if (caller.kind !== "session") return json(200, await changePassword(userId, change, sender, tokens.open));
        const { id } = await changePassword(userId, change, sender, sessions.open);
        return json(200, { message: "The password is changed; other sign-ins have ended." }, keepSession(id));
      },
    },
  };
}
