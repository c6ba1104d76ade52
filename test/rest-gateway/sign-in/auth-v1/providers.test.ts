import { createHmac, hash, randomUUID } from "node:crypto";
import type { SupabaseClient } from "@supabase/supabase-js";
import jwt from "jsonwebtoken";
import { generate } from "otplib";
import { beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { useFixture } from "../../../fixture.ts";
import { SECRET } from "../../../secret.ts";
import { at, openFederatedGateways, PROGRAM, SITE } from "../federated-gateways.ts";
import { openForger } from "../forger.ts";
import { openGateways } from "../gateways.ts";
import { CLIENT, openOpenIdProvider } from "../openid-provider.ts";
import { PROVIDER_CERTIFICATE, SERVICE_CERTIFICATE, SERVICE_KEY } from "../saml-keys.ts";
import { ISSUER, openSamlProvider } from "../saml-provider.ts";
import { ANON_KEY, makeClient, newAddress, PASSWORD } from "./auth-client.ts";

const ID_TOKEN_CLIENT = "application";

const gateways = useFixture(() =>
  openFederatedGateways({ AUTH_AUTOCONFIRM: "true", AUTH_MANUAL_LINKING: "true", AUTH_ANONYMOUS_SIGN_INS: "true" }),
);
const provider = useFixture(() => openOpenIdProvider([SITE]));
const saml = useFixture(() =>
  openSamlProvider({
    callback: at("/auth/providers/office/callback"),
    signedOut: at("/auth/providers/office/signed-out"),
  }),
);
const forger = useFixture(() => openForger(ID_TOKEN_CLIENT));
beforeAll(async () => {
  const { id: clientId, secret } = CLIENT;
  await gateways.addProvider({ name: "example", kind: "oidc", issuer: provider.issuer, clientId, secret });
  await gateways.addProvider({
    name: "forge",
    kind: "oidc",
    issuer: forger.issuer,
    clientId: ID_TOKEN_CLIENT,
    settings: { client_ids: ["application-on-a-phone"] },
  });
  await gateways.addProvider({
    name: "office",
    kind: "saml",
    issuer: ISSUER,
    secret: SERVICE_KEY,
    trustsEmail: true,
    settings: {
      entry_point: `${saml.origin}/sso`,
      certificates: [PROVIDER_CERTIFICATE],
      certificate: SERVICE_CERTIFICATE,
      domains: ["office.example"],
    },
  });
});

const newClient = (flowType: "pkce" | "implicit" = "pkce") => makeClient(gateways.one.url, { flowType });
const newLogin = () => `user-${randomUUID()}`;

/** The URL of the provider that the client sends the browser to. */
async function startOf(client: SupabaseClient, options: object = {}): Promise<string> {
  const { data, error } = await client.auth.signInWithOAuth({
    provider: "example" as never,
    options: { redirectTo: PROGRAM, skipBrowserRedirect: true, ...options },
  });
  expect(error).toBeNull();
  return data.url!;
}

/** Returns the address at which the browser ends. */
async function leadOf(start: string, login: string): Promise<URL> {
  return (await provider.signIn(gateways.browser(), start, login)).url;
}

async function signIn(login = newLogin()) {
  const client = newClient();
  const url = await leadOf(await startOf(client), login);
  const { data, error } = await client.auth.exchangeCodeForSession(url.searchParams.get("code")!);
  expect(error).toBeNull();
  return { client, session: data.session!, user: data.user! };
}

async function signUp() {
  const client = newClient();
  const { data, error } = await client.auth.signUp({ email: newAddress(), password: PASSWORD });
  expect(error).toBeNull();
  return { client, user: data.user! };
}

const unlinkAll = (id: string) =>
  gateways.owner.query(
    "delete from auth.identities using auth.users where users.user_id = identities.user_id and id = $1",
    [id],
  );

const fragmentOf = ({ hash: fragment }: URL) => Object.fromEntries(new URLSearchParams(fragment.slice(1)));

describe("signInWithOAuth", () => {
  test("ends with a code that only its client can exchange, once (PKCE)", async () => {
    const login = newLogin();
    const client = newClient();
    const url = await leadOf(await startOf(client), login);
    expect(`${url.origin}${url.pathname}`).toBe(PROGRAM);
    expect(url.hash).toBe("");
    const code = url.searchParams.get("code")!;
    const thief = newClient();
    await startOf(thief);
    expect((await thief.auth.exchangeCodeForSession(code)).error).toMatchObject({ code: "bad_code_verifier" });
    const { data } = await client.auth.exchangeCodeForSession(code);
    expect(data.user).toMatchObject({
      email: `${login}@example.org`,
      app_metadata: { provider: "example", providers: ["example"] },
      identities: [{ provider: "example", id: login }],
    });
    const { data: verified } = await client.auth.getClaims();
    expect(verified!.claims).toMatchObject({ aal: "aal1", amr: [{ method: "oauth" }], email: `${login}@example.org` });
    await startOf(client);
    expect((await client.auth.exchangeCodeForSession(code)).error).toMatchObject({ code: "flow_state_not_found" });
  });

  test("ends with tokens in the fragment (implicit)", async () => {
    const login = newLogin();
    const client = newClient("implicit");
    const url = await leadOf(await startOf(client), login);
    expect(url.search).toBe("");
    const { access_token, refresh_token, ...rest } = fragmentOf(url);
    expect(rest).toEqual({ expires_at: expect.stringMatching(/^\d+$/), expires_in: "3600", token_type: "bearer" });
    const session = { access_token: access_token!, refresh_token: refresh_token! };
    expect((await client.auth.setSession(session)).data.user).toMatchObject({ email: `${login}@example.org` });
  });

  test("finds the account again, and the account of a verified address", async () => {
    const login = newLogin();
    const first = await signIn(login);
    expect((await signIn(login)).user.id).toBe(first.user.id);
  });

  test("sends the callback of all providers, further scopes and hints, and neither PKCE nor tokens of the client", async () => {
    const start = await startOf(newClient(), {
      scopes: "phone,address",
      queryParams: { prompt: "login", login_hint: "ada", redirect_uri: "https://evil.example", client_id: "other" },
    });
    const { headers } = await gateways.browser().ask(start);
    const sent = new URL(headers.get("location")!).searchParams;
    expect(Object.fromEntries(sent)).toMatchObject({
      redirect_uri: at("/auth/v1/callback"),
      client_id: CLIENT.id,
      scope: "openid profile email phone address",
      prompt: "login",
      login_hint: "ada",
    });
    expect(sent.get("code_challenge")).not.toBe(new URL(start).searchParams.get("code_challenge"));
  });

  test("returns the URL instead of a redirect on request", async () => {
    const start = `${await startOf(newClient())}&skip_http_redirect=true`;
    const { status, body } = await gateways.get(start);
    expect(status).toBe(200);
    expect(new URL(body.url).origin).toBe(provider.issuer);
  });

  test("redirects to allowed URLs only; others count as none", async () => {
    for (const redirectTo of [
      "https://evil.example/",
      "javascript:alert(1)",
      `${PROGRAM}.evil.example`,
      "//evil.example",
    ]) {
      const url = await leadOf(await startOf(newClient(), { redirectTo }), newLogin());
      expect(url.origin).toBe(SITE);
    }
  });

  test.each([
    ["an unknown provider", { provider: "nobody" }, "Unsupported provider: provider is not enabled"],
    ["no provider", {}, "Unsupported provider: provider is not enabled"],
    ["a challenge without its method", { provider: "example", code_challenge: "a".repeat(43) }, "PKCE flow requires"],
    ["a short challenge", { provider: "example", code_challenge: "a", code_challenge_method: "s256" }, "43"],
  ])("refuses %s", async (_what, query, message) => {
    const { status, body } = await gateways.get(`${gateways.one.url}/auth/v1/authorize?${new URLSearchParams(query)}`);
    expect([status, body.error_code]).toEqual([400, "validation_failed"]);
    expect(body.msg).toContain(message);
  });

  test("reports to the client why the provider refused", async () => {
    const browser = gateways.browser();
    const { headers } = await browser.ask(await startOf(newClient()));
    const state = new URL(headers.get("location")!).searchParams.get("state")!;
    const answer = new URLSearchParams({ error: "access_denied", state, iss: provider.issuer });
    const url = new URL((await browser.ask(at(`/auth/v1/callback?${answer}`))).headers.get("location")!);
    expect(`${url.origin}${url.pathname}`).toBe(PROGRAM);
    const expected = { error: "access_denied", error_code: "bad_oauth_callback" };
    expect(Object.fromEntries(url.searchParams)).toMatchObject(expected);
    expect(fragmentOf(url)).toMatchObject(expected);
    const again = new URL((await browser.ask(at(`/auth/v1/callback?${answer}`))).headers.get("location")!);
    expect(again.origin).toBe(SITE);
    expect(fragmentOf(again)).toMatchObject({ error: "invalid_request", error_code: "bad_oauth_state" });
  });

  test("does not accept a state of another kind of sign-in", async () => {
    const browser = gateways.browser();
    const { headers } = await browser.ask(at("/auth/providers/example/sign-in"));
    const state = new URL(headers.get("location")!).searchParams.get("state")!;
    const shown = await browser.ask(at(`/auth/v1/callback?code=a-code&state=${state}`));
    expect(fragmentOf(new URL(shown.headers.get("location")!))).toMatchObject({ error_code: "bad_oauth_state" });
  });
});

async function openClosed() {
  const closed = await openGateways({ settings: { AUTH_AUTOCONFIRM: "true" } });
  return Object.assign(closed, { [Symbol.asyncDispose]: closed.close });
}

describe("identities of a user", () => {
  async function link(client: SupabaseClient, login: string): Promise<URL> {
    const { data, error } = await client.auth.linkIdentity({
      provider: "example" as never,
      options: { redirectTo: PROGRAM, skipBrowserRedirect: true },
    });
    expect(error).toBeNull();
    return leadOf(data.url!, login);
  }

  test("are linked and unlinked, but not the last one", async () => {
    const { client, user } = await signUp();
    const url = await link(client, newLogin());
    const { data: exchanged } = await client.auth.exchangeCodeForSession(url.searchParams.get("code")!);
    expect(exchanged.user!.id).toBe(user.id);
    const { data } = await client.auth.getUserIdentities();
    expect(data!.identities.map((identity) => identity.provider).sort()).toEqual(["email", "example"]);
    const linked = data!.identities.find((identity) => identity.provider === "example")!;
    expect((await client.auth.unlinkIdentity(linked)).error).toBeNull();
    expect((await client.auth.getUserIdentities()).data!.identities).toHaveLength(1);
    expect((await client.auth.unlinkIdentity(linked)).error).toMatchObject({ code: "identity_not_found" });

    const other = await signIn();
    expect((await other.client.auth.unlinkIdentity(other.user.identities![0]!)).error).toMatchObject({
      code: "single_identity_not_deletable",
    });
  });

  async function signInAnonymously() {
    const client = newClient();
    expect((await client.auth.signInAnonymously()).error).toBeNull();
    return client;
  }

  test("make an anonymous account permanent, which has the verified address", async () => {
    const client = await signInAnonymously();
    const login = newLogin();
    const url = await link(client, login);
    const { data } = await client.auth.exchangeCodeForSession(url.searchParams.get("code")!);
    expect(data.user).toMatchObject({ is_anonymous: false, email: `${login}@example.org` });
    expect(jwt.decode(data.session!.access_token)).toMatchObject({
      is_anonymous: false,
      email: `${login}@example.org`,
      app_metadata: { providers: ["example"] },
    });
    const { client: later, user } = await signIn(login);
    expect([user.id, user.is_anonymous]).toEqual([data.user!.id, false]);
    expect((await later.auth.getUserIdentities()).data!.identities).toMatchObject([{ provider: "example" }]);
  });

  test("make an anonymous account permanent without an address that is taken", async () => {
    const login = newLogin();
    const other = newClient();
    await other.auth.signUp({ email: `${login}@example.org`, password: PASSWORD });
    const client = await signInAnonymously();
    const url = await link(client, login);
    const { data } = await client.auth.exchangeCodeForSession(url.searchParams.get("code")!);
    expect(data.user).toMatchObject({ is_anonymous: false, email: "" });
    expect(jwt.decode(data.session!.access_token)).toMatchObject({ is_anonymous: false, email: "" });
    const address = newAddress();
    const { data: changed } = await client.auth.updateUser({ email: address });
    expect(changed.user).toMatchObject({ email: address, is_anonymous: false });
  });

  test("are not linked by whoever is sent to the provider, but by the client that began, with its verifier", async () => {
    const { client, user: stranger } = await signUp();
    const login = newLogin();
    const victim = await signIn(login);
    await unlinkAll(victim.user.id);
    const code = (await link(client, login)).searchParams.get("code")!;
    const identities = async () =>
      (await gateways.owner.query("select from auth.identities where subject = $1", [login])).rowCount;
    expect(await identities()).toBe(0);

    // The code arrives in the browser of the victim, whose client has another verifier.
    await startOf(victim.client);
    expect((await victim.client.auth.exchangeCodeForSession(code)).error).toMatchObject({ code: "bad_code_verifier" });
    expect(await identities()).toBe(0);
    const { data } = await client.auth.exchangeCodeForSession(code);
    expect(data.user).toMatchObject({ id: stranger.id, user_metadata: { sub: login } });
    expect(await identities()).toBe(1);
  });

  test("by SAML are not linked by whoever is sent to the provider, nor once the password was changed or the identity taken", async () => {
    const identities = async (subject: string) =>
      (await gateways.owner.query("select from auth.identities where subject = $1", [subject])).rowCount;
    const { user: usual } = saml;
    onTestFinished(() => {
      saml.user = usual;
    });
    const linkBySaml = async (client: SupabaseClient, login: string): Promise<string> => {
      saml.user = { id: login, email: `${login}@office.example` };
      const { data, error } = await client.auth.linkIdentity({
        provider: "office" as never,
        options: { redirectTo: PROGRAM, skipBrowserRedirect: true },
      });
      expect(error).toBeNull();
      const { url } = await saml.signIn(gateways.browser(), data!.url!);
      return url.searchParams.get("code")!;
    };

    const { client: stranger, user } = await signUp();
    const login = newLogin();
    const code = await linkBySaml(stranger, login);
    const { client: victim } = await signIn();
    await startOf(victim);
    expect((await victim.auth.exchangeCodeForSession(code)).error).toMatchObject({ code: "bad_code_verifier" });
    expect(await identities(login)).toBe(0);
    expect((await stranger.auth.exchangeCodeForSession(code)).data.user!.id).toBe(user.id);
    expect(await identities(login)).toBe(1);

    const taken = await signUp();
    const refused = await linkBySaml(taken.client, login);
    expect(refused).toBeNull();
    const { client, user: changed } = await signUp();
    const late = newLogin();
    const lateCode = await linkBySaml(client, late);
    const key = jwt.sign({ role: "service_role" }, SECRET);
    const { auth } = makeClient(gateways.one.url, {}, key);
    expect((await auth.admin.updateUserById(changed.id, { password: `${PASSWORD}-2` })).error).toBeNull();
    expect((await client.auth.exchangeCodeForSession(lateCode)).error).not.toBeNull();
    expect(await identities(late)).toBe(0);
  });

  test("are not linked if the password was changed, or the identity taken, after the provider has answered", async () => {
    for (const change of ["password", "identity"] as const) {
      const { client, user } = await signUp();
      const login = newLogin();
      const code = (await link(client, login)).searchParams.get("code")!;
      if (change === "identity") await signIn(login);
      else {
        const key = jwt.sign({ role: "service_role" }, SECRET);
        const { auth } = makeClient(gateways.one.url, {}, key);
        expect((await auth.admin.updateUserById(user.id, { password: `${PASSWORD}-2` })).error).toBeNull();
      }
      expect((await client.auth.exchangeCodeForSession(code)).error).not.toBeNull();
      const owned = "select from auth.identities join auth.users using (user_id) where subject = $1 and users.id = $2";
      expect((await gateways.owner.query(owned, [login, user.id])).rowCount).toBe(0);
    }
  });

  test("are linked with PKCE only, because anybody could end the link otherwise", async () => {
    const client = newClient("implicit");
    expect((await client.auth.signUp({ email: newAddress(), password: PASSWORD })).error).toBeNull();
    const { error } = await client.auth.linkIdentity({ provider: "example" as never });
    expect(error).toMatchObject({ status: 400, code: "validation_failed", message: expect.stringMatching(/PKCE/) });
  });

  test("of one user cannot be linked or unlinked by another", async () => {
    const login = newLogin();
    const owner = await signIn(login);
    const { client } = await signUp();
    const url = await link(client, login);
    expect(Object.fromEntries(url.searchParams)).toMatchObject({ error_code: "identity_already_exists" });
    const { error } = await client.auth.unlinkIdentity(owner.user.identities![0]!);
    expect(error).toMatchObject({ code: "identity_not_found" });
    expect((await owner.client.auth.getUserIdentities()).data!.identities).toHaveLength(1);
  });

  test("cannot be linked by somebody who knows the password alone", async () => {
    const { client, user } = await signUp();
    const { data: factor } = await client.auth.mfa.enroll({ factorType: "totp" });
    const code = await generate({ secret: (factor as { totp: { secret: string } }).totp.secret });
    expect((await client.auth.mfa.challengeAndVerify({ factorId: factor!.id, code })).error).toBeNull();
    const url = await link(client, newLogin());
    expect(url.searchParams.get("code")).not.toBeNull();
    const identity = (await client.auth.getUserIdentities()).data!.identities[0]!;

    const thief = newClient();
    await thief.auth.signInWithPassword({ email: user.email!, password: PASSWORD });
    const refusal = { status: 403, code: "insufficient_aal" };
    expect((await thief.auth.linkIdentity({ provider: "example" as never })).error).toMatchObject(refusal);
    expect((await thief.auth.unlinkIdentity(identity)).error).toMatchObject(refusal);
  });

  test("are linked and unlinked with AUTH_MANUAL_LINKING only, and SSO is refused without a SAML provider", async () => {
    await using closed = await openClosed();
    const client = makeClient(closed.one.url);
    await client.auth.signUp({ email: newAddress(), password: PASSWORD });
    const { data } = await client.auth.getUserIdentities();
    const refusal = { status: 404, code: "manual_linking_disabled", message: "Manual linking is disabled" };
    expect((await client.auth.linkIdentity({ provider: "google" })).error).toMatchObject(refusal);
    expect((await client.auth.unlinkIdentity(data!.identities[0]!)).error).toMatchObject(refusal);
    const link = { provider: "google", token: "a.b.c" } as never;
    expect((await client.auth.linkIdentity(link)).error).toMatchObject(refusal);
    for (const sent of [{ domain: "office.example" }, { providerId: "office" }, {} as { domain: string }]) {
      const { error } = await client.auth.signInWithSSO(sent);
      expect(error).toMatchObject({ code: "saml_provider_disabled", message: "SAML 2.0 is disabled" });
    }
  });

  test("require a signed-in user", async () => {
    const headers = { apikey: ANON_KEY };
    for (const path of ["/user/identities/authorize?provider=example", "/user/identities/authorize"]) {
      expect((await gateways.get(`${gateways.one.url}/auth/v1${path}`, { headers })).status).toBe(401);
    }
  });
});

describe("signInWithSSO", () => {
  test("leads to the provider of the domain, and ends with a code for its client", async () => {
    const client = newClient();
    const { data, error } = await client.auth.signInWithSSO({
      domain: "Office.example",
      options: { redirectTo: PROGRAM },
    });
    expect(error).toBeNull();
    const { url } = await saml.signIn(gateways.browser(), data!.url);
    expect(`${url.origin}${url.pathname}`).toBe(PROGRAM);
    const { data: exchanged } = await client.auth.exchangeCodeForSession(url.searchParams.get("code")!);
    expect(exchanged.user).toMatchObject({ email: "ada@example.org" });
    expect((await client.auth.getClaims()).data!.claims).toMatchObject({ amr: [{ method: "sso/saml" }] });
  });

  test.each([[{ domain: "other.example" }], [{ providerId: "nobody" }], [{ providerId: "example" }]])(
    "knows no provider for %j",
    async (sent) => {
      const { error } = await newClient().auth.signInWithSSO(sent);
      expect(error).toMatchObject({ status: 404, code: "sso_provider_not_found" });
    },
  );
});

describe("signInWithIdToken", () => {
  const claimsOf = (more: object = {}) => {
    const sub = newLogin();
    return { sub, email: `${sub}@example.org`, email_verified: true, name: "Ada", ...more };
  };
  const submit = async (token: string, more: object = {}) =>
    newClient().auth.signInWithIdToken({ provider: "forge", token, ...more });
  const identitiesOf = async (sub: string) =>
    (await gateways.owner.query("select from auth.identities where subject = $1", [sub])).rowCount;

  test("creates the user the first time and finds it afterwards", async () => {
    const claims = claimsOf({ picture: "https://pictures.example/ada.png" });
    const first = await submit(await forger.idToken(claims));
    expect(first.error).toBeNull();
    expect(first.data.user).toMatchObject({ email: claims.email, app_metadata: { provider: "forge" } });
    expect(first.data.user!.user_metadata).toEqual({
      iss: forger.issuer,
      sub: claims.sub,
      provider_id: claims.sub,
      email: claims.email,
      email_verified: true,
      name: "Ada",
      full_name: "Ada",
      picture: "https://pictures.example/ada.png",
      avatar_url: "https://pictures.example/ada.png",
    });
    const second = await submit(await forger.idToken({ ...claims, aud: "application-on-a-phone" }));
    expect(second.data.user!.id).toBe(first.data.user!.id);
  });

  test("keeps metadata that the user has changed, and no picture that is not an https URL", async () => {
    const claims = claimsOf({ picture: "javascript:alert(1)" });
    const client = newClient();
    const signInAs = async (name: string) =>
      client.auth.signInWithIdToken({ provider: "forge", token: await forger.idToken({ ...claims, name }) });
    await signInAs("Ada");
    await client.auth.updateUser({ data: { full_name: "Ada L." } });
    const { data } = await signInAs("Another");
    expect(data.user!.user_metadata).toMatchObject({ full_name: "Ada L.", name: "Ada" });
    expect(data.user!.user_metadata).not.toHaveProperty("avatar_url");
  });

  test("verifies the nonce and the hash of the access token", async () => {
    const nonce = randomUUID();
    const hashed = hash("sha256", nonce, "hex");
    expect((await submit(await forger.idToken(claimsOf({ nonce: hashed })), { nonce })).error).toBeNull();
    const accessToken = "an access token";
    const at_hash = hash("sha256", accessToken, "buffer").subarray(0, 16).toString("base64url");
    const bound = await forger.idToken(claimsOf({ at_hash }));
    expect((await submit(bound, { access_token: accessToken })).error).toBeNull();
    for (const [token, more] of [
      [await forger.idToken(claimsOf({ nonce: hashed })), {}],
      [await forger.idToken(claimsOf({ nonce: hashed })), { nonce: "another" }],
      [await forger.idToken(claimsOf({ nonce })), { nonce }],
      [await forger.idToken(claimsOf()), { nonce }],
      [bound, {}],
      [bound, { access_token: "another" }],
    ] as const) {
      expect((await submit(token, more)).error).toMatchObject({ status: 400 });
    }
  });

  test.each([
    ["of another issuer, signed with an accepted key", { iss: "https://accounts.example.org" }],
    ["of an issuer whose name begins like the provider's", { iss: "http://127.0.0.1" }],
    ["without an issuer", { iss: undefined }],
    ["for another client", { aud: "another" }],
    ["for no client", { aud: undefined }],
    ["for several clients, issued to another", { aud: [ID_TOKEN_CLIENT, "another"], azp: "another" }],
    ["that has expired", { exp: 1 }],
    ["without an end", { exp: undefined }],
    ["of the future", { iat: 4_000_000_000 }],
    ["without a time of issue", { iat: undefined }],
    ["whose subject is a number", { sub: 7 }],
  ])("refuses a token %s, and links nothing", async (_what, more) => {
    const claims = claimsOf(more);
    const { error } = await submit(await forger.idToken(claims));
    expect(error).toMatchObject({ status: 400, code: "bad_oauth_callback" });
    expect(await identitiesOf(String(claims.sub))).toBe(0);
  });

  test("refuses tokens with another signature, and does not link them to the account of the address", async () => {
    const victim = await signUp();
    const claims = { ...claimsOf(), email: victim.user.email };
    const [header, body, signature] = (await forger.idToken(claims)).split(".") as [string, string, string];
    const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
    const hmac = `${encode({ alg: "HS256", kid: "one" })}.${body}`;
    const issued = { iss: forger.issuer, aud: ID_TOKEN_CLIENT, ...claims };
    const forged = [
      `${encode({ alg: "none" })}.${body}.`,
      `${hmac}.${createHmac("sha256", forger.publicKeyPem).update(hmac).digest("base64url")}`,
      `${header}.${encode({ ...issued, sub: "another" })}.${signature}`,
      jwt.sign(issued, "a secret that the service does not know, either"),
      (await signIn()).session.access_token,
      "rubbish",
    ];
    for (const token of forged) {
      expect((await submit(token)).error).toMatchObject({ status: 400, code: "bad_oauth_callback" });
    }
    expect((await victim.client.auth.getUserIdentities()).data!.identities).toHaveLength(1);
  });

  test("refuses providers without ID tokens", async () => {
    const token = await forger.idToken(claimsOf());
    for (const name of ["office", "nobody"]) {
      expect((await submit(token, { provider: name })).error).toMatchObject({ status: 400, code: "validation_failed" });
    }
    expect((await submit(token, { provider: "example" })).error).toMatchObject({ code: "bad_oauth_callback" });
  });

  test("names the issuer of a known provider that is not configured", async () => {
    const { error } = await submit("a.b.c", { provider: "google" });
    expect(error).toMatchObject({
      code: "provider_disabled",
      message: 'Provider (issuer "https://accounts.google.com") is not enabled',
    });
  });

  test("links the identity to the signed-in user on request", async () => {
    const { client, user } = await signUp();
    const claims = claimsOf();
    const token = await forger.idToken(claims);
    const { data, error } = await client.auth.linkIdentity({ provider: "forge", token } as never);
    expect(error).toBeNull();
    expect((data as unknown as { user: { id: string } }).user.id).toBe(user.id);
    expect((await submit(token)).data.user!.id).toBe(user.id);
    const other = await signUp();
    const again = await other.client.auth.linkIdentity({ provider: "forge", token } as never);
    expect(again.error).toMatchObject({ code: "identity_already_exists" });
  });
});
