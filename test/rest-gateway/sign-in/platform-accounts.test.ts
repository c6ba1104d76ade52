import { randomUUID } from "node:crypto";
import { beforeAll, describe, expect, test } from "vitest";
import { claimsOf } from "../../accounts/open-accounts.ts";
import { useFixture } from "../../fixture.ts";
import { SoftwareAuthenticator } from "../../software-authenticator.ts";
import { until } from "../../until.ts";
import { ANON_KEY } from "./auth-v1/auth-client.ts";
import { at, openFederatedGateways, SITE, whoIs } from "./federated-gateways.ts";
import { newFactor, newPerson, newSession, PASSWORD, type Person } from "./gateways.ts";
import { CLIENT, openOpenIdProvider } from "./openid-provider.ts";

const NEW_PASSWORD = "Quartz-Bird-8";

const administrator = { ADMIN_EMAIL: "root@example.org", ADMIN_PASSWORD: PASSWORD };
const gateways = useFixture(() => openFederatedGateways(administrator, "platform"));
const provider = useFixture(() => openOpenIdProvider([SITE]));
beforeAll(async () => {
  await gateways.addProvider({
    name: "example",
    kind: "oidc",
    issuer: provider.issuer,
    clientId: CLIENT.id,
    secret: CLIENT.secret,
  });
});

const url = (path: string) => `${gateways.one.url}${path}`;
const login = (username: string, password = PASSWORD, code?: string) =>
  gateways.post(url("/auth/login"), { username, password, code });
const accountOf = async (email: string) =>
  (await gateways.owner.query("select * from auth.users where lower(email) = lower($1)", [email])).rows[0];
const tokenIn = async (to: string, about: string) => (await gateways.linkIn({ to, about })).searchParams.get("token")!;

