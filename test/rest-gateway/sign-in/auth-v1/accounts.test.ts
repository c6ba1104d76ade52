import jwt from "jsonwebtoken";
import pg from "pg";
import { describe, expect, test } from "vitest";
import { useDatabase } from "../../../database.ts";
import { useFixture, useFolder } from "../../../fixture.ts";
import { SECRET } from "../../../secret.ts";
import { serve, useService } from "../../../serve.ts";
import { until } from "../../../until.ts";
import { ANON_KEY, makeClient, newAddress, PASSWORD } from "./auth-client.ts";

const database = useDatabase();
const mailDir = useFolder("mail-");
const owner = useFixture(() => new pg.Pool({ connectionString: database.ownerUrl, max: 2 }));
const service = useService({ database, settings: { AUTH_AUTOCONFIRM: "true", AUTH_ANONYMOUS_SIGN_INS: "true" } });
/** The database keeps whether sign-ups are open. */
const closed = useService({ settings: { AUTH_SIGN_UPS: "off" } });

const newClient = () => makeClient(service.url);

/** A client whose user has just signed up. */
async function signUp(data: object = {}) {
  const client = newClient();
  const email = newAddress();
  const { data: signedUp, error } = await client.auth.signUp({ email, password: PASSWORD, options: { data } });
  expect(error).toBeNull();
  return { client, email, user: signedUp.user!, session: signedUp.session! };
}

const signInAt = (path: string, username: string) =>
  fetch(`${service.url}${path}`, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ username, password: PASSWORD }),
  });
// biome-ignore lint/suspicious/noExplicitAny: what an answer holds is what its test says.
const readJson = (response: Response): Promise<any> => response.json();

/** True if the documented routes accept the access token. */
const isAccepted = async (token: string) =>
  (
    await fetch(`${service.url}/rest/v1/users?select=id&limit=1`, {
      headers: { apikey: ANON_KEY, Authorization: `Bearer ${token}` },
    })
  ).ok;

describe("a sign-up", () => {
  test("signs the user in, with metadata and an identity", async () => {
    const { client, email, user, session } = await signUp({ color: "green" });
    expect(user).toMatchObject({
      id: expect.stringMatching(/^[\da-f]{8}-/),
      aud: "authenticated",
      role: "authenticated",
      email,
      phone: "",
      email_confirmed_at: expect.any(String),
      confirmed_at: expect.any(String),
      last_sign_in_at: expect.any(String),
      created_at: expect.any(String),
      updated_at: expect.any(String),
      app_metadata: { provider: "email", providers: ["email"] },
      user_metadata: { color: "green" },
      is_anonymous: false,
      factors: [],
    });
    expect(user.identities).toMatchObject([
      { user_id: user.id, provider: "email", identity_data: { email, email_verified: true } },
    ]);
    expect(session).toMatchObject({ token_type: "bearer", expires_in: 3600, expires_at: expect.any(Number) });
    expect(jwt.verify(session.access_token, SECRET)).toMatchObject({
      aud: "authenticated",
      role: "authenticated",
      email,
      user_metadata: { color: "green" },
      app_metadata: { provider: "email" },
      session_id: expect.any(String),
      aal: "aal1",
      amr: [{ method: "password", timestamp: expect.any(Number) }],
      is_anonymous: false,
    });
    const { data } = await client.auth.getUser();
    expect(data.user).toMatchObject({ id: user.id, email });
  });

  test("names the user by the metadata", async () => {
    const { email } = await signUp({ name: "Ada Lovelace" });
    const { rows } = await owner.query("select name from public.users where email = $1", [email]);
    expect(rows).toEqual([{ name: "Ada Lovelace" }]);
  });

  test("with an address that has an account is refused", async () => {
    const { email } = await signUp();
    const { data, error } = await newClient().auth.signUp({ email: email.toUpperCase(), password: PASSWORD });
    expect(error).toMatchObject({ status: 422, code: "user_already_exists", message: "User already registered" });
    expect(data).toMatchObject({ user: null, session: null });
  });

  test("says what is wrong with a weak password", async () => {
    const { error } = await newClient().auth.signUp({ email: newAddress(), password: "123" });
    expect(error).toMatchObject({
      name: "AuthWeakPasswordError",
      status: 422,
      code: "weak_password",
      reasons: ["length", "characters"],
      message: expect.stringContaining("Password should be at least 8 characters"),
    });
  });

  test("checks the address before the password", async () => {
    const { error } = await newClient().auth.signUp({ email: "a", password: "123456" });
    expect(error).toMatchObject({
      status: 400,
      code: "validation_failed",
      message: "Unable to validate email address: invalid format",
    });
  });

  test("is refused where sign-ups are closed, and so is an anonymous one", async () => {
    const { auth } = makeClient(closed.url);
    const refusal = { status: 422, code: "signup_disabled", message: "Signups not allowed for this instance" };
    expect((await auth.signUp({ email: newAddress(), password: PASSWORD })).error).toMatchObject(refusal);
    expect((await auth.signInAnonymously()).error).toMatchObject(refusal);
  });
});

