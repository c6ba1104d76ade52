import { rm } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, describe, expect, test } from "vitest";
import { runMigrations } from "../../migrate/migrate.ts";
import { undoMigration } from "../../migrate/undo-migration.ts";
import { withClient } from "../../postgres/client/with-client.ts";
import { useFixture } from "../fixture.ts";
import { shareOf } from "../property-runs.ts";
import { runCommand } from "../service/cli/run-command.ts";
import { type OwnHistories, ownHistories } from "./own-histories.ts";

const FIXTURE = `
  create table public.notes (id int primary key, text text); create table public.log (line text);
  create function public.note() returns int language sql as 'select 1';
  create procedure public.fill() language sql as 'insert into public.log values (1)'`;

type SecondMigration = { readonly message: string; readonly sql: string };

/** A project with a table with a row, and with one migration or two. */
async function migratedProject(second?: SecondMigration): Promise<OwnHistories> {
  const own = await ownHistories([]);
  await own.add("project", "notes", FIXTURE);
  await runMigrations({ name: "migrate" }, own.settings);
  await own.rows("insert into public.notes values (1, 'one')");
  if (second) {
    await own.add("project", second.message, second.sql);
    await runMigrations({ name: "migrate" }, own.settings);
  }
  return own;
}

const undo = ({ settings }: OwnHistories, isConfirmed = true, isForced = false) =>
  undoMigration(settings, { isConfirmed, isForced, report: () => {} });
const recorded = async (own: OwnHistories) =>
  (await own.rows("select filename from graphile_migrate.histories order by 1")).map(({ filename }) => filename);
const COLUMNS =
  "select attname from pg_attribute where attrelid = 'public.notes'::regclass and attnum > 0 and not attisdropped";
const columns = async (own: OwnHistories) => (await own.rows(COLUMNS)).map(({ attname }) => attname);

test("the last migration is taken back with its record, stays as a file, and can be applied again", async () => {
  await using own = await migratedProject({
    message: "likes",
    sql: `alter table public.notes add column likes int; create table public.tags (id serial primary key);
     create or replace function public.note() returns int language sql as 'select 2'`,
  });
  await own.rows("update public.notes set likes = 7; insert into public.tags default values");

  const preview = await undo(own, false);
  expect(preview).toMatchObject({
    file: expect.stringMatching(/000002-likes\.sql$/),
    undo: { verdict: "can be undone", drops: ["table public.tags", "column likes of table public.notes"] },
  });
  expect(await columns(own)).toEqual(["id", "text", "likes"]);

  expect(await undo(own)).toEqual({ ...preview, isUndone: true });
  expect(await columns(own)).toEqual(["id", "text"]);
  expect(await own.rows("select *, note() from public.notes")).toEqual([{ id: 1, text: "one", note: 1 }]);
  expect(await recorded(own)).toEqual(["000001.sql"]);
  await expect(undo(own)).rejects.toThrow(/000002-likes\.sql is not applied to this database\. .* uncommit/);
  expect(await own.shadowExists()).toBe(false);

  await runMigrations({ name: "migrate" }, own.settings);
  expect(await recorded(own)).toEqual(["000001.sql", "000002.sql"]);
  await undo(own);
  expect(await runMigrations({ name: "uncommit", history: "project" }, own.settings)).toHaveLength(2);
  expect(await own.committed("project")).toEqual(["000001-notes.sql"]);
});

