import { mkdir, readdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { withClient } from "../../../postgres/client/with-client.ts";
import { cloneDatabase, urlOf, useDatabase } from "../../database.ts";
import { useFolder } from "../../fixture.ts";
import { SECRET } from "../../secret.ts";
import { makeProjectFolder, type ProjectFolder } from "./project.ts";

const NOTES = `
  drop table if exists public.notes;
  create table public.notes (author_id bigint not null default auth.uid(), words text);
  alter table public.notes enable row level security;
  create policy own on public.notes to authenticated using (author_id = (select auth.uid()));
  grant select, insert on public.notes to authenticated;`;

const POLICIES = `--! as anon
select * from notes; --! expect denied
--! as user 7
select * from notes; --! expect 1 row
insert into notes (words) values ('new'); --! expect 1 row
`;

const WRONG = `--! as user 8
select * from notes; --! expect 1 row
`;

async function writeFiles({ folder }: ProjectFolder, files: Readonly<Record<string, string>>): Promise<void> {
  for (const [path, text] of Object.entries(files)) {
    await mkdir(join(folder, path, ".."), { recursive: true });
    await writeFile(join(folder, path), text);
  }
}

const USER_7 = "insert into users (id, name, email) values (7, 'Ada', 'ada@example.org');";

const PROJECT = {
  "db/migrations/current/0010-notes.sql": NOTES,
  "db/seed.sql": "insert into notes values (7, 'of the seed');",
  "test/policies/notes.sql": POLICIES,
};
const SETTINGS = { BASE_SCHEMA: "platform", MIGRATIONS_DIR: "db/migrations" };

describe("content-service test", () => {
  const temporary = useFolder("t-", 0o755);
  const empty = useDatabase({ template: "empty" });
  const onDatabase = { ...SETTINGS, DATABASE_URL: empty.ownerUrl, JWT_SECRET: SECRET };

  test("migrates a new embedded database, runs the seed and the tests, and keeps nothing", async () => {
    await using project = await makeProjectFolder(SETTINGS);
    await writeFiles(project, PROJECT);
    project.environment.TMPDIR = temporary;
    const { stdout, stderr, code } = await project.run("test");
    expect({ stdout, stderr, code }).toMatchObject({ stderr: "", code: 0 });
    expect(stdout).toMatch(/^test\/policies\/notes\.sql\n {2}anon\n {4}ok {8}2 {2}select \* from notes +denied$/m);
    expect(stdout).toMatch(/^ {2}authenticated 7\n {4}ok {8}4 {2}select \* from notes +1 row$/m);
    expect(stdout).toMatch(/^anon +1 +0\nauthenticated +2 +0$/m);
    expect(await readdir(project.folder)).toEqual(["db", "node_modules", "test"]);
    expect(await readdir(temporary)).toEqual([]);
  });

  test("exits with 1 at a wrong result, and names file and line", async () => {
    await using project = await makeProjectFolder(onDatabase);
    await writeFiles(project, { ...PROJECT, "test/policies/wrong.sql": WRONG });
    const { stdout, code } = await project.run("test", "test/policies/wrong.sql");
    expect(code).toBe(1);
    expect(stdout).toMatch(/^ {4}FAILED +2 {2}select \* from notes +1 row$/m);
    expect(stdout).toContain("test/policies/wrong.sql:2: expected 1 row, got no rows");
    expect(stdout).toMatch(/^authenticated +0 +1$/m);
    expect(stdout).not.toContain("notes.sql:");
  });

  test("exits with 1 at an invalid file, at one without tests and where there are none, and with 2 at a missing file", async () => {
    await using project = await makeProjectFolder(onDatabase);
    await mkdir(join(project.folder, "test/policies"), { recursive: true });
    expect(await project.run("test")).toMatchObject({
      code: 1,
      stderr: "There are no policy tests in test/policies.\n",
    });
    expect(await project.run("test", "nothing.sql")).toMatchObject({ code: 2 });
    await writeFiles(project, {
      "test/policies/invalid.sql": "select 1;",
      "test/policies/empty.sql": "--! as anon\nselect 1;",
    });
    const { stdout, code } = await project.run("test");
    expect(code).toBe(1);
    expect(stdout).toContain("test/policies/invalid.sql:1: Say above it who runs this statement");
    expect(stdout).toContain("test/policies/empty.sql:1: No statement has an expectation.");
  });

  test("with DATABASE_URL uses a scratch database on its server, and with --in-place the database itself", async () => {
    const database = await cloneDatabase("content");
    try {
      await using project = await makeProjectFolder({
        ...SETTINGS,
        DATABASE_URL: database.url,
        OWNER_DATABASE_URL: database.ownerUrl,
        JWT_SECRET: SECRET,
      });
      await writeFiles(project, PROJECT);
      expect(await project.run("test")).toMatchObject({ code: 0, stderr: "" });
      const names = await withClient(urlOf("postgres", "postgres"), (client) =>
        client.query("select from pg_database where datname = $1", [`${database.name}_shadow`]),
      );
      expect(names.rowCount).toBe(0);

      const inPlace = await project.run("test", "--in-place");
      expect(inPlace).toMatchObject({ code: 1, stdout: expect.stringContaining('relation "notes" does not exist') });
      await withClient(database.ownerUrl, (client) =>
        client.query(`${NOTES} insert into notes values (7, 'a row'); ${USER_7}`),
      );
      expect(await project.run("test", "--in-place")).toMatchObject({ code: 0 });
      const { rowCount } = await withClient(database.ownerUrl, (client) => client.query("select from notes"));
      expect(rowCount).toBe(1);
    } finally {
      await database.drop();
    }
  });
});
