import { createPrivateKey, generateKeyPairSync } from "node:crypto";
import { inflateRawSync } from "node:zlib";
import { type Profile, SAML, type SamlConfig } from "@node-saml/node-saml";
import { beforeAll, beforeEach, describe, expect, test } from "vitest";
import { useFixture } from "../../fixture.ts";
import type { Browser } from "./browser.ts";
import { at, openFederatedGateways, SITE, whoIs } from "./federated-gateways.ts";
import { PROVIDER_CERTIFICATE, PROVIDER_KEY, SERVICE_CERTIFICATE, SERVICE_KEY } from "./saml-keys.ts";
import { ISSUER, openSamlProvider, submit } from "./saml-provider.ts";
import { assertionOf, signatureOf, VICTIM, WRAPPINGS } from "./signature-wrapping.ts";

const SIGN_IN = at("/auth/providers/office/sign-in");
const CALLBACK = at("/auth/providers/office/callback");
const SIGNED_OUT = at("/auth/providers/office/signed-out");
const AUDIENCE = at("/auth/providers/office/metadata");
let browser: Browser;
const gateways = useFixture(openFederatedGateways);
const provider = useFixture(() => openSamlProvider({ callback: CALLBACK, signedOut: SIGNED_OUT }));
beforeAll(async () => {
  await gateways.addProvider({
    name: "office",
    kind: "saml",
    issuer: ISSUER,
    secret: SERVICE_KEY,
    trustsEmail: true,
    settings: {
      entry_point: `${provider.origin}/sso`,
      logout_url: `${provider.origin}/slo`,
      certificates: [PROVIDER_CERTIFICATE],
      certificate: SERVICE_CERTIFICATE,
    },
  });
  await gateways.owner.query("select auth.add_account('Admin', $1, 'admin', null, null)", [VICTIM]);
});
beforeEach(() => {
  browser = gateways.browser();
});

/** Leaves with the browser, and returns the request that it was sent with. */
async function leave(from = browser) {
  const address = new URL((await from.ask(SIGN_IN)).headers.get("location")!);
  const request = inflateRawSync(Buffer.from(address.searchParams.get("SAMLRequest")!, "base64")).toString();
  const requestId = / ID="([^"]+)"/.exec(request)![1]!;
  return { address, request, requestId, state: address.searchParams.get("RelayState")! };
}

function send(xml: string, state: string, from = browser) {
  return from.ask(CALLBACK, { form: { SAMLResponse: Buffer.from(xml).toString("base64"), RelayState: state } });
}

/** Returns a response that is right, but for the options of the test. */
const respond = (requestId: string, options: Readonly<Record<string, unknown>> = {}) =>
  provider.respond({ audience: AUDIENCE, inResponseTo: requestId, ...options });

const REFUSED = { status: 401, body: { error: { code: "INVALID_ASSERTION" } } };

describe("a sign-in through a SAML provider", () => {
  test("sends a signed redirect and accepts the posted assertion at any gateway", async () => {
    const { address, request } = await leave();
    expect([...address.searchParams.keys()]).toEqual(["SAMLRequest", "RelayState", "SigAlg", "Signature"]);
    expect(request).toContain(`AssertionConsumerServiceURL="${CALLBACK}"`);
    const cookie = (await browser.ask(SIGN_IN)).headers.get("set-cookie")!;
    expect(cookie).toMatch(/; HttpOnly; Secure; Max-Age=1800; SameSite=None$/);

    const shown = await provider.signIn(browser, SIGN_IN);
    expect(shown).toMatchObject({ status: 200, body: { username: "ada@example.org" } });
    const { userId } = await whoIs(browser);
    const other = gateways.browser({ gateway: "two" });
    await provider.signIn(other, `${SIGN_IN}?redirect_to=/health`);
    expect((await whoIs(other)).userId).toBe(userId);
    const { rows } = await gateways.owner.query("select name from public.users where id = $1", [userId]);
    expect(rows).toEqual([{ name: "Ada" }]);
  });

  test("describes the service in its metadata", async () => {
    const { headers, text } = await browser.ask(AUDIENCE);
    expect(headers.get("content-type")).toBe("application/samlmetadata+xml");
    for (const part of [
      `entityID="${AUDIENCE}"`,
      `Location="${CALLBACK}"`,
      `Location="${SIGNED_OUT}"`,
      'WantAssertionsSigned="true"',
    ]) {
      expect(text).toContain(part);
    }
    expect(text).not.toContain("PRIVATE");
  });

  test("accepts a response that is also signed itself", async () => {
    const { requestId, state } = await leave();
    const xml = await respond(requestId, { signResponse: true });
    expect(await send(xml, state)).toMatchObject({ status: 200 });
  });
});

