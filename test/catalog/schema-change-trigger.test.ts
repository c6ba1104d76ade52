import { expect, test } from "vitest";
import { schemaChangeTriggerSql } from "../../catalog/schema-change-trigger.ts";

test("the name of the channel is a literal in the SQL, with any characters", async () => {
  expect(await schemaChangeTriggerSql("it's $& $1")).toContain("pg_notify('it''s $& $1', 'reload schema')");
});

test("a channel whose name would end the body of the function is refused", async () => {
  await expect(schemaChangeTriggerSql("a $$ b")).rejects.toThrow("must not contain $$");
});
