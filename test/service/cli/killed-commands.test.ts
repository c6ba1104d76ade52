import { mkdir, readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { beforeAll, describe, expect, test } from "vitest";
import { allTables } from "../../../cluster/archive/content/content-tables.ts";
import { writeArchive } from "../../../cluster/archive/write-archive.ts";
import { createBranch, dropBranch, listBranches } from "../../../cluster/branches.ts";
import { withScratchDatabase } from "../../../migrate/scratch-database.ts";
import { withClient } from "../../../postgres/client/with-client.ts";
import { copyDatabase } from "../../copy-database.ts";
import { type TestDatabase, urlOf, useDatabase } from "../../database.ts";
import { useFolder } from "../../fixture.ts";
import { killAtEachStep } from "../../killed-commands.ts";
import { runCommand } from "./run-command.ts";

const settings = { BASE_SCHEMA: "platform" };
/** A branch of the schema and a rehearsal repeat the whole schema at each step, so theirs is small. */
const small = { BASE_SCHEMA: "none" };
const rootUrl = urlOf("postgres", "postgres");
const query = async (url: string, sql: string) => (await withClient(url, (client) => client.query(sql))).rows;
/** Statements that create, name, mark or drop databases, and commits, which complete the work in them. */
const isStep = /^(?:create|drop|alter|comment on|revoke all on) database|^commit\b/i;

const NOTES = "create table public.notes (id int primary key, text text); insert into public.notes values (1, 'first')";

const platform = useDatabase({ template: "platform", sql: NOTES });
const database = useDatabase({ template: "empty", sql: NOTES });
const project = useFolder("killed-rehearsal-");

const databasesOf = ({ name }: Pick<TestDatabase, "name">) =>
  query(
    rootUrl,
    `select datname as name from pg_database where starts_with(datname, '${name}_') or datname like '% (branch of ' || (
       select oid from pg_database where datname = '${name}') || ')'`,
  );

describe("a command that is killed at any step leaves nothing that the next one does not know", () => {
  const postgresOf = ({ name, url, ownerUrl }: TestDatabase) => ({
    ...{ requestUrl: url, ownerUrl, directUrl: ownerUrl, clientUrl: "" },
    migrate: {
      url: ownerUrl,
      shadowUrl: urlOf("postgres", `${name}_shadow`),
      rootUrl,
      histories: [],
    },
    close: async () => {},
  });

  test.each([
    { options: [], source: platform, settings },
    { options: ["--schema-only"], source: database, settings: small },
  ])("branch create $options", async ({ options, source, settings }) => {
    const postgres = postgresOf(source);
    const branch = { database: source, command: "branch", words: ["create", "likes", ...options], settings, isStep };
    const steps = await killAtEachStep(branch, async (statement) => {
      const left = await databasesOf(source);
      const listed = await listBranches(postgres, source.name);
      expect([statement, listed.map(({ name }) => name)]).toEqual([statement, left.map(() => "likes")]);
      if (left.length === 0) return;
      const [created] = listed;
      // Only the last statement completes it.
      expect(["interrupted", "complete"]).toContain(created!.state);
      const again = createBranch(postgres, "likes", { schemaOnly: true, sample: null, isAnonymized: false });
      await expect(again).rejects.toThrow('There is a branch "likes" already');
      await dropBranch(postgres, "likes");
      expect(await databasesOf(source)).toEqual([]);
    });
    expect(steps).toBeGreaterThan(4);
    expect(await listBranches(postgres, source.name)).toMatchObject([{ name: "likes", state: "complete" }]);
    await dropBranch(postgres, "likes");
  });

  test("migrate rehearse", async () => {
    const before = await query(database.ownerUrl, "select * from public.notes");
    const words = ["rehearse", "--schema-only"];
    // Without a pending migration it has nothing to do.
    await mkdir(join(project, "current"));
    await writeFile(join(project, "current/0010-more.sql"), "alter table public.notes add column more text;\n");
    const pending = { ...small, MIGRATIONS_DIR: project };
    const rehearsal = { database, command: "migrate", words, settings: pending, isStep };
    const steps = await killAtEachStep(rehearsal, async () => {
      expect((await databasesOf(database)).length).toBeLessThan(2);
      await withScratchDatabase(urlOf("postgres", `${database.name}_shadow`), rootUrl, async () => {});
      expect(await databasesOf(database)).toEqual([]);
    });
    expect(steps).toBeGreaterThan(4);
    expect(await databasesOf(database)).toEqual([]);
    expect(await query(database.ownerUrl, "select * from public.notes")).toEqual(before);
  });

  describe("migrate commit", () => {
    const migrated = useDatabase({ template: "platform" });
    const folder = useFolder("killed-commit-");
    const sql = "drop table if exists public.tags;\ncreate table public.tags (tag text);\n";
    const filesIn = async (name: string) => (await readdir(join(folder, name)).catch(() => [])).sort();
    const begin = async () => {
      await rm(join(folder, "committed"), { recursive: true, force: true });
      await query(migrated.ownerUrl, "delete from graphile_migrate.histories where history = 'project'");
      await mkdir(join(folder, "current"), { recursive: true });
      await writeFile(join(folder, "current/0010-tags.sql"), sql);
    };
    beforeAll(begin);

    test("is finished by the next one, which writes nothing twice", async () => {
      const project = { ...settings, MIGRATIONS_DIR: folder };
      const words = ["commit", "add tags"];
      // The databases of the rehearsal and of schema.sql; the file is written between them, and the record is deleted last.
      const isStep = /^create database|^delete from graphile_migrate\.current/i;
      const commit = { database: migrated, command: "migrate", words, settings: project, isStep };
      const expectCommitted = async () => {
        const recorded = await query(
          migrated.ownerUrl,
          "select filename from graphile_migrate.histories where history = 'project'",
        );
        const files = [await filesIn("committed"), await filesIn("current")];
        expect([...files, recorded]).toEqual([["000001-add-tags.sql"], [], [{ filename: "000001.sql" }]]);
      };
      const interrupted: string[][] = [];
      const steps = await killAtEachStep(commit, async () => {
        interrupted.push(await filesIn("committed"));
        const urls = {
          SHADOW_DATABASE_URL: urlOf("postgres", `${migrated.name}_shadow`),
          ROOT_DATABASE_URL: rootUrl,
        };
        const { code, stderr } = await runCommand("migrate", words, migrated, { ...project, ...urls });
        expect([code, stderr]).toEqual([0, ""]);
        await expectCommitted();
        await begin();
      });
      const unfinished = [".unfinished", "000001-add-tags.sql"];
      expect([steps, interrupted]).toEqual([3, [[], unfinished, unfinished]]);
      await expectCommitted();
    });
  });

  describe("restore", () => {
    const checked = useDatabase({ template: "empty" });
    const restored = useDatabase({ template: "empty" });
    const file = join(useFolder("killed-restore-"), "backup.gz");
    const isEmpty = async ({ ownerUrl }: TestDatabase) => (await withClient(ownerUrl, allTables)).length === 0;
    beforeAll(() => writeArchive(platform.ownerUrl, file));

    test("of a check only", async () => {
      const check = { database: checked, command: "restore", words: ["--check", file], settings, isStep };
      const steps = await killAtEachStep(check, async () => {
        expect(await isEmpty(checked)).toBe(true);
        await withScratchDatabase(urlOf("postgres", `${checked.name}_shadow`), rootUrl, async () => {});
        expect(await databasesOf(checked)).toEqual([]);
      });
      expect(steps).toBeGreaterThan(4);
    });

    // A restore is complete or absent. A complete one is served, and refuses another restore.
    test("of all rows", async () => {
      const restore = { database: restored, command: "restore", words: [file], settings, isStep };
      const notes = () => query(restored.ownerUrl, "select * from public.notes");
      let isRestored = false;
      await killAtEachStep(restore, async () => {
        if (await isEmpty(restored)) return;
        isRestored = true;
        expect(await notes()).toEqual([{ id: 1, text: "first" }]);
        await query(rootUrl, `drop database ${restored.name}`);
        await withClient(rootUrl, (client) => copyDatabase(client, restored.name, "empty"));
      });
      expect([isRestored, await notes()]).toEqual([true, [{ id: 1, text: "first" }]]);
    });
  });
});