describe("an assertion is refused, 401,", () => {
  const strangerKey = generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey;
  const anonymous = createPrivateKey(strangerKey.export({ type: "pkcs8", format: "pem" })).export({
    type: "pkcs8",
    format: "pem",
  });
  const options: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
    "that is not signed": { signAssertion: false },
    "that is not signed itself, though the response is": { signAssertion: false, signResponse: true },
    "signed by somebody else": { key: anonymous },
    "signed by a key whose certificate it brings along": { key: SERVICE_KEY, cert: SERVICE_CERTIFICATE },
    "signed by a weak digest": { signatureAlgorithm: "rsa-sha1", digestAlgorithm: "sha1" },
    "of another issuer": { issuer: "urn:example:other" },
    "for another audience": { audience: "https://other.example.org/metadata" },
    "for another recipient": { recipient: "https://other.example.org/callback" },
    "for our other providers": { recipient: at("/auth/providers/other/callback") },
    "that answers another request": { inResponseTo: "_another" },
    "that answers none": { inResponseTo: undefined },
    "that has expired": { lifetimeInSeconds: -60 },
  };

  test.each(Object.keys(options))("%s", async (what) => {
    const { requestId, state } = await leave();
    const response = await send(await respond(requestId, options[what]), state);
    expect(response).toMatchObject(REFUSED);
    expect(response.headers.getSetCookie().join()).not.toContain("SESSION=");
    expect(await gateways.lastRefusal()).toMatchObject({ provider: "office", reason: "INVALID_ASSERTION" });
    expect(await whoIs(browser)).toBeNull();
  });

  const signedTwice = (requestId: string) => respond(requestId, { signResponse: true });
  const responses: Readonly<Record<string, (xml: string) => string>> = {
    "in a response whose own signature is of other bytes": (xml) =>
      xml.replace(/(<samlp:Response [^>]*)IssueInstant="[^"]+"/, '$1IssueInstant="2026-01-01T00:00:00Z"'),
    "in a response whose own signature has another value": (xml) =>
      xml.replace(responseSignatureOf(xml), (signature) =>
        signature.replace(/<SignatureValue>[^<]{8}/, "<SignatureValue>AAAAAAAA"),
      ),
    "in a response for another address": (xml) =>
      xml.replace(/ Destination="[^"]+"/, ' Destination="https://other.example.org/callback"'),
    "in a response for an address below ours": (xml) => xml.replace(/ Destination="([^"]+)"/, ' Destination="$1/x"'),
    "in a response that says no": (xml) => xml.replace("status:Success", "status:Responder"),
    "in a response that says yes behind a no": (xml) =>
      xml.replace(/<samlp:StatusCode ([^>]*)status:Success"/, '<samlp:StatusCode $1status:Requester"/>$&'),
    "in a response that says nothing": (xml) => xml.replace(/<samlp:Status>.*<\/samlp:Status>/s, ""),
  };

  test.each(Object.keys(responses))("%s", async (what) => {
    const { requestId, state } = await leave();
    const made = await (what.includes("own signature") ? signedTwice(requestId) : respond(requestId));
    const xml = responses[what]!(made);
    expect(xml).not.toBe(made);
    expect(assertionOf(xml)).toBe(assertionOf(made));
    expect(await send(xml, state)).toMatchObject(REFUSED);
    expect(await whoIs(browser)).toBeNull();
  });

  test("not in a response without Destination", async () => {
    const { requestId, state } = await leave();
    const xml = (await respond(requestId)).replace(/ Destination="[^"]+"/, "");
    expect(await send(xml, state)).toMatchObject({ status: 200 });
  });

  const doctype = '<!DOCTYPE r [<!ENTITY who "admin@example.org">]>';
  const changes: Readonly<Record<string, (xml: string) => string>> = {
    "whose subject was exchanged": (xml) => xml.replace(">ada@example.org<", `>${VICTIM}<`),
    "without its signature": (xml) => xml.replace(signatureOf(xml), ""),
    "with the digest of a comment (CVE-2025-29775)": (xml) =>
      xml.replace("<DigestValue>", "<DigestValue><!--ZmFrZQ==-->").replace(">ada@", ">admin@"),
    "with two digests (CVE-2025-29774)": (xml) =>
      xml.replace(
        /<SignedInfo>.*<\/SignedInfo>/s,
        (info) => info.replace(/<DigestValue>[^<]+/, "<DigestValue>ZmFrZQ==") + info,
      ),
    "behind a document type": (xml) => doctype + xml,
    "with an entity for the subject": (xml) => doctype + xml.replace(">ada@example.org<", ">&who;<"),
    "with a comment in the subject (CVE-2017-11427 and its kin)": (xml) =>
      xml.replace("ada@example", "ada<!-- -->@example"),
    "with a comment anywhere": (xml) => xml.replace("<samlp:Status>", "<!-- --><samlp:Status>"),
    "with a section of CDATA": (xml) => xml.replace(">ada@example.org<", "><![CDATA[ada@example.org]]><"),
    "with a processing instruction": (xml) => xml.replace("<samlp:Status>", "<?php x?><samlp:Status>"),
    twice: (xml) => xml.replace(assertionOf(xml), (assertion) => assertion + assertion),
    "that is encrypted": (xml) => xml.replace(assertionOf(xml), "<saml:EncryptedAssertion/>"),
    "that is not there": (xml) => xml.replace(assertionOf(xml), ""),
    "in no response": (xml) => assertionOf(xml),
    "that goes on and on": (xml) => xml + " ".repeat(300 * 1024),
    "that is no XML": () => "SAMLResponse",
  };

  test.each(Object.keys(changes))("%s", async (what) => {
    const { requestId, state } = await leave();
    const xml = await respond(requestId);
    expect(changes[what]!(xml)).not.toBe(xml);
    const response = await send(changes[what]!(xml), state);
    expect(response.status).toBe(what === "that goes on and on" ? 413 : 401);
    expect(await whoIs(browser)).toBeNull();
  });

  test.each(Object.keys(WRAPPINGS))("with its signature wrapped, %s", async (shape) => {
    const { requestId, state } = await leave();
    const xml = WRAPPINGS[shape]!(await respond(requestId));
    expect(xml).toContain(`>${VICTIM}<`);
    expect(await send(xml, state)).toMatchObject(REFUSED);
    expect(await whoIs(browser)).toBeNull();
  });

  test("that was accepted before, even for the same request at another gateway", async () => {
    const { requestId, state } = await leave();
    const { rows } = await gateways.owner.query("select * from auth.federation_states where request_id = $1", [
      requestId,
    ]);
    const xml = await respond(requestId);
    expect((await send(xml, state)).status).toBe(200);
    expect(await send(xml, state)).toMatchObject({ status: 400, body: { error: { code: "SIGN_IN_ENDED" } } });

    await gateways.owner.query(
      "insert into auth.federation_states select * from jsonb_populate_record(null::auth.federation_states, $1)",
      [JSON.stringify({ ...rows[0], state_hash: hex(rows[0].state_hash), browser_hash: hex(rows[0].browser_hash) })],
    );
    const again = await fetch(`${gateways.two.url}/auth/providers/office/callback`, {
      method: "POST",
      headers: { Cookie: `FEDERATION=${browser.cookies(SITE).get("FEDERATION")}` },
      body: new URLSearchParams({ SAMLResponse: Buffer.from(xml).toString("base64"), RelayState: state }),
    });
    expect(again.status).toBe(401);
    expect(await gateways.lastRefusal()).toMatchObject({ because: "The assertion was accepted before" });
  });

  test("that the browser did not request, 400", async () => {
    const { requestId, state } = await leave();
    const xml = await respond(requestId);
    expect(await send(xml, state, gateways.browser())).toMatchObject({ status: 400 });
    expect(await send(xml, "", browser)).toMatchObject({ status: 400 });
    expect(await send(xml, state)).toMatchObject({ status: 200 });
  });

  test("that is not sent as a form, 415, or whose provider refuses", async () => {
    const response = await gateways.post(`${gateways.one.url}/auth/providers/office/callback`, { SAMLResponse: "x" });
    expect(response.status).toBe(415);
    const { requestId, state } = await leave();
    const no = (await respond(requestId)).replace(/status:Success/, "status:Responder");
    expect(await send(no.replace(assertionOf(no), ""), state)).toMatchObject(REFUSED);
  });
});

