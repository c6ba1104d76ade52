import * as client from "openid-client";
import { beforeAll, describe, expect, test } from "vitest";
import { useFixture } from "../../../fixture.ts";
import { newAddress } from "../../../new-address.ts";
import { openBrowser } from "../browser.ts";
import {
  type Application,
  approved,
  browserOf,
  CALLBACK,
  consentForm,
  decide,
  exchange,
  newApplication,
  newPerson,
  openOAuth,
  type Person,
  requestAuthorization,
  signedIn,
  supabaseFor,
} from "./open-oauth.ts";

let person: Person;
let application: Application;
const fixture = useFixture(() =>
  openOAuth({
    AUTH_AUTOCONFIRM: "false",
    AUTH_ANONYMOUS_SIGN_INS: "true",
    SIGN_UP_LIMIT: "5",
    RATE_LIMIT: "100000",
  }),
);
beforeAll(async () => {
  person = await newPerson(fixture);
  application = await newApplication(fixture);
});

const at = (path: string) => `${fixture.url}${path}`;

/** Sends one request, and does not follow its redirect. */
async function request(address: string | URL, init: RequestInit = {}) {
  const response = await fetch(address, {
    redirect: "manual",
    ...init,
    headers: { "X-Forwarded-For": newAddress(), ...init.headers },
  });
  const text = await response.text();
  const isJson = response.headers.get("content-type")?.startsWith("application/json");
  return { status: response.status, headers: response.headers, text, body: isJson ? JSON.parse(text) : null };
}

const postForm = (path: string, fields: Record<string, string>, headers: Record<string, string> = {}) =>
  request(at(path), { method: "POST", body: new URLSearchParams(fields), headers });
const postJson = (path: string, body: object, headers: Record<string, string> = {}) =>
  request(at(path), {
    method: "POST",
    body: JSON.stringify(body),
    headers: { "Content-Type": "application/json", ...headers },
  });

/** The request for access with other parameters; null leaves one out. */
async function authorize(changes: Record<string, string | null>) {
  const { address } = await requestAuthorization(application);
  for (const [name, value] of Object.entries(changes)) {
    if (value === null) address.searchParams.delete(name);
    else address.searchParams.set(name, value);
  }
  const { status, headers, text } = await request(address);
  return { status, text, location: headers.get("location") };
}

const isRefused = (token: string) => {
  const refreshed = client.refreshTokenGrant(application.config, token);
  return expect(refreshed).rejects.toMatchObject({ error: "invalid_grant" });
};

/** True if the API accepts the access token. The state of accounts and sessions is cached for some seconds. */
async function accepts(token: string): Promise<boolean> {
  const { status } = await request(at("/users?limit=1"), { headers: { Authorization: `Bearer ${token}` } });
  return status === 200;
}

describe("an open redirect", () => {
  test.each([
    "https://evil.example/callback",
    "https://films.example/callback/../evil",
    "https://films.example/callback?x=1",
    "https://films.example.evil.example/callback",
    "https://films.example@evil.example/callback",
    "http://films.example/callback",
    "http://127.0.0.1:8000/callback",
    "javascript:alert(1)",
    "//evil.example",
    "",
  ])("to %j is a page, whatever else is wrong", async (redirect_uri) => {
    for (const changes of [{ redirect_uri }, { redirect_uri, response_type: "token" }]) {
      const { status, location, text } = await authorize(changes);
      expect([status, location]).toEqual([400, null]);
      expect(text).toContain("redirect_uri");
    }
  });

  test("of an unknown application is a page, too", async () => {
    for (const client_id of ["unknown", "", "a\0b", "x".repeat(5000)]) {
      expect(await authorize({ client_id })).toMatchObject({ status: 400, location: null });
    }
  });

  test.each([
    ["javascript:alert(1)"],
    ["data:text/html,x"],
    ["http://films.example/callback"],
    ["https://films.example/*"],
    ["https://films.example/#x"],
    ["https://user:password@films.example/"],
    ["myapp:/callback"],
    ["/callback"],
    ["https://films.example/callback\r\nSet-Cookie: a=b"],
    ["https://films.example/\tcallback"],
    [" https://films.example/callback"],
    ["https://films.example/call\u2028back"],
    ["https://films.example/\u202ekcabllac"],
    ["https://films.example/\u00fcber"],
    ["https://films.\u00ebxample/callback"],
    ["https://films.example/\0"],
    ["https://films.example/\ud800"],
    ["https:\\\\films.example\\callback"],
    ["https://Films.example/callback"],
    ["https://films.example:443/callback"],
    ["https://films.example/a/../callback"],
    ["https://films.example/%2e%2e/callback"],
    ["https://127.1/callback"],
    ["https://a;script-src.example/"],
    ["com.example.app:/call\nback"],
    ["http://127.0.0.1/call\r\nback"],
  ])("cannot be registered: %j", async (uri) => {
    const registered = await postJson("/auth/v1/oauth/clients/register", { redirect_uris: [uri] });
    expect([registered.status, registered.body.error]).toEqual([400, "invalid_redirect_uri"]);
  });
});

