import { expect, test } from "vitest";
import { importHooks, toHookFunction } from "../../../../service/cli/supabase/sign-in-hooks.ts";

const hook = (name: string) => ({ isEnabled: true, address: `pg-functions://postgres/public/${name}` });

test("hooks that no migration creates are not called, and are named", () => {
  const hooks = { custom_access_token: hook("add_claims"), before_user_created: hook("check_account") };
  const other = ["create function other.check_account(event jsonb) returns jsonb", "select add_claims('{}')"];
  expect(importHooks(hooks, other)).toEqual({
    settings: {},
    migration: null,
    changes: [
      "config.toml: the hook public.add_claims is not called, because no migration creates it: create the function, and set CLAIMS_HOOK=public.add_claims",
      "config.toml: the hook public.check_account is not called, because no migration creates it: create the function in a migration of supabase/, and import it again",
    ],
  });
});

test.each([
  "create function add_claims(",
  'CREATE OR REPLACE FUNCTION "public"."add_claims" (',
  "create function PUBLIC.Add_Claims(",
])("%s creates the function of a hook", (sql) => {
  const { settings } = importHooks({ custom_access_token: hook("add_claims") }, [sql]);
  expect(settings).toEqual({ CLAIMS_HOOK: "public.add_claims" });
});

test("addresses of other kinds have no function", () => {
  expect(toHookFunction("https://example.org/hook")).toBeNull();
});