test("an only migration can be undone, and none after later ones or under files of current/", async () => {
  await using own = await ownHistories([]);
  await expect(undo(own)).rejects.toThrow('History "project" has no migration to undo.');
  await own.add("project", "one", "create table public.one (id int)");
  await expect(undo(own)).rejects.toThrow("is not applied to this database");
  await runMigrations({ name: "migrate" }, own.settings);
  await own.rows(
    "insert into graphile_migrate.histories (history, hash, filename) values ('project', 'x', '000002.sql')",
  );
  await expect(undo(own)).rejects.toThrow("The database has later migrations, which are not here: project/000002.sql.");
  await own.rows("delete from graphile_migrate.histories where hash = 'x'");
  await own.write("project", "0010-view.sql", "create view public.seen as select id from public.one");
  await runMigrations({ name: "current" }, own.settings);
  await expect(undo(own)).rejects.toThrow(/The database has applied .*0010-view\.sql after .*000001-one\.sql/);
  await own.rows("delete from graphile_migrate.current");
  await expect(undo(own)).rejects.toThrow(
    /is not undone, and nothing was changed\. .*table one because other objects depend/,
  );
  expect(await own.rows("select from public.one")).toEqual([]);
  await own.rows("drop view public.seen");
  await undo(own);
  expect(await own.rows("select to_regclass('public.one') as one")).toEqual([{ one: null }]);
});

describe("refuses a migration that changes what was there", () => {
  const own = useFixture(() => migratedProject());
  // One after the other in one project: the last two change the column that the others write.
  test.each<[sql: string, reason: string]>([
    ["update public.notes set text = 'two'", "It writes rows"],
    ...shareOf<[sql: string, reason: string]>([
      ["insert into public.notes select id + 1, text from public.notes", "It writes rows"],
      ["insert into public.log values ('line')", "It writes rows"],
    ]),
    ["do $$ begin delete from public.notes where id > 5; end $$", "It writes rows"],
    ["--! no-transaction\ncall public.fill()", "It writes rows"],
    ["alter table public.notes alter column text type int using length(text)", "It writes rows"],
    ["alter table public.notes drop column text", "is dropped with its values"],
  ])("%s", async (sql, reason) => {
    const file = await own.add("project", "change", sql);
    await runMigrations({ name: "migrate" }, own.settings);
    const before = await recorded(own);
    expect(before.at(-1)).toBe(file.replace("-change", ""));
    const judged = await undo(own);
    expect(judged.undo).toMatchObject({
      verdict: "cannot be undone",
      reason: expect.stringContaining(reason),
      statement: { file: expect.stringContaining(file) },
    });
    expect(await recorded(own)).toEqual(before);
  });
});

const NOTE_DIFFERS = "function public.note() differs from the migrations";

describe("does not take back what was changed after the migration, unless it is forced", () => {
  const own = useFixture(() => migratedProject());
  /** The last migration, which its test undoes. */
  let file: string;
  const addLast = async ({ message, sql }: SecondMigration) => {
    file = await own.add("project", message, sql);
    await runMigrations({ name: "migrate" }, own.settings);
  };
  afterEach(() => rm(join(own.history("project").folder, "committed", file)));
  const replaced = (result: number) =>
    `create or replace function public.note() returns int language sql as 'select ${result}'`;
  test.each([
    ["a function that it replaces", replaced(2), replaced(3), [NOTE_DIFFERS]],
    [
      "a function that it drops",
      "drop function public.note()",
      replaced(3),
      ["function public.note() is not created by a migration"],
    ],
    [
      "a table that it creates",
      "create table public.tags (id int)",
      "alter table public.tags add column name text; create index on public.tags (name)",
      [
        "index tags_name_idx of table public.tags is not created by a migration",
        "column name of table public.tags is not created by a migration",
      ],
    ],
    [
      "a column that it adds",
      "alter table public.notes add column stars int",
      "alter table public.notes alter column stars set default 5; create index stars on public.notes (stars); create index other on public.notes (text)",
      [
        "index stars of table public.notes is not created by a migration",
        "column stars of table public.notes differs from the migrations: stars integer default 5 instead of stars integer",
      ],
    ],
    [
      "a setting",
      "alter table public.notes set (fillfactor = 70)",
      "alter table public.notes set (fillfactor = 60)",
      ["option fillfactor of table public.notes differs from the migrations"],
    ],
  ])("%s", async (_, sql, byHand, changedSince) => {
    await addLast({ message: "change", sql });
    await own.rows(byHand);
    expect(await undo(own)).toMatchObject({ undo: { verdict: "can be undone" }, changedSince, isUndone: false });
    expect(await recorded(own)).toEqual(["000001.sql", "000002.sql"]);
    expect(await undo(own, true, true)).toMatchObject({ changedSince });
    expect(await recorded(own)).toEqual(["000001.sql"]);
    expect(await own.rows("select public.note()")).toEqual([{ note: 1 }]);
  });

  test("other changes by hand do not count, and stay", async () => {
    await addLast(STARS);
    await own.rows(
      `${replaced(3)}; create index another on public.notes (text); alter table public.notes add column starship int; create table public.own ()`,
    );
    expect(await undo(own)).toMatchObject({ changedSince: [] });
    expect(await columns(own)).toEqual(["id", "text", "starship"]);
    expect(await own.rows("select public.note(), to_regclass('public.another')::text as index")).toEqual([
      { note: 3, index: "another" },
    ]);
  });
});