describe("a sign-up where addresses are confirmed first", () => {
  const confirming = useService({
    database,
    settings: { AUTH_AUTOCONFIRM: "false", MAIL_DIR: mailDir, MAIL_INTERVAL_SECONDS: "0" },
  });

  const signUpAt = (email: string, password = PASSWORD) =>
    makeClient(confirming.url).auth.signUp({ email, password, options: { data: { color: "green" } } });

  test("returns the user without a session, and the same for an address that has an account", async () => {
    const { email: taken } = await signUp();
    const [created, refused] = [await signUpAt(newAddress()), await signUpAt(taken, "Another-Boat-8")];
    const shapeOf = ({ data, error }: typeof created) => ({
      error,
      session: data.session,
      members: Object.keys(data.user!).sort(),
      identity: Object.keys(data.user!.identities![0]!).sort(),
    });
    expect(created.data.user).toMatchObject({
      confirmation_sent_at: expect.any(String),
      user_metadata: { color: "green" },
      identities: [{ provider: "email", identity_data: { email_verified: false } }],
    });
    expect(created.data.user!.confirmed_at).toBeUndefined();
    expect(shapeOf(refused)).toEqual(shapeOf(created));
    expect(shapeOf(created)).toMatchObject({ error: null, session: null });

    const { rows } = await owner.query("select count(*)::int as count from auth.users where email = $1", [taken]);
    expect(rows).toEqual([{ count: 1 }]);
    const kept = await newClient().auth.signInWithPassword({ email: taken, password: PASSWORD });
    expect(kept.error).toBeNull();
  });
});

describe("an anonymous sign-in", () => {
  test("creates an account that becomes a permanent one by an address and a password", async () => {
    const client = newClient();
    const { data, error } = await client.auth.signInAnonymously({ options: { data: { cart: 3 } } });
    expect(error).toBeNull();
    expect(data.user).toMatchObject({ is_anonymous: true, email: "", identities: [], user_metadata: { cart: 3 } });
    expect(jwt.decode(data.session!.access_token)).toMatchObject({
      is_anonymous: true,
      email: "",
      role: "authenticated",
      amr: [{ method: "anonymous" }],
    });
    const early = await client.auth.updateUser({ password: PASSWORD });
    expect(early.error).toMatchObject({ status: 422, code: "validation_failed" });
    expect((await client.auth.reauthenticate()).error).toMatchObject({ status: 422, code: "validation_failed" });

    const email = newAddress();
    const converted = await client.auth.updateUser({ email });
    expect(converted.data.user).toMatchObject({ id: data.user!.id, email, is_anonymous: false });
    expect((await client.auth.updateUser({ password: PASSWORD })).error).toBeNull();
    const again = await newClient().auth.signInWithPassword({ email, password: PASSWORD });
    expect(again.data.user).toMatchObject({ id: data.user!.id, user_metadata: { cart: 3 } });
  });

  test("is refused unless it is enabled", async () => {
    const one = await serve(database);
    const { error } = await makeClient(one.url).auth.signInAnonymously();
    expect(error).toMatchObject({ code: "anonymous_provider_disabled", message: "Anonymous sign-ins are disabled" });
    await one.stop();
  });
});