const HOSTILE = [
  "\r\nX: y",
  "\0",
  "\u2028",
  "\u2029",
  "\ud800",
  "\udc00",
  "\u202e",
  "\u2066",
  "\u200f",
  "\u061c",
  "\u200b",
  "\u00e9",
];

describe("hostile characters", () => {
  test.each([
    ["an https address", "https://films.example"],
    ["one with a query", "https://films.example/callback?a=b&c=%20d"],
    ["one with a port", "https://films.example:8443/callback"],
    ["one of this machine", "http://127.0.0.1/callback"],
    ["one of this machine by IPv6", "http://[::1]:8000/callback"],
    ["one of an app", "com.example.app:/callback"],
    ["one of a host in Punycode", "https://xn--fls-goa.example/callback"],
  ])("leave %s to be registered", async (_what, uri) => {
    const registered = await postJson("/auth/v1/oauth/clients/register", { redirect_uris: [uri] });
    expect([registered.status, registered.body.redirect_uris]).toEqual([201, [uri]]);
  });

  test("in what is registered are never an error of ours, and none reaches a name or a header", async () => {
    const fields = ["client_name", "client_uri", "logo_uri", "scope", "redirect_uris", "contacts", "grant_types"];
    for (const field of [...fields, "response_types", "token_endpoint_auth_method"]) {
      for (const text of HOSTILE) {
        const value = /_uris?$/.test(field) ? `https://films.example/${text}x` : `a${text}b`;
        const isList = /s$/.test(field);
        const document = { redirect_uris: [CALLBACK], client_name: "Films", [field]: isList ? [value] : value };
        const { status, body } = await postJson("/auth/v1/oauth/clients/register", document);
        // RFC 7591: members that are not known are left out. Addresses and names may have letters of any script.
        const isPermitted = field === "contacts" || (text === "\u00e9" && /^(client|logo)_/.test(field));
        expect([field, text, status], JSON.stringify(body)).toEqual([field, text, isPermitted ? 201 : 400]);
      }
    }
  });

  test("in a request for access are never an error of ours", async () => {
    const parameters = [
      "redirect_uri",
      "state",
      "nonce",
      "scope",
      "resource",
      "client_id",
      "prompt",
      "response_type",
      "code_challenge",
    ];
    const machine = await newApplication(fixture, { redirect_uris: ["http://127.0.0.1/callback"] });
    for (const name of parameters) {
      for (const text of HOSTILE) {
        const { address } = await requestAuthorization(machine, { redirect_uri: "http://127.0.0.1:81/callback" });
        address.searchParams.set(name, `${address.searchParams.get(name) ?? ""}${text}`);
        const { status, headers } = await request(address);
        expect([name, text, status < 500]).toEqual([name, text, true]);
        expect(headers.get("location") ?? "").toMatch(/^[!-~]*$/);
      }
    }
  });

  test("in an address that was registered before end as a page", async () => {
    const uri = "https://films.example/call\u2028back";
    await fixture.owner.query("update auth.oauth_clients set redirect_uris = redirect_uris || $2 where id = $1", [
      application.id,
      [uri],
    ]);
    expect(await authorize({ redirect_uri: uri })).toMatchObject({ status: 400, location: null });
  });
});

