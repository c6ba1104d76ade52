import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import jwt from "jsonwebtoken";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ACCOUNT_SETTINGS } from "../../engine/config/interface-settings.ts";
import { REPOSITORY } from "../repository.ts";
import { SECRET } from "../secret.ts";
import { at, type FederatedGateways, openFederatedGateways, SITE } from "./auth/federated-gateways.ts";
import { type Forger, openForger } from "./auth/forger.ts";
import { CLIENT, type OpenIdProvider, openOpenIdProvider } from "./auth/openid-provider.ts";
import { ANON_KEY, newAddress, PASSWORD } from "./auth-v1/auth-client.ts";

const ID_TOKEN_CLIENT = "application";
const SERVICE_KEY = jwt.sign({ role: "service_role" }, SECRET);
const WEAK = "weak";

let open: FederatedGateways;
let closed: FederatedGateways;
let provider: OpenIdProvider;
let forger: Forger;
/** The access token of a user who was there before sign-ups were closed. */
let token: string;

beforeAll(async () => {
  const settings = {
    AUTH_AUTOCONFIRM: "true",
    AUTH_ANONYMOUS_SIGN_INS: "true",
    SMS_WEBHOOK_URL: "http://127.0.0.1:9/",
  };
  const sms = { SMS_WEBHOOK_SECRET: `v1,whsec_${Buffer.alloc(32, 7).toString("base64")}` };
  open = await openFederatedGateways({ ...settings, ...sms });
  closed = await openFederatedGateways({ ...settings, ...sms, AUTH_SIGN_UPS: "false" });
  provider = await openOpenIdProvider([SITE]);
  forger = await openForger(ID_TOKEN_CLIENT);
  const { id: clientId, secret } = CLIENT;
  for (const gateways of [open, closed]) {
    await gateways.addProvider({ name: "example", kind: "oidc", issuer: provider.issuer, clientId, secret });
    await gateways.addProvider({ name: "forge", kind: "oidc", issuer: forger.issuer, clientId: ID_TOKEN_CLIENT });
  }
  const account = { email: newAddress(), password: PASSWORD, email_confirm: true };
  const headers = { apikey: SERVICE_KEY, Authorization: `Bearer ${SERVICE_KEY}` };
  expect((await closed.post(`${closed.one.url}/auth/v1/admin/users`, account, { headers })).status).toBe(200);
  const login = { username: account.email, password: PASSWORD };
  token = (await closed.post(`${closed.one.url}/auth/login`, login)).body.accessToken;
});
afterAll(async () => {
  await open?.close();
  await closed?.close();
  await provider?.close();
  await forger?.close();
});

/** Sends a request by which somebody asks for an account. Returns the status. */
type Attempt = (gateways: FederatedGateways, email: string, password?: string) => Promise<number>;

const anonymous = { apikey: ANON_KEY };
const send = (path: string, body: (email: string, password: string) => unknown, headers: Record<string, string> = {}) =>
  (async ({ one, post }, email, password = PASSWORD) => {
    return (await post(`${one.url}${path}`, body(email, password), { headers })).status;
  }) satisfies Attempt;
const user = (email: string) => ({ name: "Ada", email });
const registration = (email: string, password: string) => ({ name: "Ada", email, password });
const mutation = (email: string) => ({
  query: `mutation { createUser(input: { name: "Ada", email: "${email}" }) { id } }`,
});
const ownCredentials = () => ({ Authorization: `Bearer ${token}` });

const signUpPage: Attempt = async ({ one }, email, password = PASSWORD) => {
  const response = await fetch(`${one.url}/auth/sign-up`, {
    method: "POST",
    redirect: "manual",
    headers: { Origin: one.url, "Content-Type": "application/x-www-form-urlencoded" },
    body: new URLSearchParams({ name: "Ada", email, password }),
  });
  return response.status;
};
const openIdConnect: Attempt = async (gateways, email) => {
  const shown = await provider.signIn(gateways.browser(), at("/auth/providers/example/sign-in"), email.split("@")[0]!);
  return shown.status;
};
const idToken: Attempt = async ({ one, post }, email) => {
  const id_token = await forger.idToken({ sub: email, email, email_verified: true, name: "Ada" });
  const body = { provider: "forge", id_token };
  return (await post(`${one.url}/auth/v1/token?grant_type=id_token`, body, { headers: anonymous })).status;
};

