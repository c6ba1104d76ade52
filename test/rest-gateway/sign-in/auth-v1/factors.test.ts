import { generate } from "otplib";
import pg from "pg";
import { describe, expect, test } from "vitest";
import { useDatabase } from "../../../database.ts";
import { useFixture } from "../../../fixture.ts";
import { useService } from "../../../serve.ts";
import { SoftwareAuthenticator } from "../../../software-authenticator.ts";
import { ANON_KEY, makeClient, newAddress, PASSWORD } from "./auth-client.ts";

const database = useDatabase();
const owner = useFixture(() => new pg.Pool({ connectionString: database.ownerUrl, max: 2 }));
const settings = { AUTH_AUTOCONFIRM: "true", AUTH_SUBJECT: "uuid" };
const service = useService({ database, settings: { AUTH_AUTOCONFIRM: "true", AUTH_MANUAL_LINKING: "true" } });
const open = useService({ database, settings: { ...settings, AUTH_AAL1_ACCESS: "full" } });

type Client = ReturnType<typeof makeClient>;

async function signUp() {
  const client = makeClient(service.url);
  const email = newAddress();
  const { error } = await client.auth.signUp({ email, password: PASSWORD });
  expect(error).toBeNull();
  return { client, email };
}

async function signIn(email: string, { url } = service) {
  const client = makeClient(url);
  const { data, error } = await client.auth.signInWithPassword({ email, password: PASSWORD });
  expect(error).toBeNull();
  return { client, session: data.session! };
}

async function enroll(client: Client, friendlyName = "Phone") {
  const { data, error } = await client.auth.mfa.enroll({ factorType: "totp", friendlyName });
  expect(error).toBeNull();
  return { factorId: data!.id, secret: data!.totp.secret, totp: data!.totp };
}

/** The code of the next step, so that a code can follow one that was used. */
const codeOf = (secret: string, steps = 0) => generate({ secret, epoch: Math.floor(Date.now() / 1000) + 30 * steps });

async function signUpWithFactor() {
  const { client, email } = await signUp();
  const { factorId, secret } = await enroll(client);
  const { error } = await client.auth.mfa.challengeAndVerify({ factorId, code: await codeOf(secret) });
  expect(error).toBeNull();
  return { client, email, factorId, secret };
}

const levels = async (client: Client) => (await client.auth.mfa.getAuthenticatorAssuranceLevel()).data;

const asUser = (token: string, path: string, init: RequestInit = {}, { url } = service) =>
  fetch(url + path, { ...init, headers: { apikey: ANON_KEY, Authorization: `Bearer ${token}`, ...init.headers } });

// biome-ignore lint/suspicious/noExplicitAny: what an answer holds is what its test says.
const readJson = (response: Response): Promise<any> => response.json();

