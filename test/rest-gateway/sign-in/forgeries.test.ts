import { createHmac, createPrivateKey, generateKeyPairSync, randomBytes, randomInt, sign } from "node:crypto";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { useFixture } from "../../fixture.ts";
import type { Browser } from "./browser.ts";
import { at, openFederatedGateways, PROGRAM, SITE, whoIs } from "./federated-gateways.ts";
import { json, openForger } from "./forger.ts";
import { newFactor } from "./gateways.ts";

const CLIENT = { id: "content-service", secret: "a secret of the client that nobody else knows" };
const PERSON = { email: "forged@example.org", email_verified: true, name: "Forged" };
/** Returns characters of three bytes each, in no order that could be compressed. */
const ideographs = (count: number) =>
  String.fromCharCode(...Array.from({ length: count }, () => 0x4e00 + randomInt(0x5000)));
let browser: Browser;
let begun = 0;
const gateways = useFixture(openFederatedGateways);
const forger = useFixture(() => openForger(CLIENT.id));
beforeEach(async () => {
  browser = gateways.browser();
  await gateways.owner.query("delete from auth.providers");
  // The service caches the metadata of a provider, so each test has one with another name.
  begun++;
  await gateways.addProvider({
    name: name(),
    kind: "oidc",
    issuer: forger.issuer,
    clientId: CLIENT.id,
    secret: CLIENT.secret,
  });
});
afterEach(() => forger.forget());

const name = () => `forger-${begun}`;

/** Returns the parameters with which the browser was sent to the provider. */
async function leave(): Promise<{ state: string; nonce: string }> {
  const shown = await browser.ask(at(`/auth/providers/${name()}/sign-in`));
  expect(shown.status, shown.text).toBe(303);
  const { searchParams } = new URL(shown.headers.get("location")!);
  return { state: searchParams.get("state")!, nonce: searchParams.get("nonce")! };
}

function comeBack(query: Readonly<Record<string, string>>, from = browser) {
  return from.ask(at(`/auth/providers/${name()}/callback?${new URLSearchParams({ code: "a-code", ...query })}`));
}

/** The token endpoint gives this for the code. */
function giveIdToken(token: string | Promise<string>, more: object = {}): void {
  forger.say("/token", async () =>
    json({ access_token: "an-access-token", token_type: "Bearer", id_token: await token, ...more }),
  );
}

const base64url = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
const claimsOf = (nonce: string) => {
  const now = Math.floor(Date.now() / 1000);
  return { iss: forger.issuer, aud: CLIENT.id, sub: "forged", nonce, iat: now, exp: now + 300, ...PERSON };
};

test("a valid sign-in is accepted, so that each refusal below has one cause", async () => {
  const { state, nonce } = await leave();
  giveIdToken(forger.idToken({ nonce, ...PERSON }));
  expect(await comeBack({ state })).toMatchObject({ status: 200, body: { username: PERSON.email } });
});