describe("without a table of users", () => {
  test("an account is registered, signs in, refreshes and signs out", async () => {
    const email = `${randomUUID()}@Example.org`;
    const { status, body } = await gateways.post(url("/auth/register"), { name: "Ada", email, password: PASSWORD });
    expect(status).toBe(201);
    expect(body.user).toEqual({ id: expect.any(Number), name: "Ada", email });
    expect(claimsOf(body.accessToken)).toMatchObject({ sub: String(body.user.id), name: "Ada", role: "authenticated" });
    expect((await login(email.toLowerCase())).status).toBe(200);
    const next = await gateways.post(url("/auth/refresh"), { refreshToken: body.refreshToken });
    expect(next.status).toBe(200);
    expect((await gateways.post(url("/auth/logout"), undefined, { token: next.body.accessToken })).status).toBe(200);
    expect((await gateways.post(url("/auth/refresh"), { refreshToken: next.body.refreshToken })).status).toBe(401);
    expect(await accountOf(email)).toMatchObject({ raw_user_meta_data: { name: "Ada" }, email_confirmed_at: null });
  });

  test("a passkey is registered and signs in", async () => {
    const { userId, pair } = await newPerson(gateways);
    const sent = { token: pair.accessToken, headers: { apikey: ANON_KEY } };
    const post = async (path: string, body: object) => {
      const response = await gateways.post(url(`/auth/v1/passkeys/${path}`), body, sent);
      expect(response.status).toBe(200);
      return response.body;
    };
    const authenticator = new SoftwareAuthenticator({ origin: SITE, rpId: new URL(SITE).hostname });
    const registration = await post("registration/options", {});
    const created = authenticator.create(registration.options);
    await post("registration/verify", { challenge_id: registration.challenge_id, credential: created });
    const { challenge_id, options } = await post("authentication/options", {});
    const { user } = await post("authentication/verify", { challenge_id, credential: authenticator.get(options) });
    const { rows } = await gateways.owner.query("select id from auth.users where user_id = $1", [userId]);
    expect(user.id).toBe(rows[0].id);
  });

  test("an address and a user name are registered once, also by sign-ups at the same time", async () => {
    const email = `${randomUUID()}@example.org`;
    const register = (account: object) =>
      gateways.post(url("/auth/register"), { name: "Ada", password: PASSWORD, ...account });
    const all = await Promise.all(
      Array.from({ length: 8 }, (_, index) => register({ email: index % 2 ? email : email.toUpperCase() })),
    );
    expect(all.map(({ status }) => status).sort()).toEqual([201, ...Array(7).fill(409)]);
    for (const { status, body } of all) if (status === 409) expect(body.error.details[0].field).toBe("email");
    const username = randomUUID();
    expect((await register({ email: `${username}@example.org`, username })).status).toBe(201);
    const taken = await register({ email: `x${username}@example.org`, username });
    expect(taken).toMatchObject({ status: 409, body: { error: { details: [{ field: "username" }] } } });
    expect(await accountOf(`x${username}@example.org`)).toBeUndefined();
  });

  test("a registration with several faults reports all of them", async () => {
    const account = { name: " ", email: "nobody", age: 151, username: "a b", password: "aB3" };
    const { status, body } = await gateways.post(url("/auth/register"), account);
    expect(status).toBe(400);
    const fields = body.error.details.map(({ field }: { field: string }) => field);
    expect(fields.sort()).toEqual(["age", "email", "name", "password", "username"]);
  });

  test("a forgotten password is reset by e-mail, which confirms the address", async () => {
    const { email, pair } = await newPerson(gateways);
    await gateways.post(url("/auth/forgot-password"), { email });
    const reset = { token: await tokenIn(email, "Set a new password"), password: NEW_PASSWORD };
    expect((await gateways.post(url("/auth/reset-password"), reset)).status).toBe(200);
    expect((await login(email)).status).toBe(401);
    expect((await login(email, NEW_PASSWORD)).status).toBe(200);
    expect((await gateways.post(url("/auth/refresh"), { refreshToken: pair.refreshToken })).status).toBe(401);
    expect((await accountOf(email)).email_confirmed_at).toBeInstanceOf(Date);
  });

  test("an address is verified by e-mail", async () => {
    const { email } = await newPerson(gateways);
    const token = await tokenIn(email, "Confirm your e-mail address");
    expect((await gateways.post(url("/auth/verify-email"), { token })).status).toBe(200);
    expect(await accountOf(email)).toMatchObject({ verified_email: email });
  });

  test("the account page changes name and address, and makes keys", async () => {
    const person = await newPerson(gateways);
    await gateways.owner.query("update auth.users set verified_email = email where email = $1", [person.email]);
    const { get, post } = await signedIn(person);
    expect(await post("", { name: "Ada L." })).toBe(303);
    expect(await post("", { name: " " })).toBe(400);
    expect(await get()).toContain("Ada L.");
    const moved = `${randomUUID()}@example.org`;
    expect(await post("/address", { email: (await newPerson(gateways)).email, password: PASSWORD })).toBe(409);
    expect(await post("/address", { email: moved, password: PASSWORD })).toBe(200);
    const token = await tokenIn(moved, "Confirm your new e-mail address");
    await gateways.owner.query("select auth.change_email(sha256($1), null)", [Buffer.from(token)]);
    expect((await login(moved)).body).toMatchObject({ tokenType: "Bearer" });
    expect((await login(person.email)).status).toBe(401);
    expect(await accountOf(moved)).toMatchObject({ username: moved, raw_user_meta_data: { name: "Ada L." } });
    expect(await post("/keys", { name: "mine", password: PASSWORD })).toBe(200);
    expect(await get()).toContain("<dt>API keys</dt><dd>1:");
  });

  test("an authenticator app is required at the sign-in", async () => {
    const { email, pair } = await newPerson(gateways);
    const { backupCodes } = await newFactor(gateways, pair.accessToken);
    expect((await login(email)).status).toBe(401);
    expect((await login(email, PASSWORD, backupCodes[0])).status).toBe(200);
  });

  test("a provider creates an account, and is linked to one with the same confirmed address", async () => {
    const browser = gateways.browser();
    const shown = await provider.signIn(browser, at("/auth/providers/example/sign-in"), "ada");
    expect(shown).toMatchObject({ status: 200, body: { username: "ada@example.org" } });
    const { userId } = await whoIs(browser);
    expect(await accountOf("ada@example.org")).toMatchObject({
      user_id: String(userId),
      verified_email: "ada@example.org",
      raw_user_meta_data: { name: "The ada" },
    });
    await gateways.post(url("/auth/register"), { name: "Bob", email: "bob@example.org", password: PASSWORD });
    await gateways.owner.query("update auth.users set verified_email = email where email = 'bob@example.org'");
    const linked = await provider.signIn(gateways.browser(), at("/auth/providers/example/sign-in"), "bob");
    expect(linked).toMatchObject({ status: 200, body: { username: "bob@example.org" } });
  });

  test("the first administrator is created, and disables nobody's tokens but those of disabled accounts", async () => {
    const { body } = await login("root@example.org");
    expect(claimsOf(body.accessToken)).toMatchObject({ role: "admin", name: "Administrator" });
    const { userId, pair } = await newPerson(gateways);
    const keys = { role: "authenticated", owner: userId, name: "theirs" };
    expect((await gateways.post(url("/auth/keys"), keys, { token: body.accessToken })).status).toBe(201);
    const nobody = await gateways.post(url("/auth/keys"), { ...keys, owner: 999_999 }, { token: body.accessToken });
    expect(nobody.status).toBe(404);
    await gateways.owner.query("select auth.disable_account($1, null)", [userId]);
    const refused = () => gateways.post(url("/auth/logout"), undefined, { token: pair.accessToken });
    await until(async () => (await refused()).status === 401);
  });

  test("a deleted account leaves no row behind, and its tokens end", async () => {
    const { email, userId, pair } = await newPerson(gateways);
    await newFactor(gateways, pair.accessToken);
    await newSession(gateways, email).catch(() => null);
    await gateways.owner.query("select auth.assign_role($1, 'admin', null)", [userId]);
    await gateways.owner.query("select auth.delete_user($1)", [userId]);
    const { rows } = await gateways.owner.query(
      `select relname from pg_attribute join pg_class on pg_class.oid = attrelid
       where relnamespace = 'auth'::regnamespace and relkind = 'r' and attname in ('user_id', 'owner_id')
         and relname not in ('audit_log', 'deleted_accounts')`,
    );
    expect(rows.length).toBeGreaterThan(10);
    for (const { relname } of rows) {
      const column = relname === "api_keys" ? "owner_id" : "user_id";
      const left = await gateways.owner.query(`select from auth.${relname} where ${column} = $1`, [userId]);
      expect([relname, left.rowCount]).toEqual([relname, 0]);
    }
    const refused = () => gateways.post(url("/auth/logout"), undefined, { token: pair.accessToken });
    await until(async () => (await refused()).status === 401);
  });
});

/** The account page in the browser of that person: a form's status, and the text of the page. */
async function signedIn({ email }: Person) {
  const { Cookie } = await newSession(gateways, email);
  const headers = { Cookie, Origin: SITE, Host: new URL(SITE).host };
  const get = async () => (await gateways.get(url("/auth/account"), { headers })).text;
  const csrf = async () => /name="csrf" value="([^"]+)"/.exec(await get())![1]!;
  const post = async (path: string, fields: Record<string, string>): Promise<number> => {
    const body = new URLSearchParams({ csrf: await csrf(), ...fields });
    const form = { method: "POST", body, headers: { ...headers }, redirect: "manual" as const };
    return (await fetch(url(`/auth/account${path}`), form)).status;
  };
  return { get, post };
}
