import { execFileSync } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { REPOSITORY } from "../repository.ts";

// `RECORD=commands npx vitest run test/docs/commands.test.ts` writes the table.

const PAGE = join(REPOSITORY, "docs/commands.md");
const TABLE = /(?<=^\| command \| what it does \|\n\| --- \| --- \|\n)(?:\| `.*\n)+/m;
const COMMAND = /^ {2}(\S+) +(\S.*)$/gm;

test("the page of commands has each command, with what the program says about it", async () => {
  const help = execFileSync(process.execPath, [join(REPOSITORY, "bin/content-service.js"), "--help"], {
    encoding: "utf8",
  });
  const commands = [...help.matchAll(COMMAND)];
  expect(commands.length).toBeGreaterThan(20);
  const table = commands.map(([, name, about]) => `| \`${name}\` | ${about} |\n`).join("");
  const page = await readFile(PAGE, "utf8");
  expect(page).toMatch(TABLE);
  if (process.env.RECORD === "commands") await writeFile(PAGE, page.replace(TABLE, table));
  expect((await readFile(PAGE, "utf8")).match(TABLE)![0]).toBe(table);
});