describe("the state parameter", () => {
  test("that is unknown, of another browser, or without its cookie is refused: 400", async () => {
    const { state, nonce } = await leave();
    giveIdToken(forger.idToken({ nonce, ...PERSON }));
    const anonymous = gateways.browser();
    await anonymous.ask(at(`/auth/providers/${name()}/sign-in`));
    const attempts = [
      await comeBack({ state: "a".repeat(43) }),
      await comeBack({}),
      await comeBack({ state }, anonymous),
      await comeBack({ state }, gateways.browser()),
    ];
    for (const attempt of attempts) {
      expect(attempt).toMatchObject({ status: 400, body: { error: { code: "SIGN_IN_ENDED" } } });
    }
    expect(await gateways.lastRefusal()).toMatchObject({ reason: "SIGN_IN_ENDED" });
    expect(forger.asked()).not.toContain("/token");
    // The one that left still may.
    expect((await comeBack({ state })).status).toBe(200);
  });

  test("works once for two concurrent callbacks at two gateways", async () => {
    const { state, nonce } = await leave();
    giveIdToken(forger.idToken({ nonce, ...PERSON }));
    const Cookie = `FEDERATION=${browser.cookies(SITE).get("FEDERATION")}`;
    const path = `/auth/providers/${name()}/callback?code=a-code&state=${state}`;
    const urls = [gateways.one, gateways.two].map(({ url }) => url + path);
    const result = await Promise.all(urls.map((url) => gateways.get(url, { headers: { Cookie } })));
    expect(result.map(({ status }) => status).sort()).toEqual([200, 400]);
  });

  test("of one provider is not valid for another", async () => {
    const { state } = await leave();
    await gateways.addProvider({ name: "other", kind: "oidc", issuer: `${forger.issuer}/other`, clientId: CLIENT.id });
    const shown = await browser.ask(at(`/auth/providers/other/callback?code=a-code&state=${state}`));
    expect(shown).toMatchObject({ status: 400, body: { error: { code: "SIGN_IN_ENDED" } } });
  });

  test("expires", async () => {
    const { state } = await leave();
    await gateways.owner.query("update auth.federation_states set expires_at = now()");
    expect((await comeBack({ state })).status).toBe(400);
  });
});

describe("an ID token is refused, 401,", () => {
  type Forge = (nonce: string) => string | Promise<string>;
  const unsigned = (header: object, nonce: string) => `${base64url(header)}.${base64url(claimsOf(nonce))}`;
  const hmac = (nonce: string, key: string | Buffer, alg = "HS256") => {
    const input = unsigned({ alg, kid: "one" }, nonce);
    return `${input}.${createHmac("sha256", key).update(input).digest("base64url")}`;
  };
  const forgeries: Readonly<Record<string, Forge>> = {
    "with another nonce": () => forger.idToken({ nonce: "another", ...PERSON }),
    "without the nonce": () => forger.idToken(PERSON),
    "of another issuer": (nonce) => forger.idToken({ nonce, iss: "https://evil.example.org", ...PERSON }),
    "of an issuer that only looks like it": (nonce) => forger.idToken({ nonce, iss: `${forger.issuer}/`, ...PERSON }),
    "for somebody else": (nonce) => forger.idToken({ nonce, aud: "another-client", ...PERSON }),
    "for several, by another's authority": (nonce) =>
      forger.idToken({ nonce, aud: [CLIENT.id, "another"], azp: "another", ...PERSON }),
    "for nobody": (nonce) => forger.idToken({ nonce, aud: undefined, ...PERSON }),
    "that has expired": (nonce) => forger.idToken({ nonce, exp: Math.floor(Date.now() / 1000) - 60, ...PERSON }),
    "that never expires": (nonce) => forger.idToken({ nonce, exp: undefined, ...PERSON }),
    "that is not valid yet": (nonce) => forger.idToken({ nonce, nbf: Math.floor(Date.now() / 1000) + 600, ...PERSON }),
    "about nobody": (nonce) => forger.idToken({ nonce, sub: undefined, ...PERSON }),
    "about somebody without a name": (nonce) => forger.idToken({ nonce, ...PERSON, sub: "" }),
    "about somebody whose name no index holds": (nonce) =>
      forger.idToken({ nonce, ...PERSON, sub: randomBytes(9_000).toString("base64url") }),
    "about somebody whose name is short in characters alone": (nonce) =>
      forger.idToken({ nonce, ...PERSON, sub: ideographs(1_000) }),
    "that is not signed": (nonce) => `${unsigned({ alg: "none" }, nonce)}.`,
    "with the signature taken off": async (nonce) =>
      `${(await forger.idToken({ nonce, ...PERSON })).replace(/[^.]+$/, "")}`,
    "whose claims were exchanged": async (nonce) => {
      const [header, , signature] = (await forger.idToken({ nonce, ...PERSON })).split(".");
      return [header, base64url({ ...claimsOf(nonce), sub: "another" }), signature].join(".");
    },
    "signed by the client's secret": (nonce) => hmac(nonce, CLIENT.secret),
    "signed by the public key as if it were a secret": (nonce) => hmac(nonce, forger.publicKeyPem),
    "signed by a key of one's own": (nonce) => {
      const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
      const input = unsigned({ alg: "RS256", kid: "one" }, nonce);
      return `${input}.${sign("sha256", Buffer.from(input), privateKey).toString("base64url")}`;
    },
    "that brings its key along": (nonce) => {
      const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
      const input = unsigned({ alg: "RS256", jwk: publicKey.export({ format: "jwk" }) }, nonce);
      return `${input}.${sign("sha256", Buffer.from(input), createPrivateKey(privateKey.export({ format: "pem", type: "pkcs8" }))).toString("base64url")}`;
    },
    "of a key that nobody knows": (nonce) => forger.idToken({ nonce, ...PERSON }, { kid: "two" }),
    "that has another algorithm than was agreed": (nonce) => hmac(nonce, CLIENT.secret, "HS512"),
    "that is none": () => "not-a-token",
  };

  test.each(Object.keys(forgeries))("%s", async (forgery) => {
    const { state, nonce } = await leave();
    giveIdToken(forgeries[forgery]!(nonce));
    const result = await comeBack({ state });
    expect(result).toMatchObject({ status: 401, body: { error: { code: "INVALID_ASSERTION" } } });
    expect(result.headers.get("www-authenticate")).toBe("Bearer");
    expect(result.headers.getSetCookie().join()).not.toContain("SESSION=");
    expect(await gateways.lastRefusal()).toMatchObject({ provider: name(), reason: "INVALID_ASSERTION" });
    expect(await whoIs(browser)).toBeNull();
    // It does not work afterwards either.
    giveIdToken(forger.idToken({ nonce, ...PERSON }));
    expect((await comeBack({ state })).status).toBe(400);
  });

  test("that is missing", async () => {
    const { state } = await leave();
    giveIdToken(undefined as unknown as string);
    expect(await comeBack({ state })).toMatchObject({ status: 401, body: { error: { code: "INVALID_ASSERTION" } } });
  });

  test("when the userinfo is of another user", async () => {
    forger.metadata = { userinfo_endpoint: `${forger.issuer}/me` };
    const { state, nonce } = await leave();
    giveIdToken(forger.idToken({ nonce }));
    forger.say("/me", () => json({ sub: "another", ...PERSON }));
    expect(await comeBack({ state })).toMatchObject({ status: 401, body: { error: { code: "INVALID_ASSERTION" } } });
  });
});

