import { once } from "node:events";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { beforeAll, describe, expect, test } from "vitest";
import { describeInBrowser, launchBrowser } from "../../../browser.ts";
import { useDatabase } from "../../../database.ts";
import { useFixture } from "../../../fixture.ts";
import { useService } from "../../../serve.ts";
import { SoftwareAuthenticator } from "../../../software-authenticator.ts";
import { ANON_KEY, makeClient, newAddress, PASSWORD } from "./auth-client.ts";

/** Another gateway on the same database. */

const database = useDatabase();
const service = useService({ database, settings: { AUTH_AUTOCONFIRM: "true" } });
const other = useService({ database, settings: { AUTH_AUTOCONFIRM: "true" } });

const APPLICATION = "http://localhost:5173";
const MISSING = "00000000-0000-0000-0000-000000000000";

async function signUp() {
  const client = makeClient(service.url);
  const email = newAddress();
  const { data, error } = await client.auth.signUp({ email, password: PASSWORD });
  expect(error).toBeNull();
  return { ...client.auth, auth: client.auth, passkey: client.auth.passkey, userId: data.user!.id, email };
}

async function signUpWithPasskey() {
  const user = await signUp();
  const authenticator = new SoftwareAuthenticator({ origin: APPLICATION });
  const { data: started } = await user.passkey.startRegistration();
  const credential = authenticator.create(started!.options as never);
  const finished = await user.passkey.verifyRegistration({ challengeId: started!.challenge_id, credential } as never);
  expect(finished.error).toBeNull();
  return { ...user, authenticator, passkeyId: finished.data!.id };
}

async function assertionOf(authenticator: SoftwareAuthenticator, { url } = service) {
  const { auth } = makeClient(url);
  const { data } = await auth.passkey.startAuthentication();
  const credential = authenticator.get(data!.options as never);
  const response = { challengeId: data!.challenge_id, credential } as never;
  return { auth, options: data!.options, verify: () => auth.passkey.verifyAuthentication(response) };
}

describe("a passkey at /auth/v1", () => {
  test("is registered, listed, renamed and deleted", async () => {
    const { passkey, passkeyId, userId } = await signUpWithPasskey();
    const { data: started } = await passkey.startRegistration();
    expect(started).toMatchObject({
      challenge_id: expect.stringMatching(/^[\da-f-]{36}$/),
      options: { rp: { id: "localhost" } },
    });
    expect(started!.expires_at).toBeGreaterThan(Date.now() / 1000);
    expect(Buffer.from(started!.options.user.id, "base64url").toString()).toBe(userId);
    expect(started!.options.excludeCredentials).toHaveLength(1);
    expect(started!.options.pubKeyCredParams).toContainEqual({ alg: -7, type: "public-key" });

    expect((await passkey.list()).data).toMatchObject([{ id: passkeyId, created_at: expect.any(String) }]);
    const renamed = await passkey.update({ passkeyId, friendlyName: "Laptop" });
    expect(renamed.data).toMatchObject({ id: passkeyId, friendly_name: "Laptop" });
    expect((await passkey.list()).data).toMatchObject([{ friendly_name: "Laptop" }]);
    expect((await passkey.update({ passkeyId: MISSING, friendlyName: "x" })).error).toMatchObject({
      status: 404,
      code: "passkey_not_found",
    });
    expect((await (await signUp()).passkey.delete({ passkeyId })).error).toMatchObject({ status: 404 });
    expect((await passkey.delete({ passkeyId })).error).toBeNull();
    expect((await passkey.list()).data).toEqual([]);
  });

  test("signs in at any gateway, once per challenge", async () => {
    const { authenticator, userId, passkey } = await signUpWithPasskey();
    const { auth, options, verify } = await assertionOf(authenticator, other);
    expect(options.allowCredentials ?? []).toEqual([]);
    const { data, error } = await verify();
    expect(error).toBeNull();
    expect(data!.user!.id).toBe(userId);
    expect((await auth.getUser()).data.user!.id).toBe(userId);
    const { data: level } = await auth.mfa.getAuthenticatorAssuranceLevel();
    expect(level).toMatchObject({ currentLevel: "aal1", currentAuthenticationMethods: [{ method: "passkey" }] });
    expect((await passkey.list()).data).toMatchObject([{ last_used_at: expect.any(String) }]);
    expect((await verify()).error).toMatchObject({ status: 400, code: "webauthn_challenge_not_found" });
  });

  test("is refused if it is unknown, deleted, or its challenge is", async () => {
    const { authenticator, passkey, passkeyId } = await signUpWithPasskey();
    const unknown = new SoftwareAuthenticator({ origin: APPLICATION });
    unknown.userHandle = authenticator.userHandle;
    const refused = { status: 400, code: "webauthn_verification_failed" };
    expect((await (await assertionOf(unknown)).verify()).error).toMatchObject(refused);
    const { data: started } = await passkey.startRegistration();
    const credential = unknown.create(started!.options as never);
    const missing = await passkey.verifyRegistration({ challengeId: MISSING, credential } as never);
    expect(missing.error).toMatchObject({ status: 400, code: "webauthn_challenge_not_found" });
    await passkey.delete({ passkeyId });
    expect((await (await assertionOf(authenticator)).verify()).error).toMatchObject(refused);
  });

  test("needs a session to be registered", async () => {
    const { auth } = makeClient(service.url);
    expect((await auth.passkey.startRegistration()).error).toMatchObject({ name: "AuthSessionMissingError" });
    const response = await fetch(`${service.url}/auth/v1/passkeys`, { headers: { apikey: ANON_KEY } });
    expect(response.status).toBe(401);
  });
});

