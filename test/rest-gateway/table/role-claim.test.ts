import { afterAll, describe, expect, test } from "vitest";
import { useClient, useDatabase } from "../../database.ts";
import { token } from "../../realtime/service.ts";
import { serve } from "../../serve.ts";

const SCHEMA = `
  create role role_claim_editor;
  create role role_claim_unreachable;
  grant role_claim_editor to authenticator;
  grant usage on schema public to role_claim_editor;
  create function public.who() returns json stable language sql
    as $$ select json_build_object('user', current_user, 'claim', current_setting('request.jwt.claims')::json->>'role') $$;
  grant execute on function public.who to public;
`;

const database = useDatabase({ sql: SCHEMA });
const owner = useClient(database.ownerUrl);
afterAll(async () => {
  await owner.query("drop owned by role_claim_editor; drop role role_claim_editor, role_claim_unreachable");
});

const EDITOR = "role_claim_editor";
const UNREACHABLE = "role_claim_unreachable";

/** The role that runs the statement and the one that policies read, or the status of a refusal. */
const CASES: readonly [path: string, ...[claims: object, expected: string | number][]][] = [
  [
    ".app_metadata.role",
    [{ app_metadata: { role: EDITOR } }, EDITOR],
    [{ role: "service_role", app_metadata: { role: EDITOR } }, EDITOR],
    [{ role: "service_role" }, "anon"],
    [{ role: "service_role", app_metadata: null }, "anon"],
    [{ role: "service_role", app_metadata: [EDITOR] }, "anon"],
    [{ app_metadata: { role: null } }, 401],
    [{ app_metadata: { role: 7 } }, 401],
    [{ app_metadata: { role: [EDITOR] } }, 401],
    [{ app_metadata: { role: { name: EDITOR } } }, 401],
    [{ app_metadata: { role: "" } }, 401],
    [{ app_metadata: { role: UNREACHABLE } }, 401],
    [{ app_metadata: { role: "no such role" } }, 401],
    [{ app_metadata: { role: "postgres" } }, 401],
    [{ app_metadata: { role: "none" } }, 401],
    [{ app_metadata: { role: 'anon"; set role service_role; --' } }, 401],
  ],
  [
    '.roles[?(@ ^== "role_claim_")]',
    [{ roles: ["service_role", EDITOR, UNREACHABLE] }, EDITOR],
    [{ roles: [UNREACHABLE, EDITOR] }, 401],
    [{ role: "service_role", roles: ["service_role"] }, "anon"],
    [{ roles: EDITOR }, "anon"],
    [{ roles: [[EDITOR], { 0: EDITOR }, 7, null] }, "anon"],
  ],
  [".roles[0][4:]", [{ roles: [`app_${EDITOR}`] }, EDITOR], [{ roles: ["app_"] }, 401], [{ roles: [7] }, "anon"]],
  ['$.roles[?search(@, "^role_claim_e")]', [{ roles: ["service_role", EDITOR] }, EDITOR], [{ roles: [] }, "anon"]],
];

describe.each(CASES)("PGRST_JWT_ROLE_CLAIM_KEY=%s", (path, ...cases) => {
  test("finds the role that runs statements, which policies read as the claim role", async () => {
    const service = await serve(database, { PGRST_JWT_ROLE_CLAIM_KEY: path, REST_REQUIRE_APIKEY: "false" });
    try {
      for (const [claims, expected] of cases) {
        const headers = { Authorization: `Bearer ${token(claims)}` };
        const response = await fetch(`${service.url}/rest/v1/rpc/who`, { headers });
        const body = (await response.json()) as object;
        if (typeof expected === "number") expect([claims, response.status]).toEqual([claims, expected]);
        else expect([claims, body]).toEqual([claims, { user: expected, claim: expected }]);
      }
    } finally {
      await service.stop();
    }
  });
});