describe("a sign-in with a password", () => {
  test("is refused with a wrong one as with an unknown address", async () => {
    const { email } = await signUp();
    const refusal = { status: 400, code: "invalid_credentials", message: "Invalid login credentials" };
    const wrong = await newClient().auth.signInWithPassword({ email, password: `${PASSWORD}!` });
    expect(wrong.error).toMatchObject(refusal);
    const unknown = await newClient().auth.signInWithPassword({ email: newAddress(), password: PASSWORD });
    expect(unknown.error).toMatchObject(refusal);
  });

  test("waits for the confirmation of the address where it is required", async () => {
    const one = await serve(database, { AUTH_AUTOCONFIRM: "false" });
    const { email } = await signUp();
    await owner.query("update auth.users set verified_email = null where email = $1", [email]);
    const { error } = await makeClient(one.url).auth.signInWithPassword({ email, password: PASSWORD });
    expect(error).toMatchObject({ status: 400, code: "email_not_confirmed", message: "Email not confirmed" });
    await one.stop();
  });

  test("of a disabled account is refused", async () => {
    const { email } = await signUp();
    await owner.query("update auth.users set banned_until = now() + interval '1 hour' where email = $1", [email]);
    const { error } = await newClient().auth.signInWithPassword({ email, password: PASSWORD });
    expect(error).toMatchObject({ status: 400, code: "user_banned" });
  });

  test("is limited after failed attempts", async () => {
    const { email } = await signUp();
    const attempt = async () => (await newClient().auth.signInWithPassword({ email, password: "wrong" })).error;
    await until(async () => (await attempt())?.status === 429);
    expect(await attempt()).toMatchObject({ status: 429, code: "over_request_rate_limit" });
  });
});

test("a grant that is unknown, or by a wallet, is refused", async () => {
  const grant = (type: string) =>
    fetch(`${service.url}/auth/v1/token?grant_type=${type}`, {
      method: "POST",
      headers: { apikey: ANON_KEY },
      body: "{}",
    });
  const [unknown, wallet] = await Promise.all(["toString", "web3"].map(grant));
  expect(unknown!.status).toBe(400);
  expect(await wallet!.json()).toMatchObject({
    error_code: "web3_provider_disabled",
    msg: "Web3 provider is disabled",
  });
});

test("PASSWORD_POLICY=minimal accepts what Supabase accepts by default", async () => {
  const one = await serve(database, { AUTH_AUTOCONFIRM: "true", PASSWORD_POLICY: "minimal" });
  const { auth } = makeClient(one.url);
  const refused = await auth.signUp({ email: newAddress(), password: "123" });
  expect(refused.error).toMatchObject({
    code: "weak_password",
    reasons: ["length"],
    message: "Password should be at least 6 characters.",
  });
  const { data } = await auth.signUp({ email: newAddress(), password: "password123" });
  expect(data.session).not.toBeNull();
  await one.stop();
});

describe("a refresh", () => {
  test("returns a new session of the same sign-in", async () => {
    const { client, session, user } = await signUp();
    const { data, error } = await client.auth.refreshSession();
    expect(error).toBeNull();
    expect(data.session!.refresh_token).not.toBe(session.refresh_token);
    expect(data.user).toMatchObject({ id: user.id });
    const [before, after] = [session, data.session!].map(({ access_token }) => jwt.decode(access_token)) as {
      session_id: string;
    }[];
    expect(after!.session_id).toBe(before!.session_id);
  });

  test("with the same token at once returns the same session", async () => {
    const { session } = await signUp();
    const refresh = async () =>
      (await newClient().auth.refreshSession({ refresh_token: session.refresh_token })).data.session!;
    const [one, two] = await Promise.all([refresh(), refresh()]);
    expect(two.refresh_token).toBe(one.refresh_token);
  });

  test("with an unknown token is refused", async () => {
    const { error } = await newClient().auth.refreshSession({ refresh_token: "unknown" });
    expect(error).toMatchObject({
      status: 400,
      code: "refresh_token_not_found",
      message: "Invalid Refresh Token: Refresh Token Not Found",
    });
  });
});