describeInBrowser("passkeys of an application", () => {
  const SCRIPT = join(createRequire(import.meta.url).resolve("@supabase/supabase-js"), "../umd/supabase.js");
  let page: Page;

  const browser = useFixture(launchBrowser);
  beforeAll(async () => {
    page = await browser.newPage();
  });
  const application = useFixture(() =>
    createServer((_request, response) => {
      response.setHeader("Content-Type", "text/html").end("<!doctype html><title>Films</title>");
    }),
  );
  beforeAll(async () => {
    await once(application.listen(0, "127.0.0.1"), "listening");
    await page.goto(`http://localhost:${(application.address() as AddressInfo).port}/`);
    await page.addScriptTag({ path: SCRIPT });
    const devices = await page.context().newCDPSession(page);
    await devices.send("WebAuthn.enable");
    const options = {
      protocol: "ctap2",
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
      automaticPresenceSimulation: true,
    } as const;
    // A device, and a key of its own, which the client requires for second factors.
    for (const transport of ["internal", "usb"] as const) {
      await devices.send("WebAuthn.addVirtualAuthenticator", { options: { ...options, transport } });
    }
  });

  /** Runs the body with a client of its own; returns the body's result. */
  const run = <T>(body: string) =>
    page.evaluate<T>(`(async () => {
      const options = { auth: { persistSession: false, autoRefreshToken: false } };
      const newClient = () => supabase.createClient(${JSON.stringify(service.url)}, ${JSON.stringify(ANON_KEY)}, options);
      const credentials = { email: ${JSON.stringify(newAddress())}, password: ${JSON.stringify(PASSWORD)} };
      const succeed = ({ data, error }) => { if (error) throw error; return data; };
      const { auth } = newClient();
      const { user } = succeed(await auth.signUp(credentials));
      ${body}
    })()`);

  test("are registered and sign in through supabase-js", async () => {
    const users = await run<{ id: string; signedIn: string; events: string[] }>(`
      succeed(await auth.registerPasskey());
      const client = newClient();
      const events = [];
      client.auth.onAuthStateChange((event) => { events.push(event); });
      const { user: signedIn } = succeed(await client.auth.signInWithPasskey());
      return { id: user.id, signedIn: signedIn.id, events };
    `);
    expect(users.signedIn).toBe(users.id);
    expect(users.events).toContain("SIGNED_IN");
  });

  test("are second factors, too", async () => {
    const levels = await run<{ before: object; after: object; factors: object }>(`
      succeed(await auth.mfa.webauthn.register({ friendlyName: "Key", webauthn: { rpId: "localhost" } }));
      const client = newClient();
      succeed(await client.auth.signInWithPassword(credentials));
      const before = succeed(await client.auth.mfa.getAuthenticatorAssuranceLevel());
      const { webauthn: [factor] } = succeed(await client.auth.mfa.listFactors());
      succeed(await client.auth.mfa.webauthn.authenticate({ factorId: factor.id, webauthn: { rpId: "localhost" } }));
      return { before, after: succeed(await client.auth.mfa.getAuthenticatorAssuranceLevel()), factors: factor };
    `);
    expect(levels).toMatchObject({
      before: { currentLevel: "aal1", nextLevel: "aal2" },
      after: {
        currentLevel: "aal2",
        currentAuthenticationMethods: [{ method: "mfa/webauthn" }, { method: "password" }],
      },
      factors: { friendly_name: "Key", factor_type: "webauthn", status: "verified" },
    });
  });

  test("stand beside authenticator apps, whose QR code is an image", async () => {
    const width = await run<number>(`
      const { totp } = succeed(await auth.mfa.enroll({ factorType: "totp", friendlyName: "Phone" }));
      const image = new Image();
      image.src = totp.qr_code;
      await image.decode();
      return image.naturalWidth;
    `);
    expect(width).toBeGreaterThan(0);
  });
});
