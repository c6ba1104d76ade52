import { generateKeyPairSync } from "node:crypto";
import { createClient } from "@supabase/supabase-js";
import { decodeJwt } from "jose";
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