describe("a change of the own user", () => {
  test("merges metadata, and null removes a key", async () => {
    const { client } = await signUp({ kept: 1, gone: 2 });
    const { data } = await client.auth.updateUser({ data: { gone: null, added: { deep: null } } });
    expect(data.user!.user_metadata).toEqual({ kept: 1, added: { deep: null } });
    const tooLarge = await client.auth.updateUser({ data: { text: "x".repeat(9000) } });
    expect(tooLarge.error).toMatchObject({ status: 400, code: "validation_failed" });
  });

  test("of the password keeps this session and ends all others within five seconds", async () => {
    const { client, email, session } = await signUp();
    const other = await newClient().auth.signInWithPassword({ email, password: PASSWORD });
    const documented = await signInAt("/auth/login", email).then(readJson);
    const others = [other.data.session!.access_token, documented.accessToken];
    expect(await Promise.all(others.map(isAccepted))).toEqual([true, true]);

    const same = await client.auth.updateUser({ password: PASSWORD });
    expect(same.error).toMatchObject({ status: 422, code: "same_password" });
    const begun = performance.now();
    const { error } = await client.auth.updateUser({ password: `${PASSWORD}-new` });
    expect(error).toBeNull();
    await until(async () => (await Promise.all(others.map(isAccepted))).every((accepted) => !accepted));
    expect(performance.now() - begun).toBeLessThan(5_500);

    expect(await isAccepted(session.access_token)).toBe(true);
    expect((await client.auth.getUser()).error).toBeNull();
    expect((await client.auth.refreshSession()).error).toBeNull();
    const old = await newClient().auth.signInWithPassword({ email, password: PASSWORD });
    expect(old.error).toMatchObject({ code: "invalid_credentials" });
  });

  test("of the password needs a code a day after the sign-in", async () => {
    const { client, email } = await signUp();
    await owner.query(
      `update auth.token_sessions set created_at = now() - interval '25 hours'
       where user_id = (select user_id from auth.users where email = $1)`,
      [email],
    );
    const password = `${PASSWORD}-new`;
    expect((await client.auth.updateUser({ password })).error).toMatchObject({
      status: 400,
      code: "reauthentication_needed",
    });
    expect((await client.auth.updateUser({ password, nonce: "000000" })).error).toMatchObject({
      status: 422,
      code: "reauthentication_not_valid",
    });
  });

  test("to another user's address is refused", async () => {
    const { client } = await signUp();
    const { email } = await signUp();
    expect((await client.auth.updateUser({ email })).error).toMatchObject({ status: 422, code: "email_exists" });
  });

  test("of app metadata is refused", async () => {
    const { session } = await signUp();
    const response = await fetch(`${service.url}/auth/v1/user`, {
      method: "PUT",
      headers: { apikey: ANON_KEY, Authorization: `Bearer ${session.access_token}` },
      body: JSON.stringify({ app_metadata: { role: "admin" } }),
    });
    expect(response.status).toBe(403);
    expect(await response.json()).toMatchObject({ error_code: "not_admin" });
  });
});

