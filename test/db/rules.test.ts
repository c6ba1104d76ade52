import { readFile } from "node:fs/promises";
import { describe, expect, test } from "vitest";
import { DROP_QUEUE, useClient, useDatabase } from "../database.ts";
import { RULES, violationsOf } from "./rules.ts";

const database = useDatabase({ sql: DROP_QUEUE });
const owner = useClient(database.ownerUrl);

describe.each(RULES)("$rule", (rule) => {
  test("holds for all migrations", async () => {
    expect(await violationsOf(rule, owner)).toEqual([]);
  });

  test("is detected when it is violated", async () => {
    await owner.query("begin");
    await owner.query(rule.breach);
    expect(await violationsOf(rule, owner)).toContain(rule.reported);
    await owner.query("rollback");
  });
});

test("the example of db/README.md follows every rule", async () => {
  const readme = await readFile(new URL("../../db/README.md", import.meta.url), "utf8");
  const example = /```sql\n(.*?)```/s.exec(readme)?.[1];
  await owner.query("begin");
  await owner.query(example!);
  for (const rule of RULES) expect(await violationsOf(rule, owner), rule.rule).toEqual([]);
  await owner.query("rollback");
});