/** All ways by which others than administrators create users, and whether they take a password. */
const SIGN_UPS: Readonly<Record<string, { readonly attempt: Attempt; readonly takesPassword?: true }>> = {
  "POST /auth/register": { attempt: send("/auth/register", registration), takesPassword: true },
  "the page /auth/sign-up": { attempt: signUpPage, takesPassword: true },
  "POST /auth/v1/signup": { attempt: send("/auth/v1/signup", registration, anonymous), takesPassword: true },
  "POST /auth/v1/signup by phone": {
    attempt: send("/auth/v1/signup", (_, password) => ({ phone: "4912345678", password }), anonymous),
    takesPassword: true,
  },
  "POST /auth/v1/signup without credentials": { attempt: send("/auth/v1/signup", () => ({}), anonymous) },
  "POST /users": { attempt: send("/users", user) },
  "POST /users of several": { attempt: send("/users", (email) => [user(email)]) },
  "POST /api/v1/users": { attempt: send("/api/v1/users", user) },
  "POST /api/v2/users": { attempt: send("/api/v2/users", user) },
  "createUser of GraphQL": { attempt: send("/graphql", mutation) },
  "a sign-in through a provider": { attempt: openIdConnect },
  "a sign-in with an ID token": { attempt: idToken },
};
/** Those of a user who is signed in. */
const SIGNED_IN: Readonly<Record<string, Attempt>> = {
  "POST /users": (gateways, email) => send("/users", user, ownCredentials())(gateways, email),
  "createUser of GraphQL": (gateways, email) => send("/graphql", mutation, ownCredentials())(gateways, email),
};
/** Those that answer alike, whether or not they create an account, which they do after the response. */
const SILENT: Readonly<Record<string, Attempt>> = {
  "POST /auth/v1/otp": send("/auth/v1/otp", (email) => ({ email }), anonymous),
  "POST /auth/v1/magiclink": send("/auth/v1/magiclink", (email) => ({ email }), anonymous),
  "POST /auth/forgot-password": send("/auth/forgot-password", (email) => ({ email })),
  "POST /auth/v1/recover": send("/auth/v1/recover", (email) => ({ email }), anonymous),
};
const service = { apikey: SERVICE_KEY, Authorization: `Bearer ${SERVICE_KEY}` };
/** What administrators and servers do, whatever AUTH_SIGN_UPS says. */
const ADMINISTRATION: Readonly<Record<string, { readonly attempt: Attempt; readonly takesPassword?: true }>> = {
  "POST /auth/v1/admin/users": { attempt: send("/auth/v1/admin/users", registration, service), takesPassword: true },
  "POST /auth/v1/invite": { attempt: send("/auth/v1/invite", (email) => ({ email }), service) },
  "POST /auth/v1/admin/generate_link": {
    attempt: send("/auth/v1/admin/generate_link", (email) => ({ type: "invite", email }), service),
  },
  "POST /rest/v1/users": { attempt: send("/rest/v1/users", user, service) },
  "POST /users": { attempt: send("/users", user, service) },
};

/** How many users and accounts there are. */
async function count({ owner }: FederatedGateways): Promise<number> {
  const counted = "select ((select count(*) from public.users) + (select count(*) from auth.users))::integer as n";
  return (await owner.query<{ n: number }>(counted)).rows[0]!.n;
}
const cases = <Each>(rows: Readonly<Record<string, Each>>) => Object.entries(rows);

describe("where sign-ups are open", () => {
  test.each(cases(SIGN_UPS))("%s creates a user", async (_, { attempt }) => {
    const before = await count(open);
    expect(await attempt(open, newAddress())).toBeLessThan(400);
    expect(await count(open)).toBeGreaterThan(before);
  });
});

describe("with AUTH_SIGN_UPS=false", () => {
  test.each(cases(SIGN_UPS))("%s creates no user", async (name, { attempt }) => {
    const before = await count(closed);
    const status = await attempt(closed, newAddress());
    // GraphQL reports errors in a response of its own; a provider's callback shows a page.
    if (!name.includes("GraphQL")) expect(status).toBeGreaterThanOrEqual(400);
    expect(status).toBeLessThan(500);
    expect(await count(closed)).toBe(before);
  });

  test.each(cases(SIGNED_IN))("%s creates no user for a user who is signed in", async (_, attempt) => {
    const before = await count(closed);
    expect(await attempt(closed, newAddress())).toBeLessThan(500);
    expect(await count(closed)).toBe(before);
  });

  test.each(cases(SILENT))("%s creates no user", async (_, attempt) => {
    const before = await count(closed);
    expect([200, 202]).toContain(await attempt(closed, newAddress()));
    // The queue of mails sends one after the other.
    const known = newAddress();
    await closed.post(
      `${closed.one.url}/auth/v1/admin/users`,
      { email: known, email_confirm: true },
      { headers: service },
    );
    expect(await send("/auth/v1/otp", () => ({ email: known }), anonymous)(closed, known)).toBe(200);
    await closed.mailTo({ to: known, about: "Your sign-in link" });
    expect(await count(closed)).toBe(before + 2);
  });

  test.each(cases(ADMINISTRATION))("%s of a server creates a user", async (_, { attempt }) => {
    const before = await count(closed);
    expect(await attempt(closed, newAddress())).toBeLessThan(300);
    expect(await count(closed)).toBeGreaterThan(before);
  });
});