describe("a sign-out", () => {
  test("ends the sessions of its scope, at the documented routes too", async () => {
    const { client: first, email, session: firstSession } = await signUp();
    const second = newClient();
    const { data } = await second.auth.signInWithPassword({ email, password: PASSWORD });
    const secondToken = data.session!.access_token;

    expect((await first.auth.signOut({ scope: "others" })).error).toBeNull();
    expect((await second.auth.getUser()).error).toMatchObject({ name: "AuthSessionMissingError" });
    expect((await first.auth.getUser()).error).toBeNull();
    await until(async () => !(await isAccepted(secondToken)));

    expect((await first.auth.signOut({ scope: "local" })).error).toBeNull();
    await until(async () => !(await isAccepted(firstSession.access_token)));
    const refreshed = await newClient().auth.refreshSession({ refresh_token: firstSession.refresh_token });
    expect(refreshed.error).toMatchObject({ status: 400 });
  });

  test("everywhere ends browser sessions and tokens of the documented routes", async () => {
    const { client, email } = await signUp();
    const cookie = (await signInAt("/api/auth/login", email)).headers.get("set-cookie")!.split(";", 1)[0]!;
    const { accessToken } = await readJson(await signInAt("/auth/login", email));
    const me = () => fetch(`${service.url}/api/auth/me`, { headers: { Cookie: cookie } });
    expect((await me()).status).toBe(200);
    await client.auth.signOut();
    expect((await me()).status).toBe(401);
    await until(async () => !(await isAccepted(accessToken)));
  });

  test("at the documented route ends the session", async () => {
    const { client, session } = await signUp();
    const response = await fetch(`${service.url}/auth/logout`, {
      method: "POST",
      headers: { Authorization: `Bearer ${session.access_token}` },
    });
    expect(response.status).toBe(200);
    expect((await client.auth.getUser()).error).toMatchObject({ name: "AuthSessionMissingError" });
    expect((await client.auth.refreshSession()).error).toMatchObject({ status: 400 });
  });

  test("with a token of the documented routes ends it, whatever the scope", async () => {
    const { email } = await signUp();
    const { accessToken } = await readJson(await signInAt("/auth/login", email));
    const headers = { apikey: ANON_KEY, Authorization: `Bearer ${accessToken}` };
    const response = await fetch(`${service.url}/auth/v1/logout?scope=local`, { method: "POST", headers });
    expect(response.status).toBe(204);
    await until(async () => !(await isAccepted(accessToken)));
  });

  test("at the documented route ends its tokens at /auth/v1, where they could change the account", async () => {
    const { email } = await signUp();
    const { accessToken } = await readJson(await signInAt("/auth/login", email));
    const headers = { apikey: ANON_KEY, Authorization: `Bearer ${accessToken}` };
    const change = { method: "PUT", headers, body: JSON.stringify({ data: { color: "red" } }) };
    expect((await fetch(`${service.url}/auth/v1/user`, change)).status).toBe(200);
    expect((await fetch(`${service.url}/auth/logout`, { method: "POST", headers })).status).toBe(200);
    const refused = await fetch(`${service.url}/auth/v1/user`, change);
    expect([refused.status, (await readJson(refused)).error_code]).toEqual([403, "session_not_found"]);
  });

  test("of a scope that is unknown, or without a token, is refused", async () => {
    const { session } = await signUp();
    const headers = { apikey: ANON_KEY, Authorization: `Bearer ${session.access_token}` };
    const unknown = await fetch(`${service.url}/auth/v1/logout?scope=some`, { method: "POST", headers });
    expect(unknown.status).toBe(400);
    const bare = await fetch(`${service.url}/auth/v1/logout`, { method: "POST", headers: { apikey: ANON_KEY } });
    expect(bare.status).toBe(401);
    expect(await bare.json()).toMatchObject({ error_code: "no_authorization" });
    const forged = { ...headers, Authorization: `Bearer ${session.access_token}x` };
    const invalid = await fetch(`${service.url}/auth/v1/logout`, { method: "POST", headers: forged });
    expect(invalid.status).toBe(403);
    expect(await invalid.json()).toMatchObject({ error_code: "bad_jwt", msg: expect.stringMatching(/^invalid JWT/) });
  });
});
