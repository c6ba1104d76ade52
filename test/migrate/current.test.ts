import { mkdir, readdir, readFile, rm, stat, symlink, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { currentFiles } from "../../migrate/current-files.ts";
import { type MigrateCommand, runMigrations } from "../../migrate/migrate.ts";
import { watchMigrations } from "../../migrate/watch-migrations.ts";
import { until } from "../until.ts";
import { type OwnHistories, ownHistories } from "./own-histories.ts";

const NOTES = "drop table if exists public.notes;\ncreate table public.notes (id int primary key, text text);\n";
const INDEX = "--! no-transaction\ncreate index concurrently if not exists notes_text on public.notes (text);\n";

const messageOf = (command: MigrateCommand, { settings }: OwnHistories): Promise<string> =>
  runMigrations(command, settings).then(
    () => "",
    (error: Error) => error.message,
  );
const commit: MigrateCommand = { name: "commit", message: "add notes", history: "project" };

describe("the files of current/", () => {
  test("are applied on every save, in the order of their numbers, until the watch is stopped", async () => {
    await using own = await ownHistories([]);
    const lines: string[] = [];
    const watched = watchMigrations(own.settings, (line) => lines.push(line));
    await own.write("project", "0020-index.sql", "create index on public.notes (text);");
    await own.write("project", "0010-notes.sql", NOTES);
    await until(() => lines.some((line) => line.includes("applied") && line.includes("0020-index.sql")));
    await own.write("project", "0020-index.sql", "selekt 1;\n");
    await until(() => lines.some((line) => line.includes("0020-index.sql:1:1")));
    await watched.stop();
    expect(await own.rows("select to_regclass('public.notes') is not null as there")).toEqual([{ there: true }]);
  });

  test("are left out if they are deleted while they are read", async () => {
    await using own = await ownHistories([]);
    await own.write("project", "0010-notes.sql", NOTES);
    const project = own.history("project");
    const deleted = join(project.folder, "current/0020-deleted.sql");
    let isReading = true;
    const reading = (async () => {
      for (let reads = 0; reads < 500; reads++) {
        const names = (await currentFiles(project)).map(({ name }) => name);
        expect(names[0]).toBe("0010-notes.sql");
      }
    })().finally(() => (isReading = false));
    while (isReading) {
      await writeFile(deleted, "select 1;");
      await rm(deleted);
    }
    await reading;
  });

  test("are refused with a link to nothing among them, until it is removed", async () => {
    await using own = await ownHistories([]);
    await own.write("project", "0010-notes.sql", NOTES);
    const link = join(own.history("project").folder, "current/0020-moved.sql");
    await symlink("nowhere.sql", link);
    const lines: string[] = [];
    const watched = watchMigrations(own.settings, (line) => lines.push(line));
    await watched.begun;
    expect(lines).toEqual([expect.stringContaining("0020-moved.sql is a link to a file that does not exist.")]);
    await rm(link);
    await until(() => lines.some((line) => line.includes("0010-notes.sql: applied in")));
    await watched.stop();
  });

  test("that have not changed are not applied again, so that their rows are kept", async () => {
    await using own = await ownHistories([]);
    await own.write("project", "0010-notes.sql", NOTES);
    await runMigrations({ name: "current" }, own.settings);
    await own.rows("insert into public.notes values (1, 'kept')");
    await own.write("project", "0010-notes.sql", `-- A comment.\n${NOTES}`);
    await own.write(
      "project",
      "0020-view.sql",
      "create or replace view public.texts as select text from public.notes;",
    );
    await runMigrations({ name: "current" }, own.settings);
    expect(await own.rows("select * from public.texts")).toEqual([{ text: "kept" }]);
  });

  test("keep the rows of a table that they drop and create again, on a save and in a commit, and say so", async () => {
    await using own = await ownHistories([]);
    await own.write("project", "0010-notes.sql", NOTES);
    await runMigrations({ name: "current" }, own.settings);
    await own.rows("insert into public.notes values (1, 'kept'), (2, 'kept')");
    const lines: string[] = [];
    await runMigrations({ ...commit, report: (line) => lines.push(line) }, own.settings);
    expect(lines).toEqual([
      expect.stringMatching(/0010-notes\.sql: drops "public"\."notes" and its 2 rows\.$/),
      "  It has its 2 rows again.",
    ]);
    expect(await own.rows("select * from public.notes order by id")).toEqual([
      { id: 1, text: "kept" },
      { id: 2, text: "kept" },
    ]);
  });

  test("that insert rows keep those, and the others that the table had", async () => {
    await using own = await ownHistories([]);
    const migration = `drop table if exists public.notes, public.marks, public.keyed;
      create table public.keyed (id uuid primary key default gen_random_uuid(), text text, more text);
      insert into public.keyed (text) values ('of the file');
      create table public.notes (id int generated by default as identity primary key, text text);
      create table public.marks (mark int);
      insert into public.notes (text) values ('of the file');
      insert into public.marks values (7), (7);`;
    await own.write("project", "0010-notes.sql", migration);
    await runMigrations({ name: "current" }, own.settings);
    await own.rows("update public.notes set text = 'edited'");
    await own.rows("insert into public.notes (text) values ('added')");
    await own.rows("insert into public.marks values (7), (8)");
    await own.rows("insert into public.keyed (text) values ('of the file'), ('added')");
    const lines: string[] = [];
    await runMigrations({ ...commit, report: (line) => lines.push(line) }, own.settings);
    expect(await own.rows("select * from public.notes order by id")).toEqual([
      { id: 1, text: "of the file" },
      { id: 2, text: "added" },
    ]);
    expect(await own.rows("select mark from public.marks order by 1")).toEqual([7, 7, 7, 8].map((mark) => ({ mark })));
    expect(await own.rows("select text from public.keyed order by 1")).toEqual(
      ["added", "of the file", "of the file"].map((text) => ({ text })),
    );
    expect(lines).toContain("  It has 1 of them again, and in place of the others rows that the file inserts.");
  });

  test("are committed as one migration in which each keeps its last statement to itself", async () => {
    await using own = await ownHistories([]);
    await own.write("project", "0010-notes.sql", "create table public.notes (id int primary key) -- without an end");
    await own.write("project", "0020-owner.sql", "create table public.tags (id int); -- with an end");
    await own.write("project", "0030-seed.sql", "insert into public.notes values (1)\n");
    await runMigrations(commit, own.settings);
    expect(await own.rows("select id, pg_catalog.to_regclass('public.tags')::text as tags from public.notes")).toEqual([
      { id: 1, tags: "tags" },
    ]);
    expect(await own.committed("project")).toEqual(["000001-add-notes.sql"]);
  });

  test("keep the rows of tables that come back with the same columns, their types, sequences and triggers", async () => {
    await using own = await ownHistories([]);
    const migration = (more: string) => `
      drop function if exists public.refuse cascade;
      drop table if exists public.words, public."The Notes"; drop type if exists public.mood;
      create type public.mood as enum ('glad', 'sad');
      create table public."The Notes" (id int generated always as identity primary key, mood public.mood, at timestamptz, twice int generated always as (id * 2) stored${more});
      create table public.words (note int references public."The Notes", word text);
      create function public.refuse() returns trigger language plpgsql as $$ begin raise 'not again'; end $$;
      create trigger refuse before insert on public.words for each row execute function public.refuse();`;
    await own.write("project", "0010-notes.sql", migration(""));
    const lines: string[] = [];
    const watched = watchMigrations(own.settings, (line) => lines.push(line));
    const applied = (times: number) =>
      until(() => lines.filter((line) => line.includes("applied in")).length === times);
    await applied(1);
    await own.rows(`insert into public."The Notes" (mood, at) values ('sad', '2026-11-22 12:00:00.123456+00')`);
    await own.rows("alter table public.words disable trigger all; insert into public.words values (1, 'x')");
    await own.write("project", "0010-notes.sql", migration(", stars int default 5"));
    await applied(2);
    await watched.stop();
    await runMigrations(commit, own.settings);
    expect(
      await own.rows(
        `select id, mood::text, twice, stars, word from public."The Notes" join public.words on note = id`,
      ),
    ).toEqual([{ id: 1, mood: "sad", twice: 2, stars: 5, word: "x" }]);
    await expect(own.rows("insert into public.words values (1, 'y')")).rejects.toThrow("not again");
    expect(await own.rows(`insert into public."The Notes" default values returning id`)).toEqual([{ id: 2 }]);
    expect(await own.rows("select tablename from pg_tables where tablename like 'rows_of_%'")).toEqual([]);
  });

  const CHANGES: [change: string, from: string, to: string, problem: string][] = [
    ["has lost a column", "text text", "title text", "it has no column text text"],
    [
      "has a new column that requires a value",
      "text text",
      "text text, at date not null",
      "its new column at requires a value",
    ],
    [
      "is not created again",
      "create table public.notes (id int primary key, text text)",
      "",
      "it is not created again",
    ],
  ];

  test.each(CHANGES)(
    "are not committed if a table with rows %s, until that is confirmed",
    async (_, from, to, problem) => {
      await using own = await ownHistories([]);
      await own.write("project", "0010-notes.sql", NOTES);
      await runMigrations({ name: "current" }, own.settings);
      await own.rows("insert into public.notes values (1, 'lost?')");
      await own.write("project", "0010-notes.sql", NOTES.replace(from, to));
      const loss = `"public"."notes" and its row: ${problem}`;
      expect(await messageOf(commit, own)).toContain(loss);
      const asked: (readonly string[])[] = [];
      const confirmLoss = (answer: boolean) => async (tables: readonly string[]) => {
        asked.push(tables);
        return answer;
      };
      expect(await messageOf({ ...commit, confirmLoss: confirmLoss(false) }, own)).toContain("--drop-rows");
      expect(await own.rows("select * from public.notes")).toEqual([{ id: 1, text: "lost?" }]);
      expect(await own.committed("project")).toEqual([]);
      await runMigrations({ ...commit, confirmLoss: confirmLoss(true) }, own.settings);
      expect(asked).toEqual([[loss], [loss]]);
      expect(await own.committed("project")).toEqual(["000001-add-notes.sql"]);
      expect(await own.rows("select tablename from pg_tables where tablename like 'rows_of_%'")).toEqual([]);
    },
  );

  test("leave a copy of rows that the table cannot have any more, on a save, which asks nobody", async () => {
    await using own = await ownHistories([]);
    await own.write("project", "0010-notes.sql", NOTES);
    const lines: string[] = [];
    const watched = watchMigrations(own.settings, (line) => lines.push(line));
    const copies = () => [...lines.join("\n").matchAll(/: (.*)\. They are in (\S+), as texts/g)];
    await until(() => lines.some((line) => line.includes("applied in")));
    await own.rows("insert into public.notes values (1, 'kept')");
    await own.write("project", "0010-notes.sql", NOTES.replace("text text", "title text"));
    await until(() => copies().length === 1);
    await own.rows("insert into public.notes values (2, 'kept')");
    await own.write("project", "0010-notes.sql", NOTES.replace("text text", "title text check (title <> 'kept')"));
    await until(() => copies().length === 2);
    await watched.stop();
    const [first, second] = copies();
    expect(first![1]).toBe("it has no column text text");
    expect(await own.rows(`select * from ${first![2]}`)).toEqual([{ id: "1", text: "kept" }]);
    // Anonymized branches leave it out.
    expect(await own.rows(`select obj_description('${first![2]}'::regclass) as comment`)).toEqual([
      { comment: expect.stringMatching(/^@sample none\n@anonymize empty\nRows of "public"\."notes", as texts/) },
    ]);
    expect(second![1]).toContain("violates check constraint");
    expect(await own.rows(`select * from ${second![2]}`)).toEqual([{ id: "2", title: "kept" }]);
  });

  test("leave no copy of rows if their commit fails before it drops them", async () => {
    await using own = await ownHistories([]);
    await own.write("project", "0010-notes.sql", NOTES);
    await runMigrations({ name: "current" }, own.settings);
    await own.rows("insert into public.notes values (1, 'kept')");
    const refuse = "do $$ begin if to_regclass('public.notes') is not null then raise 'refused here'; end if; end $$;";
    await own.write("project", "0010-notes.sql", `${refuse}\n${NOTES}`);
    expect(await messageOf(commit, own)).toContain("refused here");
    expect(await own.rows("select * from public.notes")).toEqual([{ id: 1, text: "kept" }]);
    expect(await own.rows("select tablename from pg_tables where tablename like 'rows_of_%'")).toEqual([]);
  });

  test("name the copy of rows if their commit fails after it has dropped them", async () => {
    await using own = await ownHistories([]);
    await own.write("project", "0010-notes.sql", NOTES);
    await runMigrations({ name: "current" }, own.settings);
    await own.rows("insert into public.notes values (1, 'kept')");
    const [live] = await own.rows("select current_database() as name");
    const refuse = `do $$ begin if current_database() = '${live!.name}' then raise 'refused here'; end if; end $$;`;
    await own.write("project", "0020-later.sql", `--! no-transaction\n${refuse}\n`);
    const lines: string[] = [];
    expect(await messageOf({ ...commit, report: (line) => lines.push(line) }, own)).toContain("refused here");
    const [, copy] =
      /^"public"\."notes" was dropped; what it contained is in (\S+), as texts \(rows: 1\)\.$/m.exec(
        lines.join("\n"),
      ) ?? [];
    expect(await own.rows(`select * from ${copy}`)).toEqual([{ id: "1", text: "kept" }]);
  });

  test("include functions in files of their own", async () => {
    await using own = await ownHistories([]);
    const functions = join(own.history("project").folder, "functions");
    await mkdir(functions, { recursive: true });
    await writeFile(join(functions, "two.sql"), "create or replace function public.two() returns int return 2;\n");
    await own.write("project", "0010-two.sql", "--! include two.sql\n");
    await runMigrations({ name: "current" }, own.settings);
    expect(await own.rows("select public.two()")).toEqual([{ two: 2 }]);
  });
});

describe("an error in a migration", () => {
  test("names the file that was saved, its line and column, and shows the line", async () => {
    await using own = await ownHistories([]);
    await own.write("project", "0010-fine.sql", "select 1;\n");
    await own.write("project", "0020-notes.sql", "-- A comment.\n\ncreate table public.half ();\nselect\n  nothing;\n");
    const message = await messageOf({ name: "current" }, own);
    expect(message).toContain('project/current/0020-notes.sql:5:3: column "nothing" does not exist (42703)');
    expect(message).toContain("> 5 |   nothing;\n    |   ^");
    expect(await own.rows("select to_regclass('public.half') as half")).toEqual([{ half: null }]);
  });

  test.each([
    "create table public.own (user_id uuid default auth.uid());",
    "create table public.own (user_id uuid references auth.users);",
    "create table public.own (user_id uuid); create policy own on public.own using (user_id = auth.uid());",
  ])("says which type the key of a user has: %s", async (sql) => {
    await using own = await ownHistories(["platform"], { isMigrated: true });
    await own.write("project", "0010-own.sql", sql);
    expect(await messageOf({ name: "current" }, own)).toMatch(
      /Hint: .*auth\.users \(user_id\), a bigint, and auth\.users \(id\), a uuid/,
    );
  });

  test("of a statement that cannot be executed names the start of the statement", async () => {
    await using own = await ownHistories([]);
    await own.write(
      "project",
      "0010-twice.sql",
      "create table public.twice ();\n\n-- Again.\ncreate table public.twice ();\n",
    );
    const message = await messageOf({ name: "current" }, own);
    expect(message).toContain('0010-twice.sql:4:1: relation "twice" already exists (42P07)');
    expect(message).toMatch(/\nHint: A file in current\/ runs again at each save, so it must be repeatable: .+$/);
  });

  test("within a file that is included names that file", async () => {
    await using own = await ownHistories([]);
    const functions = join(own.history("project").folder, "functions");
    await mkdir(functions, { recursive: true });
    await writeFile(
      join(functions, "bad.sql"),
      "-- One line.\ncreate function public.bad() returns int return 'x' + ;\n",
    );
    await own.write("project", "0010-bad.sql", "select 1;\n--! include bad.sql\n");
    expect(await messageOf({ name: "current" }, own)).toMatch(/functions\/bad\.sql:2:\d+: syntax error/);
  });

  test("in a committed migration names its file and line, and leaves no trace of it", async () => {
    await using own = await ownHistories([]);
    await own.add("project", "tags", "create table public.tags ();\nalter table public.tags add column id nonsense;");
    const message = await messageOf({ name: "migrate" }, own);
    expect(message).toContain('project/committed/000001-tags.sql:6:39: type "nonsense" does not exist (42704)');
    expect(await own.rows("select to_regclass('public.tags') as tags")).toEqual([{ tags: null }]);
  });
});

describe("commit", () => {
  test("creates a migration of the project's history, which uncommit removes, and leaves no shadow database", async () => {
    await using own = await ownHistories(["platform", "content"], { isMigrated: true });
    await own.write("project", "0010-notes.sql", NOTES);
    await runMigrations({ name: "current" }, own.settings);
    const written = await runMigrations(commit, own.settings);
    expect(written.map((file) => file.replace(/.*\/project\//, ""))).toEqual([
      "committed/000001-add-notes.sql",
      "schema.sql",
    ]);
    expect(await own.committed("project")).toEqual(["000001-add-notes.sql"]);
    const schema = join(own.history("project").folder, "schema.sql");
    expect(await readFile(schema, "utf8")).toContain("create table public.notes");
    expect(await own.shadowExists()).toBe(false);

    await runMigrations({ name: "uncommit", history: "project" }, own.settings);
    expect(await own.committed("project")).toEqual([]);
    const current = join(own.history("project").folder, "current/0010-add-notes.sql");
    expect(await readFile(current, "utf8")).toBe(NOTES);
    expect(await own.rows("select from graphile_migrate.histories where history = 'project'")).toEqual([]);
  });

  test("makes a separate migration of each file without a transaction", async () => {
    await using own = await ownHistories([]);
    await own.write("project", "0010-notes.sql", NOTES);
    await own.write("project", "0020-index.sql", INDEX);
    await own.write("project", "0030-comment.sql", "comment on table public.notes is 'Notes.';\n");
    await runMigrations({ name: "current" }, own.settings);
    await runMigrations(commit, own.settings);
    expect(await own.committed("project")).toEqual([
      "000001-add-notes.sql",
      "000002-add-notes.sql",
      "000003-add-notes.sql",
    ]);
    const valid = "select indisvalid as valid from pg_index where indexrelid = 'public.notes_text'::regclass";
    expect(await own.rows(valid)).toEqual([{ valid: true }]);
    await runMigrations({ name: "uncommit", history: "project" }, own.settings);
    const current = join(own.history("project").folder, "current");
    await writeFile(join(current, "0010-add-notes.sql"), "");
    await runMigrations({ name: "uncommit", history: "project" }, own.settings);
    expect(await readFile(join(current, "0020-index.sql"), "utf8")).toBe(INDEX);
  });

  test("refuses several statements without a transaction, which Postgres would run in one", async () => {
    await using own = await ownHistories([]);
    await own.write("project", "0010-index.sql", `${INDEX}select 1;\n`);
    expect(await messageOf(commit, own)).toContain(
      '0010-index.sql: a migration with "--! no-transaction" has one statement',
    );
  });

  test("changes nothing if the migration fails on an empty database", async () => {
    await using own = await ownHistories([]);
    await own.rows("create table public.by_hand (id int)");
    await own.write(
      "project",
      "0010-view.sql",
      "create or replace view public.seen as select id from public.by_hand;\n",
    );
    await runMigrations({ name: "current" }, own.settings);
    expect(await messageOf(commit, own)).toContain('relation "public.by_hand" does not exist');
    expect(await own.committed("project")).toEqual([]);
    expect(await own.shadowExists()).toBe(false);
    expect(await readFile(join(own.history("project").folder, "current/0010-view.sql"), "utf8")).toContain("by_hand");
  });

  test("changes nothing if the migration fails on the rows of this database", async () => {
    await using own = await ownHistories([]);
    await own.write("project", "0010-notes.sql", NOTES);
    await runMigrations(commit, own.settings);
    await own.rows("insert into public.notes values (1, 'twice'), (2, 'twice')");
    const schema = join(own.history("project").folder, "schema.sql");
    const before = await readFile(schema, "utf8");
    await own.write("project", "0010-unique.sql", "alter table public.notes add unique (text);\n");
    expect(await messageOf(commit, own)).toContain("could not create unique index");
    expect(await own.committed("project")).toEqual(["000001-add-notes.sql"]);
    expect(await readFile(schema, "utf8")).toBe(before);
  });

  test("keeps the files of current/ if schema.sql cannot be written", async () => {
    await using own = await ownHistories([]);
    await own.write("project", "0010-notes.sql", NOTES);
    const { folder } = own.history("project");
    await mkdir(join(folder, "schema.sql"));
    expect(await messageOf(commit, own)).toContain("EISDIR");
    expect(await own.committed("project")).toEqual([]);
    expect(await readFile(join(folder, "current/0010-notes.sql"), "utf8")).toBe(NOTES);
  });

  test("does nothing if current/ has no statement", async () => {
    await using own = await ownHistories([]);
    await own.write("project", "0010-later.sql", "-- Later.\n");
    expect(await messageOf(commit, own)).toContain("project/current has nothing to commit");
  });
});

describe("a commit that was interrupted is finished by the next one", () => {
  const TAGS = "drop table if exists public.tags;\ncreate table public.tags (tag text);\n";
  /** Commits again, and returns what was reported and which files there are. */
  const commitAgain = async (own: OwnHistories) => {
    const lines: string[] = [];
    await runMigrations({ ...commit, report: (line) => lines.push(line) }, own.settings);
    const current = await readdir(join(own.history("project").folder, "current"));
    const recorded = await own.rows("select filename from graphile_migrate.histories where history = 'project'");
    return { lines, committed: await own.committed("project"), current, recorded: recorded.length };
  };
  const finishing = (name: string) => expect.stringMatching(`${name}: an interrupted commit has written it`);
  /** Leaves the record that a commit of these migrations has until it is finished. */
  const interrupt = async (own: OwnHistories, ...migrations: readonly string[]) => {
    const { folder } = own.history("project");
    const names = await readdir(join(folder, "current"));
    const timeOf = async (name: string) => [name, (await stat(join(folder, "current", name))).mtimeMs] as const;
    const files = Object.fromEntries(await Promise.all(names.map(timeOf)));
    await writeFile(join(folder, "committed/.unfinished"), JSON.stringify({ migrations, files }));
  };

  test("that had applied the migration", async () => {
    await using own = await ownHistories([]);
    await own.write("project", "0010-notes.sql", NOTES);
    await runMigrations(commit, own.settings);
    await own.rows("insert into public.notes values (1, 'new')");
    await own.write("project", "0010-notes.sql", NOTES);
    await interrupt(own, "000001-add-notes.sql");
    const lines = [finishing("000001-add-notes.sql")];
    const committed = ["000001-add-notes.sql"];
    expect(await commitAgain(own)).toEqual({ lines, committed, current: [], recorded: 1 });
    expect(await own.rows("select * from public.notes")).toEqual([{ id: 1, text: "new" }]);
  });

  test("that had deleted the first files", async () => {
    await using own = await ownHistories([]);
    await own.write("project", "0010-notes.sql", NOTES);
    await own.write("project", "0020-tags.sql", TAGS);
    await runMigrations(commit, own.settings);
    await own.write("project", "0020-tags.sql", TAGS);
    await interrupt(own, "000001-add-notes.sql");
    const lines = [finishing("000001-add-notes.sql")];
    const committed = ["000001-add-notes.sql"];
    expect(await commitAgain(own)).toEqual({ lines, committed, current: [], recorded: 1 });
  });

  test("and the same SQL after a finished commit is another migration", async () => {
    await using own = await ownHistories([]);
    await own.write("project", "0010-notes.sql", NOTES);
    await runMigrations(commit, own.settings);
    const add = "insert into public.notes select coalesce(max(id), 0) + 1, 'one more' from public.notes;\n";
    for (const committed of [
      ["000001-add-notes.sql", "000002-add-notes.sql"],
      ["000001-add-notes.sql", "000002-add-notes.sql", "000003-add-notes.sql"],
    ]) {
      await own.write("project", "0010-more.sql", add);
      expect(await commitAgain(own)).toMatchObject({ committed, current: [], recorded: committed.length });
    }
    expect(await own.rows("select id from public.notes order by id")).toEqual([{ id: 1 }, { id: 2 }]);
  });

  test("that had written the files only, or the first of them", async () => {
    await using own = await ownHistories([]);
    await own.add("project", "notes first", NOTES);
    await own.write("project", "0010-notes.sql", NOTES);
    await own.write("project", "0020-index.sql", INDEX);
    await interrupt(own, "000001-notes-first.sql", "000002-notes-first.sql");
    const lines = [finishing("000001-notes-first.sql")];
    const committed = ["000001-notes-first.sql", "000002-add-notes.sql"];
    expect(await commitAgain(own)).toEqual({ lines, committed, current: [], recorded: 2 });
    expect(await own.rows("select pg_catalog.to_regclass('public.notes_text')::text as index")).toEqual([
      { index: "notes_text" },
    ]);
  });

  test("of which the database has the record, and the file is gone", async () => {
    await using own = await ownHistories([]);
    await own.write("project", "0010-notes.sql", NOTES);
    await runMigrations(commit, own.settings);
    await own.rows("insert into public.notes values (1, 'new')");
    await rm(join(own.history("project").folder, "committed/000001-add-notes.sql"));
    await own.write("project", "0010-notes.sql", NOTES);
    const committed = ["000001-add-notes.sql"];
    expect(await commitAgain(own)).toEqual({ lines: [], committed, current: [], recorded: 1 });
    expect(await own.rows("select * from public.notes")).toEqual([{ id: 1, text: "new" }]);
  });

  test("unless its file was written again since", async () => {
    await using own = await ownHistories([]);
    await own.write("project", "0010-notes.sql", NOTES);
    await runMigrations(commit, own.settings);
    await own.write("project", "0010-notes.sql", NOTES);
    await interrupt(own, "000001-add-notes.sql");
    await utimes(join(own.history("project").folder, "current/0010-notes.sql"), 1_000_000, 1_000_000);
    const committed = ["000001-add-notes.sql", "000002-add-notes.sql"];
    expect(await commitAgain(own)).toMatchObject({ lines: [], committed, recorded: 2 });
  });

  test("or refused, if current/ was changed since and the migration is not applied", async () => {
    await using own = await ownHistories([]);
    await own.add("project", "notes first", NOTES);
    await own.write("project", "0010-notes.sql", NOTES);
    await interrupt(own, "000001-notes-first.sql");
    await own.write("project", "0010-notes.sql", TAGS);
    expect(await messageOf(commit, own)).toMatch(
      /interrupted commit has written .*000001-notes-first\.sql, which is not/,
    );
    await runMigrations({ name: "migrate" }, own.settings);
    const committed = ["000001-notes-first.sql", "000002-add-notes.sql"];
    expect(await commitAgain(own)).toMatchObject({ committed, current: [], recorded: 2 });
  });

  test("that a migration was taken back for, too", async () => {
    await using own = await ownHistories([]);
    const file = await own.add("project", "notes first", NOTES);
    await runMigrations({ name: "migrate" }, own.settings);
    await own.write("project", "0010-notes-first.sql", NOTES);
    await interrupt(own, file);
    expect(await commitAgain(own)).toMatchObject({ committed: [file], current: [], recorded: 1 });
  });

  test("or takes back its files, if the migration is refused", async () => {
    await using own = await ownHistories([]);
    await runMigrations({ name: "current" }, own.settings);
    await own.rows("create table public.notes (id int); insert into public.notes values (1)");
    const drop = "drop table if exists public.notes;\n";
    await own.add("project", "drop notes", drop);
    await own.write("project", "0010-notes.sql", drop);
    await interrupt(own, "000001-drop-notes.sql");
    expect(await messageOf(commit, own)).toContain("it is not created again");
    expect(await own.committed("project")).toEqual([]);
    expect(await own.rows("select * from public.notes")).toEqual([{ id: 1 }]);
  });
});