describe("PASSWORD_POLICY", () => {
  const all = { ...SIGN_UPS, ...ADMINISTRATION };
  test.each(cases(all).filter(([, { takesPassword }]) => takesPassword))("holds for %s", async (_, { attempt }) => {
    const before = await count(open);
    const status = await attempt(open, newAddress(), WEAK);
    expect([400, 422]).toContain(status);
    expect(await count(open)).toBe(before);
  });
});

describe("the list of ways to create users", () => {
  test("has all functions of the database that insert users", async () => {
    const { rows } = await open.owner.query(`
      select n.nspname || '.' || p.proname as name
      from pg_proc p join pg_namespace n on n.oid = p.pronamespace
      where p.prosrc ~ 'insert into (public|auth)\\.users\\M' or p.prosrc ~ 'auth\\.(register|insert_user|create_account|add_account)\\('
      order by name`);
    expect(rows.map(({ name }) => name)).toEqual([
      "auth.add_account", // operators
      "auth.code_recipient", // of a row that exists
      "auth.create_account", // administrators
      "auth.ensure_administrator", // the operator's settings
      "auth.federated_user", // asks auth.accepts_sign_ups
      "auth.import_account", // operators
      "auth.insert_user", // of auth.register
      "auth.register", // of the functions here
      "auth.reset_password", // of a row that exists
      "auth.sign_up", // asks auth.accepts_sign_ups
      "public.create_user", // policy insert_open
    ]);
  });

  test("has all roles that may insert users, by a policy that asks whether sign-ups are open", async () => {
    const { rows } = await open.owner.query(`
      select policyname, roles::text[], with_check ~ 'users_are_open' as asks from pg_policies
      where schemaname = 'public' and tablename = 'users' and cmd in ('INSERT', 'ALL') order by policyname`);
    expect(rows).toEqual([
      { policyname: "admin_all", roles: ["admin"], asks: false },
      { policyname: "insert_open", roles: ["anon", "authenticated"], asks: true },
    ]);
  });

  test("has all statements of the service that create accounts", async () => {
    const folder = join(REPOSITORY, "engine");
    const found: string[] = [];
    for (const name of await readdir(folder, { recursive: true })) {
      if (!name.endsWith(".ts")) continue;
      const text = await readFile(join(folder, name), "utf8");
      for (const [, called] of text.matchAll(/auth\.(register|sign_up|create_account|add_account|import_account)\(/g))
        found.push(`${name} ${called}`);
    }
    expect(found.sort()).toEqual([
      "accounts/administration.ts add_account",
      "accounts/administration.ts create_account",
      "accounts/code-emails.ts sign_up",
      "accounts/import-accounts.ts import_account",
      "accounts/registration.ts sign_up",
    ]);
  });

  test("knows each setting of accounts", () => {
    expect(Object.keys(ACCOUNT_SETTINGS).filter((name) => !(name in SETTINGS_BY_RULE))).toEqual([]);
  });
});

/** Where each setting applies. A new one needs a row, and tests for every interface that it concerns. */
const SETTINGS_BY_RULE: Readonly<Record<string, string>> = {
  signUps: "all of SIGN_UPS, SIGNED_IN and SILENT",
  passwordPolicy: "all with a password",
  autoConfirm: "sign-ups by /auth/v1 and /auth: test/rest-gateway/auth-v1/accounts.test.ts",
  anonymousSignIns: "POST /auth/v1/signup without credentials: test/rest-gateway/auth-v1/accounts.test.ts",
  usersAccess: "test/journeys/security-matrix.test.ts",
  manualLinking: "the linking of /auth/v1: test/rest-gateway/auth-v1/providers.test.ts",
  aal1Access: "tokens of /auth/v1: test/rest-gateway/auth-v1/factors.test.ts",
  passwordReauthentication: "PUT /auth/v1/user: test/rest-gateway/auth-v1/mail.test.ts",
  signInRedirects: "links and federated sign-ins: test/rest-gateway/auth-v1/mail.test.ts",
  claimsHook: "each access token: test/engine/accounts/claims-hook.test.ts",
  adminEmail: "the first administrator",
  adminPassword: "the first administrator",
  webauthnRpId: "passkeys: test/rest-gateway/auth-v1/passkeys.test.ts",
  webauthnOrigins: "passkeys: test/rest-gateway/auth-v1/passkeys.test.ts",
  jwtSecret: "tokens",
  jwtSecretIsBase64: "tokens",
  jwtPrivateKey: "tokens",
  jwtPreviousSecrets: "tokens",
  jwtPreviousPublicKeys: "tokens",
  jwtKeySetUrl: "tokens",
  jwtIssuer: "tokens",
  jwtAudience: "tokens",
  jwtRoleClaim: "tokens",
  jwtCacheEntries: "tokens",
  authSubject: "tokens",
};