describe("an authenticator app at /auth/v1", () => {
  test("is enrolled, verified, listed and unenrolled, and raises the level of the session", async () => {
    const { client } = await signUp();
    const { factorId, secret, totp } = await enroll(client);
    expect(totp.qr_code).toMatch(/^data:image\/svg\+xml;utf-8,<svg /);
    expect(totp.uri).toContain(secret);
    expect(await levels(client)).toMatchObject({ currentLevel: "aal1", nextLevel: "aal1" });
    const pending = await client.auth.mfa.listFactors();
    expect(pending.data).toMatchObject({ all: [{ id: factorId, status: "unverified" }], totp: [] });

    const { data: challenge } = await client.auth.mfa.challenge({ factorId });
    expect(challenge).toMatchObject({ id: expect.any(String), type: "totp", expires_at: expect.any(Number) });
    const before = (await client.auth.getSession()).data.session!;
    const code = await codeOf(secret);
    const { data: verified, error } = await client.auth.mfa.verify({ factorId, challengeId: challenge!.id, code });
    expect(error).toBeNull();
    expect(verified).toMatchObject({ token_type: "bearer", user: { factors: [{ id: factorId, status: "verified" }] } });
    expect(await levels(client)).toMatchObject({
      currentLevel: "aal2",
      nextLevel: "aal2",
      currentAuthenticationMethods: [{ method: "totp" }, { method: "password" }],
    });
    expect((await client.auth.getSession()).data.session!.refresh_token).not.toBe(before.refresh_token);
    expect((await client.auth.refreshSession()).error).toBeNull();
    expect(await levels(client)).toMatchObject({ currentLevel: "aal2" });

    expect((await client.auth.mfa.unenroll({ factorId })).data).toEqual({ id: factorId });
    expect((await client.auth.mfa.listFactors()).data).toMatchObject({ all: [], totp: [] });
    await client.auth.refreshSession();
    expect(await levels(client)).toMatchObject({ currentLevel: "aal1", nextLevel: "aal1" });
  });

  test("refuses wrong codes, codes that were used and challenges that were used", async () => {
    const { client, factorId, secret } = await signUpWithFactor();
    for (const code of ["000000", await codeOf(secret)]) {
      const { data, error } = await client.auth.mfa.challengeAndVerify({ factorId, code });
      expect([data, error]).toMatchObject([
        null,
        { status: 422, code: "mfa_verification_failed", message: "Invalid TOTP code entered" },
      ]);
    }
    const { data: challenge } = await client.auth.mfa.challenge({ factorId });
    const response = { factorId, challengeId: challenge!.id };
    expect((await client.auth.mfa.verify({ ...response, code: await codeOf(secret, 1) })).error).toBeNull();
    expect((await client.auth.mfa.verify({ ...response, code: await codeOf(secret, 1) })).error).toMatchObject({
      status: 422,
      code: "mfa_factor_not_found",
    });
  });

  test("names what is wrong as Supabase Auth does", async () => {
    const { client } = await signUp();
    const { factorId, secret } = await enroll(client, "Phone");
    const other = (await signUp()).client;
    const { mfa } = client.auth;
    const missing = "00000000-0000-0000-0000-000000000000";
    const again = await mfa.enroll({ factorType: "totp", friendlyName: "Phone" });
    expect(again.error).toMatchObject({ status: 422, code: "mfa_factor_name_conflict" });
    expect((await mfa.enroll({ factorType: "phone", phone: "+4512345678" })).error).toMatchObject({
      code: "mfa_phone_enroll_not_enabled",
    });
    expect((await mfa.enroll({ factorType: "smoke" as never })).error).toMatchObject({ code: "validation_failed" });
    for (const id of [missing, "7"]) {
      expect((await mfa.challenge({ factorId: id })).error).toMatchObject({
        status: 404,
        code: "mfa_factor_not_found",
      });
      expect((await mfa.unenroll({ factorId: id })).error).toMatchObject({ status: 404 });
    }
    expect((await other.auth.mfa.challenge({ factorId })).error).toMatchObject({ code: "mfa_factor_not_found" });
    expect((await other.auth.mfa.unenroll({ factorId })).error).toMatchObject({ code: "mfa_factor_not_found" });
    const code = await codeOf(secret);
    expect((await mfa.verify({ factorId, challengeId: missing, code })).error).toMatchObject({
      code: "mfa_factor_not_found",
    });
    expect((await mfa.challengeAndVerify({ factorId, code: "" })).error).toMatchObject({ code: "validation_failed" });
    const { data: challenge } = await mfa.challenge({ factorId });
    await owner.query("update auth.mfa_challenges set expires_at = now() where id = $1", [challenge!.id]);
    expect((await mfa.verify({ factorId, challengeId: challenge!.id, code })).error).toMatchObject({
      status: 422,
      code: "mfa_challenge_expired",
    });
    for (let count = 1; count < 10; count++) await enroll(client, `${count}`);
    expect((await mfa.enroll({ factorType: "totp", friendlyName: "ten" })).error).toMatchObject({
      code: "too_many_enrolled_mfa_factors",
    });
  });

  test("requires a session", async () => {
    const client = makeClient(service.url);
    const { mfa } = client.auth;
    const results = [
      await mfa.enroll({ factorType: "totp" }),
      await mfa.challenge({ factorId: "x" }),
      await mfa.verify({ factorId: "x", challengeId: "x", code: "123456" }),
      await mfa.unenroll({ factorId: "x" }),
    ];
    for (const { data, error } of results) {
      expect(data).toBeNull();
      expect([401, 403]).toContain(error!.status);
    }
  });

  test("verified in parallel by one challenge gives one session", async () => {
    const { client } = await signUp();
    const { factorId, secret } = await enroll(client);
    const { data: challenge } = await client.auth.mfa.challenge({ factorId });
    const { access_token: token } = (await client.auth.getSession()).data.session!;
    const body = JSON.stringify({ challenge_id: challenge!.id, code: await codeOf(secret) });
    const verify = () => asUser(token, `/auth/v1/factors/${factorId}/verify`, { method: "POST", body });
    const statuses = (await Promise.all(Array.from({ length: 5 }, verify))).map(({ status }) => status);
    expect(statuses.sort()).toEqual([200, 422, 422, 422, 422]);
  });
});