const STARS = { message: "stars", sql: "alter table public.notes add column stars int" };

describe("the last migration of one project", () => {
  const own = useFixture(() => migratedProject(STARS));

  test("a lock that others hold is not waited for without end", async () => {
    const reported: string[] = [];
    const lockLimits = { lockTimeoutMs: 500, lockRetries: 1, maxHoldMs: 0 };
    await withClient(own.settings.url, async (holder) => {
      await holder.query("begin; select from public.notes");
      const undone = undoMigration(
        { ...own.settings, lockLimits },
        { isConfirmed: true, isForced: false, report: (line) => reported.push(line) },
      );
      await expect(undone).rejects.toThrow(
        /not undone, and nothing was changed\. The access exclusive lock on .*notes was not granted/,
      );
    });
    expect(reported).toHaveLength(1);
    expect(await columns(own)).toContain("stars");
  });

  test("the command shows the SQL and what is lost, and only changes the database with --yes", async () => {
    const { url: ownerUrl, shadowUrl, rootUrl } = own.settings;
    const migrate = (...words: string[]) =>
      runCommand(
        "migrate",
        words,
        { url: own.requestUrl, ownerUrl },
        {
          BASE_SCHEMA: "none",
          MIGRATIONS_DIR: own.history("project").folder,
          SHADOW_DATABASE_URL: shadowUrl,
          ROOT_DATABASE_URL: rootUrl,
        },
      );
    const preview = await migrate("undo");
    expect(preview).toMatchObject({ code: 0, stderr: "" });
    expect(preview.stdout).toMatch(
      /000002-stars\.sql can be undone by:\n {2}alter table public\.notes drop column stars;\nWhat was written to these is lost: column stars of table public\.notes\.\nNothing was changed\. With --yes it is undone\.\n$/,
    );
    expect(await columns(own)).toContain("stars");
    await own.rows("alter table public.notes alter column stars set default 5");
    expect((await migrate("undo")).stdout).toContain("These were changed after the migration");
    const refused = await migrate("undo", "--yes");
    expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining("With --yes --force it is undone.") });
    expect(refused.stderr).toContain("column stars of table public.notes differs from the migrations");
    expect(await columns(own)).toContain("stars");
    expect(await migrate("undo", "--force")).toMatchObject({ code: 2 });
    expect(await migrate("status", "--force")).toMatchObject({ code: 2 });
    const undone = await migrate("undo", "--yes", "--force");
    expect(undone).toMatchObject({ code: 0, stdout: expect.stringContaining("It is undone.") });
    expect(await columns(own)).not.toContain("stars");
    expect((await migrate("status")).stdout).toContain("1 migration is pending:\n  project/000002-stars.sql");
    expect(await migrate("undo", "--yes")).toMatchObject({
      code: 1,
      stderr: expect.stringContaining("is not applied"),
    });
    expect(await migrate("status", "--yes")).toMatchObject({ code: 2 });
  });
});
