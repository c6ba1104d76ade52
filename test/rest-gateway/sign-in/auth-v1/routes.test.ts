import { generateKeyPairSync } from "node:crypto";
import jwt from "jsonwebtoken";
import { expect, test } from "vitest";
import { useDatabase } from "../../../database.ts";
import { SECRET } from "../../../secret.ts";
import { serve, useService } from "../../../serve.ts";
import { makeClient, newAddress, PASSWORD } from "./auth-client.ts";

const anonKey = jwt.sign({ role: "anon" }, SECRET);

const database = useDatabase();
const service = useService({ database });

const request = (path: string, init: RequestInit = {}) => fetch(`${service.url}/auth/v1${path}`, init);
const withKey = { headers: { apikey: anonKey } };

test("health and settings are what clients of GoTrue read", async () => {
  const health = await request("/health", withKey);
  expect(health.status).toBe(200);
  expect((await request("/health")).status).toBe(200);
  expect(await health.json()).toMatchObject({ name: "GoTrue", version: expect.stringMatching(/^v2\.\d+/) });

  const settings = await (await request("/settings", withKey)).json();
  expect(settings).toMatchObject({
    external: { anonymous_users: false, email: true, phone: false, github: false },
    disable_signup: false,
    mailer_autoconfirm: false,
    saml_enabled: false,
  });
});

test("a request without an API key is refused as at /rest/v1, except at addresses that browsers open", async () => {
  const refused = await request("/settings");
  expect(refused.status).toBe(401);
  expect(await refused.json()).toEqual({
    code: 401,
    error_code: "no_authorization",
    msg: "No API key found in request",
  });
  const forged = await request("/settings", { headers: { apikey: `${anonKey}x` } });
  expect(forged.status).toBe(401);

  expect((await request(`/settings?apikey=${anonKey}`)).status).toBe(200);
  const keySet = await request("/.well-known/jwks.json");
  expect(await keySet.json()).toEqual({ keys: [] });
  expect(keySet.headers.get("cache-control")).toContain("public");
});

/** JSON, because JavaScript would not send some of it. */
const UNSTORABLE = [
  [String.raw`"a\u0000b"`, "must not contain a NUL character"],
  [String.raw`"a\ud800b"`, "must not contain a lone surrogate"],
] as const;
const TEXTS: readonly (readonly [path: string, fields: readonly string[]])[] = [
  ["/signup", ["email", "phone", "password"]],
  ["/token?grant_type=password", ["email", "phone", "password"]],
  ["/token?grant_type=refresh_token", ["refresh_token"]],
  ["/token?grant_type=pkce", ["auth_code", "code_verifier"]],
  ["/token?grant_type=id_token", ["id_token", "provider"]],
  ["/otp", ["email", "phone"]],
  ["/magiclink", ["email"]],
  ["/recover", ["email"]],
  ["/resend", ["type", "email", "phone"]],
  ["/verify", ["type"]],
];

test.each(TEXTS)("a text that Postgres cannot store is refused at %s, with the reason", async (path, fields) => {
  for (const field of fields) {
    for (const [value, reason] of UNSTORABLE) {
      const response = await request(path, { method: "POST", body: `{"${field}": ${value}}`, ...withKey });
      expect(response.status).toBe(400);
      expect(await response.json()).toMatchObject({ msg: `${field} ${reason}` });
    }
  }
});

test("metadata that Postgres cannot store is refused, with the reason", async () => {
  const signUp = async (data: string) => {
    const body = `{"email": "${newAddress()}", "password": "${PASSWORD}", "data": ${data}}`;
    const response = await request("/signup", { method: "POST", body, ...withKey });
    return { status: response.status, body: await response.json() };
  };
  for (const [value, reason] of UNSTORABLE) {
    const refused = { status: 400, body: { msg: `data ${reason}` } };
    expect(await signUp(`{"name": ${value}}`)).toMatchObject(refused);
    expect(await signUp(`{"list": [{${value}: 1}]}`)).toMatchObject(refused);
  }
  expect(await signUp("[]")).toMatchObject({ status: 400, body: { msg: "data must be an object" } });
  const depth = 50_000;
  const deep = `{"a": ${"[".repeat(depth)}${"]".repeat(depth)}}`;
  expect(await signUp(deep)).toMatchObject({ status: 400, body: { msg: "data is nested too deeply" } });
  // Backslashes of a text are no escapes.
  expect((await signUp(String.raw`{"name": "\\u0000 \\ud800"}`)).status).toBe(200);
});

test("an error has the format of the version that the client asks for", async () => {
  const old = await request("/nowhere", withKey);
  expect(old.status).toBe(404);
  expect(await old.json()).toMatchObject({ code: 404, error_code: "not_found", msg: expect.any(String) });
  expect(old.headers.get("x-supabase-api-version")).toBeNull();

  const headers = { ...withKey.headers, "X-Supabase-Api-Version": "2024-01-01" };
  const named = await request("/nowhere", { headers });
  expect(named.headers.get("x-supabase-api-version")).toBe("2024-01-01");
  expect(await named.json()).toEqual({ code: "not_found", message: expect.any(String) });

  const wrongMethod = await request("/health", { ...withKey, method: "DELETE" });
  expect(wrongMethod.status).toBe(405);
  expect(wrongMethod.headers.get("allow")).toBe("GET, OPTIONS");
});

test("browsers of other origins may send the headers of supabase-js", async () => {
  const preflight = await request("/token", {
    method: "OPTIONS",
    headers: {
      Origin: "https://app.example",
      "Access-Control-Request-Method": "POST",
      "Access-Control-Request-Headers": "apikey,authorization,content-type,x-client-info,x-supabase-api-version",
    },
  });
  expect(preflight.status).toBe(200);
  expect(preflight.headers.get("access-control-allow-headers")).toMatch(
    /apikey.*x-client-info, x-supabase-api-version/,
  );
  const response = await request("/health", { headers: { ...withKey.headers, Origin: "https://app.example" } });
  expect(response.headers.get("access-control-expose-headers")).toMatch(/X-Supabase-Api-Version/i);
});

test("the signing keys of a Supabase project can be used as they are", async () => {
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const jwk = { ...privateKey.export({ format: "jwk" }), kid: "project", key_ops: ["sign", "verify"], alg: "RS256" };
  const project = await serve(database, { JWT_SECRET: JSON.stringify([jwk]), AUTH_AUTOCONFIRM: "true" });
  try {
    const options = { algorithm: "RS256", keyid: "project" } as const;
    const apikey = jwt.sign({ iss: "supabase-demo", role: "anon" }, privateKey, options);
    const { auth } = makeClient(project.url, {}, apikey);
    const email = newAddress();
    const { data: signedUp } = await auth.signUp({ email, password: PASSWORD });
    const token = signedUp.session!.access_token;
    const { data: claims } = await auth.getClaims(token);
    expect(claims).toMatchObject({ header: { alg: "RS256", kid: "project" }, claims: { email } });
    // With the public key, the client verifies tokens itself.
    const keySet = await fetch(`${project.url}/auth/v1/.well-known/jwks.json`);
    const { kty, n, e, kid, alg } = jwk;
    expect(await keySet.json()).toEqual({ keys: [{ kty, n, e, kid, alg, use: "sig" }] });
    const asAdministrator = jwt.sign({ iss: "supabase-demo", role: "service_role" }, privateKey, options);
    const administrator = makeClient(project.url, {}, asAdministrator);
    expect((await administrator.auth.admin.getUserById(signedUp.user!.id)).data.user).toMatchObject({ email });
  } finally {
    await project.stop();
  }
});
