import pg from "pg";
import { expect, test } from "vitest";
import { hasAccounts } from "../../../engine/accounts/accounts.ts";
import { runMigrations } from "../../../engine/migrate/migrate.ts";
import { cloneDatabase } from "../../database.ts";
import { ownHistories } from "../migrate/own-histories.ts";
import { lender } from "./open-accounts.ts";

test.each([
  ["the owner of accounts", "content", "ownerUrl", true],
  ["a login that only serves requests", "content", "url", false],
  ["the owner of a database without accounts", "empty", "ownerUrl", false],
] as const)("%s: %s, %s -> %s", async (_who, template, url, has) => {
  const database = await cloneDatabase(template);
  const pool = new pg.Pool({ connectionString: database[url], max: 1 });
  expect(await hasAccounts(lender(pool))).toBe(has);
  await pool.end();
  await database.drop();
});

test("the owner of the platform without an application's users: false", async () => {
  await using own = await ownHistories(["platform"]);
  await runMigrations({ name: "migrate" }, own.settings);
  const pool = new pg.Pool({ connectionString: own.settings.url, max: 1 });
  expect(await hasAccounts(lender(pool))).toBe(false);
  await pool.end();
});
