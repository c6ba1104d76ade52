import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import pg from "pg";
import { expect, test } from "vitest";
import { toHttpError } from "../../http/http-error.ts";
import { schemaFileOf } from "../../migrate/commit.ts";
import { committedMigrations, releaseHistories } from "../../migrate/committed-migrations.ts";
import { dumpSchema } from "../../migrate/dump-schema.ts";
import { runMigrations, setUsersAccess } from "../../migrate/migrate.ts";
import { DROP_QUEUE, urlOf } from "../database.ts";
import { useContent } from "./content.ts";

const content = useContent();
const db = new URL("../../db/", import.meta.url);
const histories = releaseHistories();

test("migrating a migrated database changes nothing", async () => {
  const before = await dumpSchema(content.owner);
  const url = content.database.ownerUrl;
  await runMigrations({ name: "migrate" }, { url, shadowUrl: url, rootUrl: urlOf("postgres", "postgres") });
  expect(await dumpSchema(content.owner)).toBe(before);
});

test("schema.sql equals the schema that the migrations create", async () => {
  const committed = await Promise.all(histories.map(committedMigrations));
  const last = histories.findLast((_, index) => committed[index]!.length > 0)!;
  const file = await readFile(schemaFileOf(last), "utf8");
  await content.owner.query(DROP_QUEUE);
  await setUsersAccess(content.owner, "owner");
  const dumped = await dumpSchema(content.owner);
  await setUsersAccess(content.owner, "open");
  expect(dumped, "Renew it: npm run migrate -- dump").toBe(file);
});

test("a function is defined once, but for those of accounts that the example application replaces", async () => {
  const migrations = (await Promise.all(histories.map(committedMigrations))).flat();
  const definitions = migrations.flatMap(({ history, name, body }) =>
    [...body.matchAll(/^create (or replace )?function ([\w.]+)/gm)].map(([, again, defined]) => {
      return { history, name, defined: defined!, again: again !== undefined };
    }),
  );
  const byName = Map.groupBy(definitions, ({ defined }) => defined);
  // Migrations after those that made the schema may replace a function.
  const twice = [...byName].filter(([, [, second]]) => second && !second.again).map(([name]) => name);
  expect(twice).toEqual([]);
  const replaced = [...byName].filter(([, all]) => new Set(all.map(({ history }) => history)).size > 1);
  const home =
    "account_faults delete_user find_user insert_user lock_address lock_user profile_of rename_user set_email";
  expect(replaced.map(([name]) => name).sort()).toEqual(home.split(" ").map((name) => `auth.${name}`));
});

test("every error code that SQL raises is in db/README.md, with its status", async () => {
  const readme = await readFile(new URL("README.md", db), "utf8");
  const documented = new Map(
    [...readme.matchAll(/^\| `(\w{5})` \| (\d{3}) \|/gm)].map(([, code, status]) => [code, status]),
  );
  for (const code of await raisedCodes()) expect([...documented.keys()]).toContain(code);
  for (const [code, status] of documented) {
    // Classes of Postgres and of the SQL standard begin with 0-4 or A-H; its own with 5, F, H, P or X.
    expect(code).toMatch(/^[I-OQ-W][A-Z]{4}$/);
    const raised = Object.assign(new pg.DatabaseError("", 0, "error"), { code });
    expect(String(toHttpError(raised).status)).toBe(status);
  }
});

async function raisedCodes(): Promise<Set<string>> {
  const folders = histories.map(({ folder }) => folder);
  const files = await Promise.all(folders.map((folder) => readdir(folder, { recursive: true, withFileTypes: true })));
  const paths = files.flat().filter(({ name }) => name.endsWith(".sql"));
  const texts = await Promise.all(paths.map(({ parentPath, name }) => readFile(join(parentPath, name), "utf8")));
  return new Set(texts.flatMap((text) => [...text.matchAll(/errcode = '([A-Z]{5})'/g)].map(([, code]) => code!)));
}
