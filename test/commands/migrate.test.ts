import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { cloneDatabase, type TestDatabase, urlOf } from "../database.ts";
import { runCommand } from "./run-command.ts";

let database: TestDatabase;
beforeAll(async () => {
  database = await cloneDatabase("empty");
});
afterAll(() => database.drop());

describe("a login of requests that does not exist yet", () => {
  const run = (name: string, ...words: string[]) =>
    runCommand(name, words, { url: urlOf("not_made_yet", database.name), ownerUrl: database.ownerUrl });

  test("is not needed to migrate, since the first migration makes it", async () => {
    const { stdout, stderr, code } = await run("migrate");
    expect(stderr).toBe("");
    expect(stdout).toMatch(/^All \d+ migrations are applied\.\n/);
    expect(code).toBe(0);
  });

  test("is told in words by a command that looks as requests do", async () => {
    const { stderr, code } = await run("doctor");
    expect(stderr).toContain('(DATABASE_URL) cannot be used: role "not_made_yet" does not exist');
    expect(code).toBe(1);
  });
});

test("who may not migrate is told which setting is missing", async () => {
  const migrated = await cloneDatabase("content");
  try {
    const { stderr, code } = await runCommand("migrate", [], { ...migrated, ownerUrl: migrated.url });
    expect(stderr).toMatch(/^The login .* Set OWNER_DATABASE_URL to the same database as its owner\.\n$/);
    expect(code).toBe(1);
  } finally {
    await migrated.drop();
  }
});
