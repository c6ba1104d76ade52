import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { useClient, useDatabase } from "../database.ts";
import { useFixture } from "../fixture.ts";
import { NO_PROJECT, REPOSITORY } from "../repository.ts";
import { SECRET } from "../secret.ts";
import { openTerminal } from "./terminal.ts";
import { outputPattern } from "./tutorial.ts";

const BLOCK = /^```(?<language>sh|sql|text)\n(?<text>.*?)^```$/gms;

const database = useDatabase();
const owner = useClient(database.ownerUrl);
const environment = {
  PATH: `${join(REPOSITORY, "node_modules/.bin")}:${process.env.PATH}`,
  npm_config_loglevel: "silent",
  npm_config_update_notifier: "false",
  MIGRATIONS_DIR: NO_PROJECT,
  JWT_SECRET: SECRET,
  DATABASE_URL: database.url,
  OWNER_DATABASE_URL: database.ownerUrl,
};
const terminal = useFixture(() => openTerminal({ folder: REPOSITORY, environment }));

/** The exit codes of the page's commands, in their order: a refused request ends with 1. */
const EXIT_CODES = [1, 0, 0, 0];

describe("the page about refused permissions", () => {
  test("shows what its commands print, in their order, and how they end", async () => {
    const page = await readFile(join(REPOSITORY, "docs/permission-denied.md"), "utf8");
    const exitCodes = [...EXIT_CODES];
    let [commands, output, compared] = ["", "", 0];
    for (const { groups } of page.matchAll(BLOCK)) {
      const { language, text } = groups!;
      if (language === "sql") await owner.query(text!);
      else if (language === "sh") {
        commands = text!;
        output = (await terminal.run(commands, exitCodes.shift())).output.replace(/^>.*\n/gm, "").trim();
      } else {
        expect(output).toMatch(outputPattern(text!, commands));
        compared += 1;
      }
    }
    expect(exitCodes).toEqual([]);
    expect(compared).toBe(EXIT_CODES.length);
  });
});