describe("a downgrade of PKCE", () => {
  test.each([
    ["no challenge", { code_challenge: null, code_challenge_method: null }],
    ["no method", { code_challenge_method: null }],
    ["plain", { code_challenge_method: "plain" }],
    ["a short challenge", { code_challenge: "short" }],
  ])("by %s is refused", async (_title, changes) => {
    const { location } = await authorize(changes);
    const { searchParams } = new URL(location!);
    expect([searchParams.get("error"), searchParams.get("iss")]).toEqual(["invalid_request", fixture.url]);
  });

  test("at the exchange is refused, and does not use the code up", async () => {
    const authorization = await requestAuthorization(application);
    const landed = await decide(fixture, await browserOf(fixture, person), authorization);
    const fields = {
      ...{ grant_type: "authorization_code", code: landed.searchParams.get("code")!, client_id: application.id },
      redirect_uri: CALLBACK,
    };
    expect((await postForm("/auth/v1/oauth/token", fields)).body.error).toBe("invalid_request");
    for (const change of [
      { code_verifier: "w".repeat(43) },
      { code_verifier: authorization.verifier, redirect_uri: "https://evil.example" },
    ]) {
      const { status, body } = await postForm("/auth/v1/oauth/token", { ...fields, ...change });
      expect([status, body.error]).toEqual([400, "invalid_grant"]);
    }
    expect((await exchange(application, landed, authorization)).access_token).toBeTypeOf("string");
  });
});

describe("a request that is not understood in one way only", () => {
  test.each<[string, Record<string, string | null>, string]>([
    ["another response type", { response_type: "token" }, "unsupported_response_type"],
    ["another response mode", { response_mode: "fragment" }, "invalid_request"],
    ["a request object", { request: "x" }, "request_not_supported"],
    ["an unknown scope", { scope: "everything" }, "invalid_scope"],
    ["another resource", { resource: "https://evil.example" }, "invalid_target"],
    ["no user to be asked", { prompt: "none" }, "interaction_required"],
  ])("with %s is refused to the application", async (_title, changes, error) => {
    const { location } = await authorize(changes);
    const { searchParams } = new URL(location!);
    expect([searchParams.get("error"), searchParams.get("iss")]).toEqual([error, fixture.url]);
    expect(searchParams.get("state")).not.toBeNull();
  });

  test("with a parameter that is sent twice is refused", async () => {
    const { address } = await requestAuthorization(application);
    address.searchParams.append("redirect_uri", "https://evil.example");
    expect((await request(address)).status).toBe(400);
  });
});

describe("a stolen token", () => {
  test("code: used again, it ends what it was exchanged for", async () => {
    const { authorization, landed, tokens } = await approved(fixture, application, person);
    await expect(exchange(application, landed, authorization)).rejects.toMatchObject({ error: "invalid_grant" });
    await isRefused(tokens.refresh_token!);
    expect(await accepts(tokens.access_token)).toBe(false);
  });

  test("refresh token: used again, it ends its successors", async () => {
    const { tokens } = await approved(fixture, application, person);
    const next = await client.refreshTokenGrant(application.config, tokens.refresh_token!);
    await isRefused(tokens.refresh_token!);
    await isRefused(next.refresh_token!);
    expect(await accepts(next.access_token)).toBe(false);
  });

  test("refresh token: is of no use to another application or at another endpoint", async () => {
    const { tokens } = await approved(fixture, application, person);
    const refresh_token = tokens.refresh_token!;
    const other = await newApplication(fixture);
    const attempt = client.refreshTokenGrant(other.config, refresh_token);
    await expect(attempt).rejects.toMatchObject({ error: "invalid_grant" });
    expect((await postJson("/auth/refresh", { refreshToken: refresh_token })).status).toBe(401);
    const { error } = await supabaseFor(fixture).auth.refreshSession({ refresh_token });
    expect(error).not.toBeNull();
    expect((await client.refreshTokenGrant(application.config, refresh_token)).access_token).toBeTypeOf("string");
  });

  test("secret: a wrong, a missing and a superfluous one are refused", async () => {
    const { tokens } = await approved(fixture, application, person);
    const confidential = await newApplication(fixture, { token_endpoint_auth_method: "client_secret_basic" });
    const grant = { grant_type: "refresh_token", refresh_token: tokens.refresh_token! };
    for (const fields of [
      { client_id: confidential.id },
      { client_id: confidential.id, client_secret: "wrong" },
      { client_id: application.id, client_secret: confidential.secret! },
      { client_id: "unknown" },
      {},
    ]) {
      const { status, body } = await postForm("/auth/v1/oauth/token", { ...grant, ...fields } as Record<
        string,
        string
      >);
      expect([status, body.error]).toEqual([401, "invalid_client"]);
    }
  });
});

