import { hash, randomUUID } from "node:crypto";
import { inflateRawSync } from "node:zlib";
import { beforeAll, beforeEach, describe, expect, test } from "vitest";
import { useFixture } from "../../../fixture.ts";
import type { Browser } from "../browser.ts";
import { at, openFederatedGateways, PROGRAM, SITE, whoIs } from "../federated-gateways.ts";
import { json, openForger } from "../forger.ts";
import { newPerson } from "../gateways.ts";
import { CLIENT, openOpenIdProvider } from "../openid-provider.ts";
import { PROVIDER_CERTIFICATE, SERVICE_CERTIFICATE, SERVICE_KEY } from "../saml-keys.ts";
import { ISSUER, openSamlProvider } from "../saml-provider.ts";
import { ANON_KEY } from "./auth-client.ts";

const FORGER_CLIENT = "application";
const VERIFIER = "a verifier of the client, which is long enough".replaceAll(/\W/g, "-");
const CHALLENGE = hash("sha256", VERIFIER, "base64url");
const OFFICE = at("/auth/providers/office/callback");

let browser: Browser;

const gateways = useFixture(() => openFederatedGateways({ AUTH_AUTOCONFIRM: "false" }));
const provider = useFixture(() => openOpenIdProvider([SITE]));
const saml = useFixture(() =>
  openSamlProvider({ callback: OFFICE, signedOut: at("/auth/providers/office/signed-out") }),
);
const forger = useFixture(() => openForger(FORGER_CLIENT));
beforeAll(async () => {
  const { id: clientId, secret } = CLIENT;
  await gateways.addProvider({ name: "example", kind: "oidc", issuer: provider.issuer, clientId, secret });
  await gateways.addProvider({ name: "forge", kind: "oidc", issuer: forger.issuer, clientId: FORGER_CLIENT });
  const certificates = { certificates: [PROVIDER_CERTIFICATE], certificate: SERVICE_CERTIFICATE };
  const settings = { entry_point: `${saml.origin}/sso`, domains: ["office.example"], ...certificates };
  await gateways.addProvider({
    name: "office",
    kind: "saml",
    issuer: ISSUER,
    secret: SERVICE_KEY,
    trustsEmail: true,
    settings,
  });
});
beforeEach(() => {
  browser = gateways.browser();
  forger.forget();
});

const post = (path: string, body: object) =>
  gateways.post(`${gateways.one.url}/auth/v1${path}`, body, { headers: { apikey: ANON_KEY } });

/** Returns the address to which the service sends the browser. */
async function leaveFor(name: string, more: Readonly<Record<string, string>> = {}): Promise<URL> {
  const query = new URLSearchParams({ provider: name, redirect_to: PROGRAM, ...more });
  return new URL((await browser.ask(at(`/auth/v1/authorize?${query}`))).headers.get("location")!);
}

async function comeBack(answer: Readonly<Record<string, string>>): Promise<URL> {
  const shown = await browser.ask(at(`/auth/v1/callback?${new URLSearchParams(answer)}`));
  return new URL(shown.headers.get("location")!);
}

const valuesOf = (url: URL) => Object.fromEntries([...url.searchParams, ...new URLSearchParams(url.hash.slice(1))]);

function expectRefusal(url: URL): void {
  const values = valuesOf(url);
  expect(values).toMatchObject({ error: expect.any(String) });
  for (const name of ["code", "access_token", "refresh_token"]) expect(values).not.toHaveProperty(name);
}

describe("the callback of all providers", () => {
  test("does not send the code of one provider to another, which has led the browser there", async () => {
    const state = (await leaveFor("forge")).searchParams.get("state")!;
    expectRefusal(await comeBack({ code: "of-the-honest-provider", state, iss: provider.issuer }));
    expect(forger.asked()).not.toContain("/token");
  });

  test("uses a state once", async () => {
    const url = await provider.signIn(browser, await leaveFor("example"), `user-${randomUUID()}`);
    expect(valuesOf(url.url)).toHaveProperty("access_token");
    const state = (await leaveFor("forge")).searchParams.get("state")!;
    forger.say("/token", () => json({}, 400));
    for (let attempt = 0; attempt < 2; attempt++) expectRefusal(await comeBack({ code: "a-code", state }));
    expect(forger.asked().filter((path) => path === "/token")).toHaveLength(1);
  });

  test("does not end a sign-in by SAML, nor that of SAML one by OpenID Connect", async () => {
    const relayState = (await leaveForOffice()).state;
    expectRefusal(await comeBack({ code: "a-code", state: relayState }));
    const state = (await leaveFor("example")).searchParams.get("state")!;
    const shown = await sendAssertion(await saml.respond({ audience: audience(), inResponseTo: "_any" }), state);
    expect(shown.status).toBe(400);
    expect(await whoIs(browser)).toBeNull();
  });
});