describe("a sign-in without the second factor of its account", () => {
  const addresses = ["/rest/v1/users?select=id", "/users", "/api/auth/me", "/api/mfa/disable?code=x", "/auth/keys"];

  test("acts at /auth/v1 only, until the factor is verified", async () => {
    const { email, factorId, secret } = await signUpWithFactor();
    const { client, session } = await signIn(email);
    expect(await levels(client)).toMatchObject({ currentLevel: "aal1", nextLevel: "aal2" });
    expect((await client.auth.getUser()).data.user!.email).toBe(email);
    expect((await client.from("users").select("id").limit(1)).error).not.toBeNull();
    for (const path of addresses) {
      const init = path.includes("mfa") ? { method: "POST" } : {};
      expect([path, (await asUser(session.access_token, path, init)).status]).toEqual([path, 401]);
    }
    const graphql = await asUser(session.access_token, "/graphql", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ query: "{ me { id } }" }),
    });
    expect((await readJson(graphql)).data?.me ?? null).toBeNull();

    const code = await codeOf(secret, 1);
    expect((await client.auth.mfa.challengeAndVerify({ factorId, code })).error).toBeNull();
    expect((await client.from("users").select("id").limit(1)).error).toBeNull();
  });

  test("stays restricted after a refresh, at the documented route too", async () => {
    const { email } = await signUpWithFactor();
    const { client, session } = await signIn(email);
    await client.auth.refreshSession({ refresh_token: session.refresh_token });
    expect((await client.from("users").select("id").limit(1)).error).not.toBeNull();
    const { refresh_token: refreshToken } = (await client.auth.getSession()).data.session!;
    const response = await fetch(`${service.url}/auth/refresh`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ refreshToken }),
    });
    const { accessToken } = await readJson(response);
    expect((await asUser(accessToken, "/rest/v1/users?select=id")).status).toBe(401);
  });

  test("can neither add nor remove factors, passkeys and identities, nor change password and address", async () => {
    const { email, factorId } = await signUpWithFactor();
    const { client } = await signIn(email);
    const { auth } = client;
    expect((await auth.mfa.enroll({ factorType: "totp", friendlyName: "Mine" })).error).toMatchObject({
      status: 403,
      code: "insufficient_aal",
    });
    expect((await auth.mfa.unenroll({ factorId })).error).toMatchObject({ status: 422, code: "insufficient_aal" });
    expect((await auth.passkey.startRegistration()).error).toMatchObject({ code: "insufficient_aal" });
    expect((await auth.linkIdentity({ provider: "github" })).error).toMatchObject({ code: "insufficient_aal" });
    const identity = (await auth.getUserIdentities()).data!.identities[0]!;
    expect((await auth.unlinkIdentity(identity)).error).toMatchObject({ code: "insufficient_aal" });
    for (const change of [{ password: "Quartz-Bird-8" }, { email: newAddress() }]) {
      expect((await auth.updateUser(change)).error).toMatchObject({ status: 401, code: "insufficient_aal" });
    }
    expect((await auth.updateUser({ data: { color: "green" } })).error).toBeNull();
  });

  test("acts everywhere with AUTH_AAL1_ACCESS=full, where policies check the claim aal", async () => {
    const { email } = await signUpWithFactor();
    const { client, session } = await signIn(email, open);
    expect((await client.from("users").select("id").limit(1)).error).toBeNull();
    expect((await asUser(session.access_token, "/rest/v1/users?select=id", {}, service)).status).toBe(401);
  });

  test("of an administrator changes no accounts and keys, also where it acts everywhere", async () => {
    const { client, email, factorId, secret } = await signUpWithFactor();
    const { id } = (await client.auth.getUser()).data.user!;
    await owner.query("select auth.assign_role(user_id, 'admin', null) from auth.users where email = $1", [email]);
    const factor = `/auth/v1/admin/users/${id}/factors/${factorId}`;
    const { client: second, session } = await signIn(email, open);
    const remove = (token: string) => asUser(token, factor, { method: "DELETE" }, open);
    const refused = await remove(session.access_token);
    expect([refused.status, (await readJson(refused)).error_code]).toEqual([403, "insufficient_aal"]);
    const key = {
      method: "POST",
      body: JSON.stringify({ role: "admin" }),
      headers: { "Content-Type": "application/json" },
    };
    const keyless = await asUser(session.access_token, "/auth/keys", key, open);
    expect([keyless.status, (await readJson(keyless)).error.code]).toEqual([401, "MFA_REQUIRED"]);
    const administer = (token: string) => asUser(token, "/admin/v1/running", {}, open);
    const unproved = await administer(session.access_token);
    expect([unproved.status, await unproved.text()]).toEqual([401, expect.stringContaining("MFA_REQUIRED")]);

    const code = await codeOf(secret, 1);
    expect((await second.auth.mfa.challengeAndVerify({ factorId, code })).error).toBeNull();
    const { access_token: proved } = (await second.auth.getSession()).data.session!;
    expect((await asUser(proved, "/auth/keys", key, open)).status).toBe(201);
    expect((await administer(proved)).status).toBe(200);
    expect((await remove(proved)).status).toBe(200);
  });

  test("ends when another one verifies the factor", async () => {
    const { email, factorId, secret } = await signUpWithFactor();
    const [one, two] = [await signIn(email), await signIn(email)];
    await one.client.auth.mfa.challengeAndVerify({ factorId, code: await codeOf(secret, 1) });
    expect((await two.client.auth.getUser()).error).toMatchObject({ name: "AuthSessionMissingError" });
    expect((await one.client.auth.getUser()).error).toBeNull();
  });
});