describe("the page of consent", () => {
  test("cannot be framed, loads nothing, and lets its form go to the application only", async () => {
    const browser = await browserOf(fixture, person);
    const { headers, text } = await browser.go((await requestAuthorization(application)).address);
    const policy = headers.get("content-security-policy")!;
    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).toContain("form-action 'self' https://films.example;");
    expect(headers.get("cache-control")).toBe("no-store");
    expect(text).not.toContain("<script");
  });

  test("isolates names, and shows what was stored to reorder them", async () => {
    const spoofing = await newApplication(fixture);
    await fixture.owner.query("update auth.oauth_clients set name = $2 where id = $1", [spoofing.id, "Fi\u202elms"]);
    const browser = await browserOf(fixture, person);
    const { text } = await browser.go((await requestAuthorization(spoofing)).address);
    expect(text).toContain("<bdi>Fi\ufffdlms</bdi>");
    expect(text).toContain(`<bdi>${person.email}</bdi>`);
    expect(text).not.toMatch(/[\u200b-\u200f\u202a-\u202e\u2066-\u2069]/);
  });

  test("shows the application's texts as texts", async () => {
    const evil = '"><img src=x onerror=alert(1)>';
    const hostile = await newApplication(fixture, { client_name: evil });
    const { text } = await (await browserOf(fixture, person)).go((await requestAuthorization(hostile)).address);
    expect(text).not.toContain("<img");
    expect(text).toContain("&lt;img");
  });

  test("accepts its own form only: no other site, no other session, and no form without the token", async () => {
    const browser = await browserOf(fixture, person);
    const page = await browser.go((await requestAuthorization(application)).address);
    const form = consentForm(page);
    const own = { Origin: new URL(fixture.url).origin };
    const send = (fields: Record<string, string>, headers: Record<string, string>) =>
      browser.ask(at("/auth/oauth/consent"), { form: fields, headers });
    expect((await send(form, { Origin: "https://evil.example" })).status).toBe(403);
    expect((await send(form, { "Sec-Fetch-Site": "cross-site" })).status).toBe(403);
    expect((await send({ ...form, csrf: "guessed" }, own)).status).toBe(403);
    const { csrf: _csrf, ...without } = form;
    expect((await send(without as never, own)).status).toBe(403);
    expect((await send(form, own)).status).toBe(303);
    expect((await send(form, own)).status).toBe(404);
  });

  test("lets nobody decide about what somebody else has opened", async () => {
    const first = await browserOf(fixture, person);
    const page = await first.go((await requestAuthorization(application)).address);
    const id = consentForm(page).authorization_id;
    const other = await newPerson(fixture);
    const second = await browserOf(fixture, other);
    expect((await second.go(at(`/auth/oauth/consent?authorization_id=${id}`))).status).toBe(404);
    const { supabase } = await signedIn(fixture, other);
    expect((await supabase.auth.oauth.approveAuthorization(id)).error).toMatchObject({ status: 404 });
    expect((await second.go(at("/auth/oauth/consent?authorization_id=nonsense"))).status).toBe(404);
  });

  test("leads somebody without a session to the page of sign-in, and back", async () => {
    const shown = await openBrowser({ accept: "text/html" }).go((await requestAuthorization(application)).address);
    expect(shown.url.pathname).toBe("/auth/sign-in");
    expect(shown.url.searchParams.get("redirect_to")).toMatch(/^\/auth\/oauth\/consent\?authorization_id=/);
  });
});

