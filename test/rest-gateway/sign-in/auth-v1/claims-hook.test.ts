import { beforeAll, expect, test } from "vitest";
import { useFixture } from "../../../fixture.ts";
import { newPerson, openGateways, PASSWORD, type Person } from "../gateways.ts";
import { ANON_KEY, newAddress } from "./auth-client.ts";

const SECRET_DETAIL = "the secret of the function";
let person: Person;

const define = (body: string) =>
  gateways.owner.query(
    `create or replace function public.add_claims(event jsonb) returns jsonb as $$ begin ${body} end; $$ language plpgsql;
    grant execute on function public.add_claims to supabase_auth_admin`,
  );

const gateways = useFixture(() =>
  openGateways({ settings: { CLAIMS_HOOK: "public.add_claims", AUTH_AUTOCONFIRM: "true" } }),
);
beforeAll(async () => {
  await gateways.owner.query("grant usage on schema public to supabase_auth_admin");
  await define("return event;");
  person = await newPerson(gateways);
  await gateways.owner.query("update auth.users set email_confirmed_at = now() where user_id = $1", [person.userId]);
});

const post = (path: string, body: object) =>
  gateways.post(`${gateways.one.url}${path}`, body, { headers: { apikey: ANON_KEY } });

/** Returns the response of each route that issues tokens. */
const signIn = () =>
  Promise.all([
    post("/auth/login", { username: person.email, password: PASSWORD }),
    post("/auth/refresh", { refreshToken: person.pair.refreshToken }),
    post("/auth/v1/token?grant_type=password", { email: person.email, password: PASSWORD }),
    post("/auth/v1/signup", { email: newAddress(), password: PASSWORD }),
  ]);

test.each([
  [
    "raises an exception",
    `raise exception '${SECRET_DETAIL}' using detail = '${SECRET_DETAIL}', hint = '${SECRET_DETAIL}';`,
  ],
  ["leaves out the role", "return event #- '{claims,role}';"],
  ["returns a role that is no text", "return jsonb_set(event, '{claims,role}', '{\"name\": \"service_role\"}');"],
  ["returns more than a token holds", "return jsonb_set(event, '{claims,more}', to_jsonb(repeat('x', 100000)));"],
  ["signs in another user", "return jsonb_set(event, '{claims,sub}', '\"4711\"');"],
])("a function for claims that %s ends each sign-in, without details in the response", async (_what, body) => {
  await define(body);
  for (const { status, text } of await signIn()) {
    expect([status, text]).toEqual([500, expect.not.stringContaining('oken":')]);
    expect(text).not.toContain(SECRET_DETAIL);
    expect(text).not.toContain("add_claims");
    expect(text).not.toMatch(/x{100}/);
  }
  await define("return event;");
  expect((await post("/auth/login", { username: person.email, password: PASSWORD })).status).toBe(200);
});