/** Registers the key of a pending factor, and uses that of a verified one. */
async function proveKey(client: Client, factorId: string, key: SoftwareAuthenticator) {
  const { access_token: token } = (await client.auth.getSession()).data.session!;
  const post = async (path: string, body: object) => {
    const init = { method: "POST", body: JSON.stringify(body) };
    const response = await asUser(token, `/auth/v1/factors/${factorId}/${path}`, init);
    return { status: response.status, body: await readJson(response) };
  };
  const { body: challenge } = await post("challenge", {});
  const { type, credential_options: options } = challenge.webauthn;
  const credential = type === "create" ? key.create(options.publicKey) : key.get(options.publicKey);
  const webauthn = { type, rpId: "localhost", credential_response: credential };
  return { type, ...(await post("verify", { challenge_id: challenge.id, webauthn })) };
}

describe("a security key at /auth/v1", () => {
  test("is registered by its first verification and verifies the later ones", async () => {
    const { client, email } = await signUp();
    const key = new SoftwareAuthenticator({ origin: "http://localhost:5173", verifiesUser: false });
    const { data: enrolled } = await client.auth.mfa.enroll({ factorType: "webauthn", friendlyName: "Key" });
    const factorId = enrolled!.id;

    const verify = (signedIn: Client) => proveKey(signedIn, factorId, key);
    expect(await verify(client)).toMatchObject({ type: "create", status: 200 });
    const { client: later } = await signIn(email);
    const { type, status, body } = await verify(later);
    expect([type, status]).toEqual(["request", 200]);
    await later.auth.setSession(body);
    expect(await levels(later)).toMatchObject({ currentLevel: "aal2" });
    expect((await later.from("users").select("id").limit(1)).error).toBeNull();
    key.counter = 0;
    expect(await verify(later)).toMatchObject({ status: 422, body: { error_code: "mfa_verification_failed" } });
  });

  test("is not a passkey: it does not sign in without the password", async () => {
    const { client } = await signUp();
    const key = new SoftwareAuthenticator();
    const { data: enrolled } = await client.auth.mfa.enroll({ factorType: "webauthn", friendlyName: "Key" });
    expect(await proveKey(client, enrolled!.id, key)).toMatchObject({ status: 200 });
    const post = async (path: string, body: object) => {
      const init = { method: "POST", headers: { apikey: ANON_KEY }, body: JSON.stringify(body) };
      return fetch(`${service.url}/auth/v1/passkeys/authentication/${path}`, init);
    };
    const { challenge_id, options } = await readJson(await post("options", {}));
    const response = await post("verify", { challenge_id, credential: key.get(options) });
    expect([response.status, (await readJson(response)).access_token]).toEqual([400, undefined]);
  });

  test("that was enrolled before another factor was verified is not accepted instead of that", async () => {
    const { client, email } = await signUp();
    const { client: thief } = await signIn(email);
    const { data: enrolled } = await thief.auth.mfa.enroll({ factorType: "webauthn", friendlyName: "Key" });
    const { factorId, secret } = await enroll(client);
    const { error } = await client.auth.mfa.challengeAndVerify({ factorId, code: await codeOf(secret) });
    expect(error).toBeNull();

    const { client: again } = await signIn(email);
    const refused = await proveKey(again, enrolled!.id, new SoftwareAuthenticator());
    expect(refused).toMatchObject({ type: "create", status: 403, body: { error_code: "insufficient_aal" } });
    expect(await proveKey(client, enrolled!.id, new SoftwareAuthenticator())).toMatchObject({ status: 200 });
  });

  test("must be proved before the documented routes add an app, also where tokens without it act everywhere", async () => {
    const { client, email } = await signUp();
    const key = new SoftwareAuthenticator();
    const { data: enrolled } = await client.auth.mfa.enroll({ factorType: "webauthn", friendlyName: "Key" });
    const begun = (await client.auth.getSession()).data.session!.access_token;
    const startApp = (token: string) => asUser(token, "/api/mfa/enable", { method: "POST" }, open);
    const { secret: started } = await readJson(await startApp(begun));
    await client.auth.setSession((await proveKey(client, enrolled!.id, key)).body);

    const { session } = await signIn(email, open);
    const refusal = [401, "MFA_REQUIRED"];
    const refused = async (response: Response) => [response.status, (await readJson(response)).error?.code];
    expect(await refused(await startApp(session.access_token))).toEqual(refusal);
    const verify = async (token: string, secret: string) =>
      asUser(token, `/api/mfa/verify?code=${await codeOf(secret)}`, { method: "POST" }, open);
    expect(await refused(await verify(session.access_token, started))).toEqual(refusal);
    const factors = async () =>
      (await client.auth.mfa.listFactors()).data!.all.filter((each) => each.status === "verified");
    expect(await factors()).toMatchObject([{ factor_type: "webauthn" }]);

    const { access_token: proved } = (await client.auth.getSession()).data.session!;
    const { secret } = await readJson(await startApp(proved));
    expect((await verify(proved, secret)).status).toBe(200);
    expect((await factors()).map((each) => each.factor_type).sort()).toEqual(["totp", "webauthn"]);
  });
});