describe("a second factor that the provider has verified", () => {
  async function comeBackWith(amr: readonly string[] | undefined, query = "") {
    const shown = await browser.ask(at(`/auth/providers/${name()}/sign-in${query}`));
    const { searchParams } = new URL(shown.headers.get("location")!);
    const nonce = searchParams.get("nonce")!;
    giveIdToken(
      forger.idToken({ nonce, amr, sub: "guarded", email: "guarded@example.org", email_verified: true, name: "G" }),
    );
    return comeBack({ state: searchParams.get("state")! });
  }

  test("replaces the code only with --trust-factor", async () => {
    const back = await comeBackWith(undefined, `?mode=token&redirect_to=${encodeURIComponent(PROGRAM)}`);
    const code = new URL(back.headers.get("location")!).searchParams.get("code");
    const { body } = await gateways.post(`${gateways.one.url}/auth/providers/exchange`, { code });
    await newFactor(gateways, body.accessToken);

    const request = { status: 401, body: { error: { code: "MFA_REQUIRED" } } };
    expect(await comeBackWith(["pwd", "mfa"])).toMatchObject(request);
    await gateways.owner.query("update auth.providers set trusts_factor = true");
    expect(await comeBackWith(undefined)).toMatchObject(request);
    expect(await comeBackWith(["pwd"])).toMatchObject(request);
    expect(await comeBackWith(["pwd", "mfa"])).toMatchObject({ status: 200 });
  });
});

