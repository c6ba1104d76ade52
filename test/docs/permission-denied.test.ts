import { execFile } from "node:child_process";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import type pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { cloneDatabase, type TestDatabase } from "../database.ts";
import { connect } from "../db/callers.ts";
import { NO_PROJECT, REPOSITORY } from "../repository.ts";
import { SECRET } from "../secret.ts";
import { outputPattern } from "./tutorial.ts";

const BLOCK = /^```(?<language>sh|sql|text)\n(?<text>.*?)^```$/gms;

let database: TestDatabase;
let owner: pg.Client;
beforeAll(async () => {
  database = await cloneDatabase("content");
  owner = await connect(database.ownerUrl);
});
afterAll(async () => {
  await owner?.end();
  await database?.drop();
});

/** What the commands print, also those that fail. */
async function run(commands: string): Promise<string> {
  const env = {
    PATH: `${join(REPOSITORY, "node_modules/.bin")}:${process.env.PATH}`,
    npm_config_loglevel: "silent",
    npm_config_update_notifier: "false",
    MIGRATIONS_DIR: NO_PROJECT,
    JWT_SECRET: SECRET,
    DATABASE_URL: database.url,
    OWNER_DATABASE_URL: database.ownerUrl,
  };
  const { stdout } = await promisify(execFile)("bash", ["-c", `{ ${commands} } 2>&1 || true`], {
    cwd: REPOSITORY,
    env,
  });
  return stdout.replace(/^>.*\n/gm, "").trim();
}

describe("the page about refused permissions", () => {
  test("shows what its commands print, in their order", async () => {
    const page = await readFile(join(REPOSITORY, "docs/permission-denied.md"), "utf8");
    let output = "";
    let compared = 0;
    for (const { groups } of page.matchAll(BLOCK)) {
      const { language, text } = groups!;
      if (language === "sql") await owner.query(text!);
      else if (language === "sh") output = await run(text!);
      else {
        expect(output).toMatch(outputPattern(text!));
        compared += 1;
      }
    }
    expect(compared).toBeGreaterThan(3);
  });
});
