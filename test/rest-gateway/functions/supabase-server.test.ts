import { generateKeyPairSync } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { createClient } from "@supabase/supabase-js";
import { decodeJwt, decodeProtectedHeader } from "jose";
import jwt from "jsonwebtoken";
import { beforeAll, describe, expect, test } from "vitest";
import { makeProjectKeys } from "../../../accounts/identity/project-keys.ts";
import { makeTokenKeys } from "../../../accounts/identity/token-keys.ts";
import { withClient } from "../../../postgres/client/with-client.ts";
import { useDatabase } from "../../database.ts";
import { useFixture } from "../../fixture.ts";
import { SECRET } from "../../secret.ts";
import { useService } from "../../serve.ts";
import { makeFunctionsProject } from "./project.ts";

const PRIVATE_KEY = String(
  generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey.export({ type: "pkcs8", format: "pem" }),
);

/** A function for each kind of credential that the package accepts. */
const handlerFor = (auth: string) => `
  import { withSupabase } from "npm:@supabase/server@1";
  export default { fetch: withSupabase({ auth: "${auth}" }, async (_request, context) => {
    const [mine, all] = await Promise.all(
      [context.supabase, context.supabaseAdmin].map((client) => client.from("notes").select("text").order("text")),
    );
    return Response.json({ auth: context.authMode, user: context.userClaims?.id ?? null, mine: mine.data, all: all.data });
  }) };`;

const FILES = {
  "../config.toml": ["user", "publishable", "secret"]
    .map((name) => `[functions.${name}]\nverify_jwt = false\n`)
    .join(""),
  "user/index.ts": handlerFor("user"),
  "publishable/index.ts": handlerFor("publishable"),
  "secret/index.ts": handlerFor("secret"),
};

const SCHEMA = `
  create table public.notes (id int generated always as identity primary key, owner text not null, text text);
  alter table public.notes enable row level security;
  create policy own on public.notes using (owner = (select auth.jwt() ->> 'sub'));
  grant select on public.notes to anon, authenticated, service_role;
  insert into public.notes (owner, text) values ('nobody', 'of nobody')`;

describe.each([
  ["a secret", { JWT_SECRET: SECRET }, { jwtSecret: SECRET, jwtPrivateKey: null }],
  ["a private key", { JWT_PRIVATE_KEY: PRIVATE_KEY }, { jwtSecret: null, jwtPrivateKey: PRIVATE_KEY }],
])("functions that use @supabase/server, where tokens are signed by %s", (_name, settings, material) => {
  const projectKeys = makeProjectKeys(makeTokenKeys({ jwtSecretIsBase64: false, ...material }));
  let user: { readonly id: string; readonly token: string };

  const project = useFixture(() => makeFunctionsProject(FILES));
  const database = useDatabase({ sql: SCHEMA });
  const service = useService({
    database,
    settings: () => ({ FUNCTIONS_DIR: project.folder, AUTH_AUTOCONFIRM: "true", ...settings }),
  });
  beforeAll(async () => {
    const supabase = createClient(service.url, projectKeys.publishable, { auth: { persistSession: false } });
    const { data, error } = await supabase.auth.signUp({
      email: "ann@example.org",
      password: "Long enough for 1 test",
    });
    expect(error).toBeNull();
    const token = data.session!.access_token;
    user = { id: decodeJwt(token).sub!, token };
    await withClient(database.ownerUrl, (client) =>
      client.query(`insert into public.notes (owner, text) values ('${user.id}', 'of Ann')`),
    );
  });

  async function call(name: string, headers: Record<string, string>) {
    const response = await fetch(`${service.url}/functions/v1/${name}`, { headers });
    return { status: response.status, body: await response.json() };
  }

  const all = [{ text: "of Ann" }, { text: "of nobody" }];

  test("know the user of a token, and read rows as that user", async () => {
    const { publishable } = projectKeys;
    expect(await call("user", { apikey: publishable, Authorization: `Bearer ${user.token}` })).toEqual({
      status: 200,
      body: { auth: "user", user: user.id, mine: [{ text: "of Ann" }], all },
    });
    expect((await call("user", { apikey: publishable, Authorization: `Bearer ${user.token}x` })).status).toBe(401);
  });

  test.each(["publishable", "secret"] as const)("accept the %s key, and no other", async (name) => {
    const [key, other] = [projectKeys[name], projectKeys[name === "secret" ? "publishable" : "secret"]];
    expect(await call(name, { apikey: key })).toEqual({ status: 200, body: { auth: name, user: null, mine: [], all } });
    expect((await call(name, { apikey: other })).status).toBe(401);
  });
});

/** An issuer with one key, which it can replace. */
async function startIssuer() {
  const makeKey = (kid: string) => {
    const { privateKey, publicKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
    return { kid, privateKey, jwk: { ...publicKey.export({ format: "jwk" }), kid, alg: "ES256", use: "sig" } };
  };
  let current = makeKey("first");
  const server = createServer((_request, response) => response.end(JSON.stringify({ keys: [current.jwk] })));
  await once(server.listen(0, "127.0.0.1"), "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/jwks.json`,
    sign: () =>
      jwt.sign({ role: "authenticated", sub: "ann-of-the-issuer" }, current.privateKey, {
        algorithm: "ES256",
        keyid: current.kid,
      }),
    rotate: () => {
      current = makeKey("second");
    },
    close: () => server.close(),
  };
}

describe("functions that use @supabase/server, where another issuer signs, too", () => {
  const project = useFixture(() => makeFunctionsProject(FILES));
  const issuer = useFixture(startIssuer);
  const service = useService({
    database: useDatabase({ sql: SCHEMA }),
    settings: () => ({
      FUNCTIONS_DIR: project.folder,
      AUTH_AUTOCONFIRM: "true",
      JWT_SECRET: SECRET,
      JWT_JWKS_URL: issuer.url,
    }),
  });
  const { publishable } = makeProjectKeys(
    makeTokenKeys({ jwtSecret: SECRET, jwtSecretIsBase64: false, jwtPrivateKey: null }),
  );
  const statusFor = async (path: string, token: string) => {
    const headers = { apikey: publishable, Authorization: `Bearer ${token}` };
    const response = await fetch(`${service.url}${path}`, { headers });
    await response.arrayBuffer();
    return response.status;
  };

  test("know the users of both, and those of a new key of the issuer", async () => {
    const supabase = createClient(service.url, publishable, { auth: { persistSession: false } });
    const { data } = await supabase.auth.signUp({ email: "bob@example.org", password: "Long enough for 1 test" });
    const own = data.session!.access_token;
    expect(decodeProtectedHeader(own).alg).toBe("HS256");
    // The issuer's keys are fetched at the first token with an unknown key.
    const before = issuer.sign();
    expect(await statusFor("/rest/v1/notes", before)).toBe(200);
    expect(await Promise.all([own, before].map((token) => statusFor("/functions/v1/user", token)))).toEqual([200, 200]);
    issuer.rotate();
    const after = issuer.sign();
    expect(await statusFor("/functions/v1/user", after)).toBe(401);
    expect(await statusFor("/rest/v1/notes", after)).toBe(200);
    expect(await Promise.all([own, before, after].map((token) => statusFor("/functions/v1/user", token)))).toEqual([
      200, 401, 200,
    ]);
  });

  test("have the secret, which no address of the service shows", async () => {
    const response = await fetch(`${service.url}/auth/v1/.well-known/jwks.json`);
    expect(await response.json()).toEqual({ keys: [] });
  });
});