describe("the authorization response is refused", () => {
  test.each(["https://evil.example.org", null])("when it names the issuer %j (RFC 9207)", async (iss) => {
    forger.metadata = { authorization_response_iss_parameter_supported: true };
    const { state, nonce } = await leave();
    giveIdToken(forger.idToken({ nonce, ...PERSON }));
    const result = await comeBack({ state, ...(iss !== null && { iss }) });
    expect(result).toMatchObject({ status: 401, body: { error: { code: "INVALID_ASSERTION" } } });
    expect(forger.asked()).not.toContain("/token");
  });

  test("with the provider's reason, which is not returned to the client", async () => {
    const { state } = await leave();
    const result = await comeBack({ state, error: "access_denied", error_description: "<script>" });
    expect(result).toMatchObject({ status: 401, body: { error: { code: "PROVIDER_REFUSED" } } });
    expect(result.text).not.toContain("script");
    expect(await gateways.lastRefusal()).toMatchObject({ because: "The provider returned the error access_denied" });
  });

  test("with a page for browsers", async () => {
    browser = gateways.browser({ accept: "text/html" });
    const { state } = await leave();
    const result = await comeBack({ state, error: "access_denied" });
    expect(result.status).toBe(401);
    expect(result.headers.get("content-type")).toBe("text/html; charset=utf-8");
    expect(result.text).toContain("The provider did not sign you in.");
  });
});

describe("an unavailable provider is 502", () => {
  const AWAY = { status: 502, body: { error: { code: "PROVIDER_UNAVAILABLE" } } };
  const begin = () => browser.ask(at(`/auth/providers/${name()}/sign-in`));

  test.each([
    ["errs", { status: 500, body: "oh" }],
    ["has a page instead", { type: "text/html", body: "<p>Welcome" }],
    ["is cut off", { body: '{"issuer":' }],
    ["goes on and on", { body: JSON.stringify({ filler: "x".repeat(1024 * 1024) }) }],
    ["calls itself otherwise", json({ issuer: "https://evil.example.org" })],
    ["sends us elsewhere", { status: 302, body: "" }],
  ])("when its discovery document %s", async (_what, answer) => {
    forger.say("/.well-known/openid-configuration", () => answer);
    expect(await begin()).toMatchObject(AWAY);
    expect(await gateways.lastRefusal()).toMatchObject({ provider: name(), reason: "PROVIDER_UNAVAILABLE" });
    forger.forget();
    expect((await begin()).status).toBe(303);
  });

  test.each([
    ["http://10.0.0.1/token", "not an https URL"],
    ["https://10.0.0.1/token", "private"],
    ["https://169.254.169.254/latest", "private"],
    ["https://[::ffff:192.168.0.1]/token", "private"],
    ["file:///etc/passwd", "HTTP"],
  ])("when its token endpoint is %s", async (endpoint, because) => {
    forger.metadata = { token_endpoint: endpoint };
    const { state } = await leave();
    expect(await comeBack({ state })).toMatchObject(AWAY);
    expect((await gateways.lastRefusal()).because).toMatch(because);
  });

  test.each([
    ["errs", { status: 500, body: "oh" }],
    ["knows us no more", json({ error: "invalid_client" }, 401)],
    ["says nothing that can be read", { body: "oh" }],
  ])("when its token endpoint %s", async (_what, answer) => {
    const { state } = await leave();
    forger.say("/token", () => answer);
    expect(await comeBack({ state })).toMatchObject(AWAY);
  });

  test("when it does not answer", async () => {
    const gone = await openForger(CLIENT.id);
    await gone.close();
    await gateways.addProvider({ name: "gone", kind: "oidc", issuer: gone.issuer, clientId: CLIENT.id });
    expect(await browser.ask(at("/auth/providers/gone/sign-in"))).toMatchObject(AWAY);
  });

  test("when its secret was encrypted with other keys, which is 500", async () => {
    await gateways.owner.query("update auth.providers set client_secret = 'sealed:bm90IG91cnM='");
    expect((await begin()).status).toBe(500);
  });
});