describe("a code for tokens", () => {
  async function newCode(): Promise<string> {
    const start = await leaveFor("example", { code_challenge: CHALLENGE, code_challenge_method: "s256" });
    const { url } = await provider.signIn(browser, start, `user-${randomUUID()}`);
    return url.searchParams.get("code")!;
  }

  test.each([
    ["without a verifier", ""],
    ["with the challenge as its verifier", CHALLENGE],
    ["with another verifier", "b".repeat(43)],
  ])("is not exchanged %s", async (_what, verifier) => {
    const code = await newCode();
    const body = { auth_code: code, ...(verifier !== "" && { code_verifier: verifier }) };
    expect((await post("/token?grant_type=pkce", body)).status).toBe(400);
    const passed = await post("/token?grant_type=pkce", { auth_code: code, code_verifier: VERIFIER });
    expect(passed.status).toBe(200);
    const again = await post("/token?grant_type=pkce", { auth_code: code, code_verifier: VERIFIER });
    expect(again).toMatchObject({ status: 404, body: { error_code: "flow_state_not_found" } });
  });
});

/** A sign-in through the provider of the domain. */
async function leaveForOffice() {
  const body = { domain: "office.example", redirect_to: PROGRAM, skip_http_redirect: true };
  const address = new URL((await post("/sso", body)).body.url);
  const request = inflateRawSync(Buffer.from(address.searchParams.get("SAMLRequest")!, "base64")).toString();
  return { requestId: / ID="([^"]+)"/.exec(request)![1]!, state: address.searchParams.get("RelayState")! };
}

const audience = () => OFFICE.replace(/callback$/, "metadata");

const sendAssertion = (xml: string, state: string) =>
  browser.ask(OFFICE, { form: { SAMLResponse: Buffer.from(xml).toString("base64"), RelayState: state } });

describe("a sign-in by SAML of a client", () => {
  const respond = (requestId: string) => saml.respond({ audience: audience(), inResponseTo: requestId });

  test("does not end with the assertion of another one, nor with one that was accepted", async () => {
    const [first, second, third] = [await leaveForOffice(), await leaveForOffice(), await leaveForOffice()];
    const xml = await respond(first.requestId);
    const swapped = await sendAssertion(xml, second.state);
    expectRefusal(new URL(swapped.headers.get("location") ?? `${SITE}?error=${swapped.status}`));
    const passed = await sendAssertion(xml, first.state);
    expect(valuesOf(new URL(passed.headers.get("location")!))).toHaveProperty("access_token");
    for (const { state } of [first, third]) {
      const replayed = await sendAssertion(xml, state);
      expectRefusal(new URL(replayed.headers.get("location") ?? `${SITE}?error=${replayed.status}`));
    }
  });

  test("does not end with an assertion that nobody has signed", async () => {
    const { requestId, state } = await leaveForOffice();
    const xml = (await respond(requestId)).replace(/<Signature .*?<\/Signature>/s, "");
    expect(xml).not.toContain("SignatureValue");
    const shown = await sendAssertion(xml, state);
    expectRefusal(new URL(shown.headers.get("location") ?? `${SITE}?error=${shown.status}`));
  });
});

describe("an ID token", () => {
  const submit = async (verified: unknown) => {
    const { email, userId } = await newPerson(gateways);
    await gateways.owner.query("update auth.users set email_confirmed_at = now() where user_id = $1", [userId]);
    const sub = randomUUID();
    const idToken = await forger.idToken({ sub, email, email_verified: verified, name: "Ada" });
    const { status, body } = await post("/token?grant_type=id_token", { provider: "forge", id_token: idToken });
    const { rowCount } = await gateways.owner.query("select from auth.identities where subject = $1", [sub]);
    return { status, hasToken: body.access_token !== undefined, identities: rowCount };
  };

  // Apple sends a text.
  test.each([true, "true"])("whose email_verified is %j signs in to the account of the address", async (verified) => {
    expect(await submit(verified)).toEqual({ status: 200, hasToken: true, identities: 1 });
  });

  test.each([
    { value: false },
    { value: "false" },
    { value: "yes" },
    { value: 1 },
    { value: {} },
    { value: [true] },
    {},
  ])("whose email_verified is that of %j does not", async ({ value }) => {
    expect(await submit(value)).toEqual({ status: 422, hasToken: false, identities: 0 });
  });
});
