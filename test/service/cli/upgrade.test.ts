import { expect, test } from "vitest";
import { runMigrations } from "../../../migrate/migrate.ts";
import { cloneDatabase } from "../../database.ts";
import { ownHistories } from "../../migrate/own-histories.ts";
import { runCommand } from "./run-command.ts";

test("npm run upgrade brings a database that lacks migrations to this version, once", async () => {
  await using own = await ownHistories(["platform", "content"], { isMigrated: true });
  await own.add("project", "tags", "create table public.tags (id int primary key, name text, stars int);");
  await runMigrations({ name: "migrate" }, own.settings);
  await own.rows("insert into public.tags values (1, 'green', 1)");
  const added = await own.add("project", "more tags", "insert into public.tags values (2, 'blue', 2);");
  expect(added).toBe("000002-more-tags.sql");
  const database = { url: own.settings.url, ownerUrl: own.settings.url };
  const settings = { MIGRATIONS_DIR: own.history("project").folder, BASE_SCHEMA: "content" };
  const status = await runCommand("migrate", ["status"], database, settings);
  expect(status.stdout).toBe("1 migration is pending:\n  project/000002-more-tags.sql\n");
  const { stdout, stderr, code } = await runCommand("upgrade", [], database, settings);
  expect(stderr).toBe("");
  expect(stdout).toMatch(/^All \d+ migrations are applied\.\n$/);
  expect(code).toBe(0);
  expect(await own.rows("select name from public.tags order by id")).toEqual([{ name: "green" }, { name: "blue" }]);
  const again = await runCommand("upgrade", [], database, settings);
  expect(again).toMatchObject({ code: 0, stdout: expect.stringContaining("Nothing to upgrade") });
});

test("npm run upgrade leaves a database without our schemas as it is", async () => {
  const foreign = await cloneDatabase("empty");
  try {
    const { stdout, code } = await runCommand("upgrade", [], { url: foreign.ownerUrl, ownerUrl: foreign.ownerUrl });
    expect([stdout, code]).toEqual(["The database has this version already. Nothing to upgrade.\n", 0]);
    const refused = await runCommand("upgrade", ["--programs", "/tmp"], {
      url: foreign.ownerUrl,
      ownerUrl: foreign.ownerUrl,
    });
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining("for the embedded database") });
  } finally {
    await foreign.drop();
  }
});