describe("the first second factor of an account", () => {
  const post = (path: string, body?: object, headers: Record<string, string> = {}) =>
    fetch(service.url + path, {
      method: "POST",
      headers: { "Content-Type": "application/json", ...headers },
      ...(body && { body: JSON.stringify(body) }),
    });

  async function loginByTokens(email: string) {
    return readJson(await post("/auth/login", { username: email, password: PASSWORD }));
  }

  async function loginByCookie(email: string) {
    const response = await post("/api/auth/login", { username: email, password: PASSWORD });
    const Cookie = response.headers.get("set-cookie")!.split(";", 1)[0]!;
    const { csrfToken } = await readJson(await fetch(`${service.url}/csrf-token`, { headers: { Cookie } }));
    return { Cookie, Origin: service.url, "X-CSRF-Token": csrfToken as string };
  }

  const statusOf = async (headers: Record<string, string>) =>
    (await fetch(`${service.url}/users?limit=1`, { headers: { Accept: "application/json", ...headers } })).status;
  const keys = async (headers: Record<string, string>) => (await post("/auth/resend-verification", {}, headers)).status;
  const bearer = (token: string) => ({ Authorization: `Bearer ${token}` });
  const refresh = async (refreshToken: string) => (await post("/auth/refresh", { refreshToken })).status;

  /** Sign-ins by the password alone, of each kind. */
  async function signInEverywhere(email: string) {
    const [pair, { client, session }] = [await loginByTokens(email), await signIn(email)];
    return { pair, client, session, cookie: await loginByCookie(email) };
  }

  async function expectEnded({ pair, client, session, cookie }: Awaited<ReturnType<typeof signInEverywhere>>) {
    expect(await refresh(pair.refreshToken)).toBe(401);
    expect((await client.auth.refreshSession({ refresh_token: session.refresh_token })).error).not.toBeNull();
    await expect.poll(() => statusOf(bearer(pair.accessToken))).toBe(401);
    await expect.poll(() => statusOf(bearer(session.access_token))).toBe(401);
    await expect.poll(() => keys(cookie)).toBe(401);
  }

  test("ends all other sign-ins when it is verified at /auth/v1", async () => {
    const { client, email } = await signUp();
    const others = await signInEverywhere(email);
    const { factorId, secret } = await enroll(client);
    expect((await client.auth.mfa.challengeAndVerify({ factorId, code: await codeOf(secret) })).error).toBeNull();
    await expectEnded(others);
    expect((await client.auth.getUser()).error).toBeNull();
    expect((await client.auth.refreshSession()).error).toBeNull();
    expect(await levels(client)).toMatchObject({ currentLevel: "aal2" });
    expect((await client.from("users").select("id").limit(1)).error).toBeNull();
  });

  test("ends all other sign-ins when it is verified by a token of the documented routes, which goes on", async () => {
    const { email } = await signUp();
    const others = await signInEverywhere(email);
    const own = await loginByTokens(email);
    const headers = bearer(own.accessToken);
    const { secret } = await readJson(await post("/api/mfa/enable", undefined, headers));
    expect((await post(`/api/mfa/verify?code=${await codeOf(secret)}`, undefined, headers)).status).toBe(200);
    await expectEnded(others);
    expect(await statusOf(headers)).toBe(200);
    expect(await refresh(own.refreshToken)).toBe(200);
  });

  test("ends all other sign-ins when it is verified by a cookie, which goes on", async () => {
    const { email } = await signUp();
    const { cookie, ...others } = await signInEverywhere(email);
    const { secret } = await readJson(await post("/api/mfa/enable", undefined, cookie));
    expect((await post(`/api/mfa/verify?code=${await codeOf(secret)}`, undefined, cookie)).status).toBe(200);
    await expectEnded({ ...others, cookie: { ...cookie, Cookie: "SESSION=none" } });
    expect(await keys(cookie)).not.toBe(401);
  });

  test("is required of a sign-in that is older, whatever its token says", async () => {
    const { client, email } = await signUp();
    const pair = await loginByTokens(email);
    // Without the functions that enable a factor, as by a release that ended no sign-in.
    await owner.query(
      `insert into auth.mfa_factors (user_id, factor_type, secret, state, enabled_at)
       select user_id, 'totp', 'SECRET', 'enabled', now() from auth.users where email = $1`,
      [email],
    );
    await owner.query(
      "update auth.token_sessions as session set requires_factor = true from auth.users as account where account.user_id = session.user_id and account.email = $1",
      [email],
    );
    const { auth } = client;
    expect((await auth.updateUser({ password: "Quartz-Bird-8" })).error).toMatchObject({ code: "insufficient_aal" });
    expect((await auth.passkey.startRegistration()).error).toMatchObject({ code: "insufficient_aal" });
    expect((await auth.linkIdentity({ provider: "github" })).error).toMatchObject({ code: "insufficient_aal" });
    const change = { method: "PUT", body: JSON.stringify({ password: "Quartz-Bird-8" }) };
    const documented = await asUser(pair.accessToken, "/auth/v1/user", change);
    expect([documented.status, (await readJson(documented)).error_code]).toEqual([401, "insufficient_aal"]);
    const body = { currentPassword: PASSWORD, newPassword: "Quartz-Bird-8" };
    const changed = await post("/auth/password", body, bearer(pair.accessToken));
    expect([changed.status, (await readJson(changed)).error.code]).toEqual([401, "MFA_REQUIRED"]);
  });
});
