import { beforeAll, expect, test } from "vitest";
import { checkNamedFunctions } from "../../catalog/config-keeper.ts";
import { withClient } from "../../postgres/client/with-client.ts";
import type { AsOwner } from "../../postgres/database/owner-pool.ts";
import { useDatabase } from "../database.ts";

const asOwner: AsOwner = (work) => withClient(database.ownerUrl, work);
const database = useDatabase({ template: "empty" });
beforeAll(() =>
  asOwner((owner) =>
    owner.query(`
      create schema settings;
      create function settings.check_caller() returns void language sql return null;
      create function public.root() returns json language sql return '{}'::json`),
  ),
);

const missing = (preRequest: string | null, rootSpec: string | null = null) =>
  checkNamedFunctions(asOwner, {
    preRequest,
    rootSpec,
    claimsHook: null,
    schemas: ["public"],
    extraSearchPath: ["extensions"],
  });

test.each([null, "settings.check_caller", "root", "public.root"])("%s exists, or is not set", async (name) => {
  expect(await missing(name, name)).toEqual([]);
});

test.each(["settings.check_calle", "check_caller", "nowhere.root"])("%s is reported as missing", async (name) => {
  const result = expect.stringMatching(new RegExp(`^PGRST_DB_PRE_REQUEST names the function ${name},`));
  expect(await missing(name)).toEqual([result]);
  expect(await missing(null, name)).toEqual([expect.stringContaining("PGRST_DB_ROOT_SPEC")]);
});

test("a hook for claims that CLAIMS_HOOK does not name is reported", async () => {
  const sql = "create function settings.custom_access_token_hook(event jsonb) returns jsonb language sql return event";
  await asOwner((owner) => owner.query(sql));
  const name = "settings.custom_access_token_hook";
  expect(await missing(null)).toEqual([`tokens lack the claims of ${name}: set CLAIMS_HOOK=${name}`]);
});
