import pg from "pg";
import { expect, test } from "vitest";
import { hasAccounts } from "../../accounts/accounts.ts";
import { cloneDatabase } from "../database.ts";
import { lender } from "./open-accounts.ts";

test.each([
  ["the owner of accounts", "content", "ownerUrl", true],
  ["a login that only serves requests", "content", "url", false],
  ["the owner of the platform without a table of users", "platform", "ownerUrl", true],
  ["the owner of a database without accounts", "empty", "ownerUrl", false],
] as const)("%s: %s, %s -> %s", async (_who, template, url, has) => {
  const database = await cloneDatabase(template);
  const pool = new pg.Pool({ connectionString: database[url], max: 1 });
  expect(await hasAccounts(lender(pool))).toBe(has);
  await pool.end();
  await database.drop();
});
