import { execFile } from "node:child_process";
import { readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { useClient, useDatabase } from "../database.ts";
import { useFolder } from "../fixture.ts";
import { REPOSITORY } from "../repository.ts";

const BLOCK = /^```(\w+)(?: (\S+))?\n(.*?)^```$/gms;
const TABLE = "templates/blank/db/migrations/current/0010-notes.sql";
/** Roles belong to the whole cluster, so the login has a name that no other test uses. */
const LOGIN = "backend_of_the_page_about_orms";

const folder = useFolder("content-service-orm-");
const database = useDatabase({ template: "platform" });
const owner = useClient(database.ownerUrl);

let blocks: { language: string; file: string | undefined; text: string }[];
beforeAll(async () => {
  const page = await readFile(join(REPOSITORY, "docs/guides/orm.md"), "utf8");
  blocks = [...page.matchAll(BLOCK)].map(([, language, file, text]) => ({ language: language!, file, text: text! }));
  await owner.query(await readFile(join(REPOSITORY, TABLE), "utf8"));
  await owner.query(`
    insert into public.notes (author_id, words, is_public)
      values (1, 'Ada''s secret.', false), (7, 'Of another.', false), (7, 'Public.', true)`);
  await owner.query(textOf("sql").replaceAll(/\bbackend\b/g, LOGIN));
});
afterAll(() => owner.query(`drop role if exists ${LOGIN}`));

const textOf = (language: string) => blocks.find((block) => block.language === language)!.text;

test("a server that acts for a user by the package pg reads what the page shows", async () => {
  await symlink(join(REPOSITORY, "node_modules"), join(folder, "node_modules"));
  await writeFile(join(folder, "as-user.mjs"), blocks.find(({ file }) => file === "as-user.mjs")!.text);
  const env = { ...process.env, DATABASE_URL: database.ownerUrl.replace(/(?<=:\/\/)\w+/, LOGIN) };
  const { stdout } = await promisify(execFile)(process.execPath, ["as-user.mjs"], { cwd: folder, env });
  expect(stdout).toBe(textOf("text"));
});

test("Drizzle and Prisma take a role and claims by the same statement", () => {
  const statements = blocks
    .filter(({ file }) => file?.endsWith(".mjs"))
    .map(({ text }) => /select set_config\([^`"]*/.exec(text)![0].replace(/\$1|\$\{claims\}/, "CLAIMS"));
  expect(statements).toHaveLength(3);
  expect(new Set(statements).size).toBe(1);
});
