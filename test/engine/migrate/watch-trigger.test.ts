import { expect, test } from "vitest";
import { watchTriggerSql } from "../../../engine/migrate/watch-trigger.ts";

test("the name of the channel is a literal in the SQL, whatever characters it has", async () => {
  expect(await watchTriggerSql("it's $& $1")).toContain("pg_notify('it''s $& $1', 'reload schema')");
});

test("a channel whose name would end the body of the function is refused", async () => {
  await expect(watchTriggerSql("a $$ b")).rejects.toThrow("must not contain $$");
});
