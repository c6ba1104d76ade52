import { describe, expect, test } from "vitest";
import type { Service } from "../../../service/wiring/service.ts";
import { useFixture } from "../../fixture.ts";
import { serve } from "../../serve.ts";
import { SERVICE_KEY } from "../sign-up-ways.ts";
import { ANON_KEY } from "./auth-v1/auth-client.ts";
import { newPerson, newSession, openGateways, PASSWORD, type Person, type TestResponse } from "./gateways.ts";

/** The default policy accepts it, and the strict one refuses it for want of a symbol. */
const WITHOUT_SYMBOL = "Ab3456789";
const STRONG = "Quartz-Bird-8";
/** Every policy refuses it. */
const SHORT = "aB3";
const RESET = "Set a new password";

const anonymous = { apikey: ANON_KEY };
const server = { apikey: SERVICE_KEY, Authorization: `Bearer ${SERVICE_KEY}` };

const gateways = useFixture(() => openGateways({ settings: { AUTH_AUTOCONFIRM: "true" } }));

type Change = { readonly url: string; readonly person: Person; readonly password: string };
/** A way to set the password of an account that exists. */
type PasswordChange = (change: Change) => Promise<Pick<TestResponse, "status" | "text">>;

const bearer = ({ person }: Change) => ({ Authorization: `Bearer ${person.pair.accessToken}` });
const resetToken = async ({ url, person: { email } }: Change) => {
  await gateways.post(`${url}/auth/forgot-password`, { email });
  return (await gateways.linkIn({ to: email, about: RESET })).searchParams.get("token")!;
};
const form = (url: string, path: string, headers: Record<string, string>, fields: Record<string, string>) =>
  gateways.post(`${url}${path}`, new URLSearchParams(fields).toString(), {
    headers: { Origin: url, "Content-Type": "application/x-www-form-urlencoded", ...headers },
  });
const openTokens = async ({ url, person: { email } }: Change) => {
  const login = { email, password: PASSWORD };
  const { body } = await gateways.post(`${url}/auth/v1/token?grant_type=password`, login, { headers: anonymous });
  return { token: body.access_token as string, id: body.user.id as string };
};

const WAYS: Readonly<Record<string, PasswordChange>> = {
  "POST /auth/password": (change) =>
    gateways.post(
      `${change.url}/auth/password`,
      { currentPassword: PASSWORD, newPassword: change.password },
      { headers: bearer(change) },
    ),
  "POST /auth/password of a session": async ({ url, person, password }) =>
    gateways.post(
      `${url}/auth/password`,
      { currentPassword: PASSWORD, newPassword: password },
      { headers: { Origin: url, ...(await newSession(gateways, person.email)) } },
    ),
  "POST /auth/reset-password": async (change) =>
    gateways.post(`${change.url}/auth/reset-password`, { token: await resetToken(change), password: change.password }),
  "the page of the link in an e-mail": async (change) => {
    const link = await resetToken(change);
    return form(change.url, "/auth/new-password", {}, { token: link, password: change.password });
  },
  "PUT /auth/v1/user": async (change) =>
    gateways.post(
      `${change.url}/auth/v1/user`,
      { password: change.password },
      { method: "PUT", headers: { ...anonymous, Authorization: `Bearer ${(await openTokens(change)).token}` } },
    ),
  "PUT /auth/v1/admin/users": async (change) => {
    const { id } = await openTokens(change);
    return gateways.post(
      `${change.url}/auth/v1/admin/users/${id}`,
      { password: change.password },
      { method: "PUT", headers: server },
    );
  },
};

/** Runs `use` with another gateway on the same database. */
async function withSettings<T>(settings: NodeJS.ProcessEnv, use: (url: string) => Promise<T>): Promise<T> {
  const other: Service = await serve(gateways.database, {
    ...{ BASE_SCHEMA: "content", RATE_LIMIT: "6000", TRUST_PROXY: "loopback", AUTH_AUTOCONFIRM: "true" },
    ...{ MAIL_DIR: gateways.mailDir, ...settings },
  });
  try {
    return await use(other.url);
  } finally {
    await other.stop();
    await gateways.owner.query("select auth.set_account_settings(true)");
  }
}

/** Tries a way on a new account, and returns its response, and which of both passwords holds afterwards. */
async function tryWay(way: PasswordChange, change: Change): Promise<readonly [string, string]> {
  const { person, password } = change;
  const { status } = await way(change);
  const login = async (tried: string) =>
    (await gateways.post(`${gateways.one.url}/auth/login`, { username: person.email, password: tried })).status === 200;
  const holds = [(await login(PASSWORD)) && "former", (await login(password)) && "new"].filter(Boolean).join(" and ");
  return [status < 400 ? "done" : status < 500 ? "refused" : String(status), holds];
}

const DONE = ["done", "new"];
const REFUSED = ["refused", "former"];

/** A setting, the new password, and the outcome of each way. */
const RULES: readonly (readonly [NodeJS.ProcessEnv, password: string, outcome: readonly string[]])[] = [
  [{}, STRONG, DONE],
  [{}, SHORT, REFUSED],
  [{ PASSWORD_POLICY: "minimal" }, WITHOUT_SYMBOL, DONE],
  [{ PASSWORD_POLICY: "strict" }, WITHOUT_SYMBOL, REFUSED],
  [{ PASSWORD_POLICY: "strict" }, STRONG, DONE],
  [{ AUTH_SIGN_UPS: "false" }, STRONG, DONE],
  [{ AUTH_AUTOCONFIRM: "false" }, STRONG, DONE],
  [{ USERS_ACCESS: "owner" }, STRONG, DONE],
  [{ AUTH_PASSWORD_REAUTHENTICATION: "false" }, STRONG, DONE],
];

describe("each way to set the password of an account", () => {
  test.each(RULES)("with %j and %s: %j", async (settings, password, outcome) => {
    // People sign up before, because one of the settings closes sign-ups for all gateways.
    const people = new Map<string, Person>();
    for (const name of Object.keys(WAYS)) people.set(name, await newPerson(gateways));
    const found = await withSettings(settings, (url) =>
      Promise.all(
        Object.entries(WAYS).map(async ([name, way]) => {
          return [name, await tryWay(way, { url, password, person: people.get(name)! })];
        }),
      ),
    );
    expect(Object.fromEntries(found)).toEqual(Object.fromEntries(Object.keys(WAYS).map((name) => [name, outcome])));
  });
});