describe("an account that cannot give access", () => {
  test("is one that is anonymous, or whose address is not confirmed", async () => {
    const begin = async () => {
      const { location } = await authorize({});
      return new URL(location!, fixture.url).searchParams.get("authorization_id")!;
    };
    const anonymous = supabaseFor(fixture);
    expect((await anonymous.auth.signInAnonymously()).error).toBeNull();
    expect((await anonymous.auth.oauth.approveAuthorization(await begin())).error).toMatchObject({ status: 403 });

    const unconfirmed = await newPerson(fixture, false);
    const browser = await browserOf(fixture, unconfirmed);
    const page = await browser.go((await requestAuthorization(application)).address);
    expect([page.status, page.text]).toEqual([403, expect.stringContaining("Confirm your e-mail address")]);
  });

  test("is an application that acts for the user, and it manages nothing else of the account", async () => {
    const { tokens } = await approved(fixture, application, person, { scope: "openid read write" });
    const headers = { Authorization: `Bearer ${tokens.access_token}`, apikey: tokens.access_token };
    const { location } = await authorize({});
    const id = new URL(location!, fixture.url).searchParams.get("authorization_id");
    const attempts: [string, string][] = [
      ["GET", `/auth/v1/oauth/authorizations/${id}`],
      ["POST", `/auth/v1/oauth/authorizations/${id}/consent`],
      ["GET", "/auth/v1/user/oauth/grants"],
      ["GET", "/auth/v1/user"],
      ["PUT", "/auth/v1/user"],
      ["POST", "/auth/v1/factors"],
      ["POST", "/auth/v1/logout"],
      ["GET", "/auth/keys"],
      ["POST", "/auth/password"],
      ["POST", "/api/mfa/enable"],
      ["GET", "/admin/v1/catalog"],
    ];
    for (const [method, path] of attempts) {
      const { status } = await request(at(path), { method, headers });
      expect([path, status]).toEqual([path, 403]);
    }
  });
});

describe("a token that is passed on", () => {
  test("is refused where it was not issued for, and an ID token everywhere", async () => {
    const { tokens } = await approved(fixture, application, person, { resource: at("/mcp") });
    expect(await accepts(tokens.access_token)).toBe(false);
    expect(await accepts(tokens.id_token!)).toBe(false);
    const own = await approved(fixture, application, person);
    expect(await accepts(own.tokens.access_token)).toBe(true);
    const refreshed = client.refreshTokenGrant(application.config, own.tokens.refresh_token!, { resource: at("/mcp") });
    await expect(refreshed).rejects.toMatchObject({ error: "invalid_target" });
    const widened = client.refreshTokenGrant(application.config, own.tokens.refresh_token!, { scope: "read write" });
    await expect(widened).rejects.toMatchObject({ error: "invalid_scope" });
  });

  test("of the user is not one of an application", async () => {
    const { token } = await signedIn(fixture, person);
    const { status } = await request(at("/auth/v1/oauth/userinfo"), { headers: { Authorization: `Bearer ${token}` } });
    expect(status).toBe(401);
  });
});

describe("what ends the access of applications", () => {
  test.each<[string, (id: string) => Promise<unknown>]>([
    [
      "a ban",
      (id) =>
        fixture.owner.query("update auth.users set banned_until = now() + interval '1 day' where user_id = $1", [id]),
    ],
    ["a new password", (id) => fixture.owner.query("select auth.set_password($1, '$new', null)", [id])],
    ["the deletion of the account", (id) => fixture.owner.query("select auth.delete_user($1)", [id])],
    [
      "the removal of the application",
      () => supabaseFor(fixture, "service_role").auth.admin.oauth.deleteClient(application.id),
    ],
  ])("%s", async (_title, end) => {
    application = await newApplication(fixture);
    const user = await newPerson(fixture);
    const { tokens } = await approved(fixture, application, user);
    await end(user.userId);
    const refreshed = client.refreshTokenGrant(application.config, tokens.refresh_token!);
    await expect(refreshed).rejects.toMatchObject({ error: expect.stringMatching(/^invalid_(grant|client)$/) });
    expect(await accepts(tokens.access_token)).toBe(false);
  });
});

describe("a flood of registrations", () => {
  test("is limited by address", async () => {
    const headers = { "X-Forwarded-For": "203.0.113.7" };
    const register = () => postJson("/auth/v1/oauth/clients/register", { redirect_uris: [CALLBACK] }, headers);
    const statuses: number[] = [];
    for (let n = 0; n < 7; n++) statuses.push((await register()).status);
    expect(statuses).toEqual([201, 201, 201, 201, 201, 429, 429]);
  });
});
