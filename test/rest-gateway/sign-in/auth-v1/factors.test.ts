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
});
