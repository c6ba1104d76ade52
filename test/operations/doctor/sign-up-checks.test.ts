import pg from "pg";
import { expect, test } from "vitest";
import { readSignUpFindings } from "../../../operations/doctor/sign-up-checks.ts";
import { makeSupabaseProject } from "../../supabase-template.ts";

test("the hook of sign-ups that was dropped is named", async () => {
  const { database, changes } = await makeSupabaseProject({
    "config.toml":
      '[auth.hook.before_user_created]\nenabled = true\nuri = "pg-functions://postgres/public/check_account"\n',
    "migrations/20240101000000_hook.sql":
      "create function check_account(event jsonb) returns jsonb language sql as $$ select '{}'::jsonb $$;",
  });
  const client = new pg.Client({ connectionString: database.ownerUrl });
  try {
    await client.connect();
    expect(changes).toContain("a trigger on auth.users calls the hook public.check_account");
    expect(await readSignUpFindings(client)).toEqual([]);
    await client.query("drop function check_account");
    expect(await readSignUpFindings(client)).toEqual([
      {
        kind: "danger",
        problem:
          "Nobody can sign up: a trigger of auth.users calls the hook public.check_account, which does not exist.",
        fix: "Create the function, or: drop trigger _060_before_user_created on auth.users;",
      },
    ]);
  } finally {
    await client.end();
    await database.drop();
  }
});