/** Returns the signature of the response itself, which is outside its assertion. */
function responseSignatureOf(xml: string): string {
  return signatureOf(xml.replace(assertionOf(xml), ""));
}

const hex = (bytes: Buffer) => `\\x${bytes.toString("hex")}`;

describe("a SAML logout", () => {
  const slo = (session: Browser) => {
    const Cookie = ["SESSION", "FEDERATION"].map((name) => `${name}=${session.cookies(SITE).get(name)}`).join("; ");
    return { Cookie };
  };

  test("sends a signed request to the provider, which ends its session and redirects back", async () => {
    await provider.signIn(browser, SIGN_IN);
    await fetch(`${provider.origin}/begin-logout`);
    const { csrfToken } = (await gateways.get(`${gateways.one.url}/csrf-token`, { headers: slo(browser) })).body;
    const headers = { ...slo(browser), "X-CSRF-Token": csrfToken };
    const response = await gateways.post(
      `${gateways.one.url}/auth/providers/office/sign-out`,
      { redirectTo: "/health" },
      { headers },
    );
    expect(response.status).toBe(200);
    expect(await whoIs(browser)).toBeNull();
    const address = new URL(response.body.address);
    expect(address.searchParams.get("Signature")).not.toBeNull();
    const answered = await browser.go(address);
    expect(answered.text).toContain("SAMLResponse");
    expect((await submit(browser, answered)).url.href).toBe(at("/health"));
  });

  const isSignedIn = async (session: Browser) => (await whoIs(session)) !== null;

  test("can be requested by the provider, which gets the result", async () => {
    await provider.signIn(browser, SIGN_IN);
    await fetch(`${provider.origin}/begin-logout`);
    const request = await gateways.browser().go(`${provider.origin}/slo`);
    expect(request.text).toContain("SAMLRequest");
    const response = await submit(gateways.browser({ gateway: "two" }), request);
    expect(await isSignedIn(browser)).toBe(false);
    expect([response.url.origin, response.url.pathname, response.status]).toEqual([provider.origin, "/slo", 200]);
    expect(response.url.searchParams.get("SAMLResponse")).not.toBeNull();
  });

  /** The provider's request, by a redirect. */
  function requestOf({
    user = {},
    ...options
  }: Partial<SamlConfig> & { user?: Partial<Profile> } = {}): Promise<string> {
    const saml = new SAML({
      issuer: ISSUER,
      callbackUrl: SIGNED_OUT,
      entryPoint: SIGNED_OUT,
      logoutUrl: SIGNED_OUT,
      idpCert: PROVIDER_CERTIFICATE,
      privateKey: PROVIDER_KEY,
      signatureAlgorithm: "sha256",
      ...options,
    });
    const named = { issuer: ISSUER, nameID: "ada@example.org", nameIDFormat: "f", sessionIndex: "session-1", ...user };
    return saml.getLogoutUrlAsync(named, "", {});
  }

  test("is executed once, for the named session only", async () => {
    await provider.signIn(browser, SIGN_IN);
    for (const user of [{ nameID: VICTIM }, { sessionIndex: "session-2" }]) {
      expect((await browser.ask(await requestOf({ user }))).status).toBe(303);
      expect(await isSignedIn(browser)).toBe(true);
    }
    const request = await requestOf();
    expect((await gateways.browser().ask(request)).status).toBe(303);
    expect(await isSignedIn(browser)).toBe(false);
    await provider.signIn(browser, SIGN_IN);
    expect(await gateways.browser().ask(request)).toMatchObject(REFUSED);
    expect(await isSignedIn(browser)).toBe(true);
  });

  test("is refused unsigned, with another key, issuer or destination, or out of time", async () => {
    await provider.signIn(browser, SIGN_IN);
    const anonymous = generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey;
    const good = new URL(await requestOf());
    const unsigned = new URL(good);
    for (const name of ["Signature", "SigAlg"]) unsigned.searchParams.delete(name);
    const doubled = `${good}&${new URL(await requestOf({ user: { nameID: VICTIM } })).searchParams.toString()}`;
    const shifted = new URL(good);
    shifted.searchParams.set("SAMLRequest", new URL(await requestOf()).searchParams.get("SAMLRequest")!);
    const elsewhere = new URL(await requestOf({ logoutUrl: "https://other.example.org/signed-out" }));
    const requests: readonly (readonly [string | URL, number])[] = [
      [unsigned, 401],
      [await requestOf({ signatureAlgorithm: "sha1" }), 401],
      [await requestOf({ privateKey: anonymous.export({ type: "pkcs8", format: "pem" }) }), 401],
      [await requestOf({ issuer: "urn:example:other" }), 401],
      [`${SIGNED_OUT}${elsewhere.search}`, 401],
      [shifted, 401],
      [doubled, 400],
      [`${SIGNED_OUT}?SAMLRequest=nonsense`, 401],
      [SIGNED_OUT, 400],
    ];
    for (const [request, status] of requests) {
      expect((await browser.ask(request)).status, String(request)).toBe(status);
      expect(await isSignedIn(browser)).toBe(true);
    }
    expect((await browser.ask(good)).status).toBe(303);
    expect(await isSignedIn(browser)).toBe(false);
  });
});
