import { join } from "node:path";
import { afterEach, beforeAll, expect, test } from "vitest";
import {
  type DifferingRow,
  type RestoredTable,
  type RestoreTablesOptions,
  restoreTables,
} from "../../../../cluster/archive/table-restore/restore-tables.ts";
import { openArchiveSource, openDatabaseSource } from "../../../../cluster/archive/table-restore/table-source.ts";
import { writeArchive } from "../../../../cluster/archive/write-archive.ts";
import { withClient } from "../../../../postgres/client/with-client.ts";
import { cloneDatabase, useDatabase } from "../../../database.ts";
import { useFolder } from "../../../fixture.ts";
import { runCommand } from "../../../service/cli/run-command.ts";

let file: string;
const database = useDatabase({ template: "empty" });
const folder = useFolder("restore-table-");
beforeAll(async () => {
  file = join(folder, "backup.gz");
});
afterEach(() => run("drop schema public cascade; create schema public"));

const run = async (statement: string) =>
  (await withClient(database.ownerUrl, (client) => client.query(statement))).rows as Record<string, unknown>[];
const backUp = () => writeArchive(database.ownerUrl, file);
const restore = async (
  tables: readonly string[],
  mode: RestoreTablesOptions["mode"] = "preview",
  where: string | null = null,
) => restoreTables({ url: database.ownerUrl, source: await openArchiveSource(file), tables, mode, where });
const counts = async (table: string, mode?: RestoreTablesOptions["mode"]) => {
  const [restored] = await restore([table], mode);
  const { missing, different, onlyHere } = restored!.comparison;
  return { missing, different, onlyHere };
};

test("a preview tells which rows are missing, different and only here, and changes nothing", async () => {
  await run(`create table public.notes (id int primary key, body text, doc json);
    insert into public.notes select n, 'note ' || n, '{"n": 1}' from generate_series(1, 1200) as n`);
  await backUp();
  await run(`delete from public.notes where id in (41, 42); update public.notes set body = null where id = 7;
    insert into public.notes values (2000, 'new')`);
  const before = await run("select * from public.notes order by id");
  const [restored] = await restore(["public.notes"]);
  expect(restored).toMatchObject({
    applied: null,
    comparison: {
      archived: 1200,
      missing: 2,
      different: 1,
      onlyHere: 1,
      missingExamples: ['{"id":41,"body":"note 41","doc":{"n": 1}}', '{"id":42,"body":"note 42","doc":{"n": 1}}'],
      differentExamples: ['{"key" : {"id" : 7}, "changed" : { "body" : [null, "note 7"] }}'],
    },
  });
  expect(await run("select * from public.notes order by id")).toEqual(before);
});

test("missing rows are inserted, different ones only overwritten on request, and none is deleted", async () => {
  await run(`create table public.notes (id int primary key, body text);
    insert into public.notes select n, 'note ' || n from generate_series(1, 9) as n`);
  await backUp();
  await run(`delete from public.notes where id in (1, 2); update public.notes set body = 'other' where id = 7;
    insert into public.notes values (2000, 'new')`);
  const [one] = await restore(["notes"], "insert", "id = 2");
  expect(one!.applied).toMatchObject({ inserted: 1, updated: 0 });
  expect(one!.comparison.onlyHere).toBeNull();
  expect(await counts("notes", "insert")).toEqual({ missing: 1, different: 1, onlyHere: 1 });
  expect(await run("select body from public.notes where id = 7")).toEqual([{ body: "other" }]);
  expect(await counts("notes", "overwrite")).toEqual({ missing: 0, different: 1, onlyHere: 1 });
  expect(await counts("notes")).toEqual({ missing: 0, different: 0, onlyHere: 1 });
});

test("the audit log tells how many rows of which table were restored", async () => {
  const platform = await cloneDatabase("platform");
  try {
    const table = "create table public.notes (id int primary key)";
    await withClient(platform.ownerUrl, (client) => client.query(table));
    await run(`${table}; insert into public.notes values (1), (2)`);
    const source = openDatabaseSource(database.ownerUrl, "then");
    const options = { url: platform.ownerUrl, source, tables: ["notes"], where: null };
    for (const mode of ["preview", "insert", "overwrite"] as const) await restoreTables({ ...options, mode });
    const events = "select event, details from auth.audit_log where event = 'rows.restored'";
    const { rows } = await withClient(platform.ownerUrl, (client) => client.query(events));
    expect(rows).toEqual([{ event: "rows.restored", details: { table: '"public"."notes"', inserted: 2, updated: 0 } }]);
  } finally {
    await platform.drop();
  }
});

test("identity and serial columns keep their numbers, generated columns are computed, and new rows get later numbers", async () => {
  await run(`create table public.numbered (
      id bigint generated always as identity primary key, serial serial, twice int generated always as (size * 2) stored, size int);
    insert into public.numbered (size) select n from generate_series(1, 5) as n`);
  await backUp();
  await run(`truncate public.numbered restart identity`);
  expect(await counts("numbered", "insert")).toEqual({ missing: 5, different: 0, onlyHere: 0 });
  expect(await run("insert into public.numbered (size) values (6) returning id::int, serial, twice")).toEqual([
    { id: 6, serial: 6, twice: 12 },
  ]);
  await run("update public.numbered set size = 50, serial = 99 where id = 5");
  expect(await counts("numbered", "overwrite")).toEqual({ missing: 0, different: 1, onlyHere: 1 });
  expect(await run("select size, serial, twice from public.numbered where id = 5")).toEqual([
    { size: 5, serial: 5, twice: 10 },
  ]);
});

test("composite keys, keys of other operators and tables without a key are compared", async () => {
  await run(`create extension citext schema public;
    create table public.pairs (one int, other text, value text, primary key (one, other));
    insert into public.pairs values (1, 'a', 'x'), (1, 'b', 'y'), (2, 'a', 'z');
    create table public.names (name public.citext primary key);
    insert into public.names values ('Ann'), ('Bob');
    create table public.log (line text, doc json);
    insert into public.log values ('twice', '{}'), ('twice', '{}'), (null, null), ('once', null)`);
  await backUp();
  await run(`delete from public.pairs where (one, other) = (1, 'b'); update public.pairs set value = 'w' where one = 2;
    update public.names set name = 'ann' where name = 'Ann';
    delete from public.log where ctid = (select min(ctid) from public.log); delete from public.log where line is null;
    insert into public.log values ('once', null)`);
  expect(await counts("pairs")).toEqual({ missing: 1, different: 1, onlyHere: 0 });
  // The same name for the key: an insert would be refused.
  expect(await counts("names", "insert")).toEqual({ missing: 0, different: 1, onlyHere: 0 });
  expect(await counts("log", "insert")).toEqual({ missing: 2, different: 0, onlyHere: 1 });
  expect(await run("select line, count(*)::int from public.log group by 1 order by 1")).toEqual([
    { line: "once", count: 2 },
    { line: "twice", count: 2 },
    { line: null, count: 1 },
  ]);
});

test("rows of a partitioned table come back to its present partitions, and columns are matched by name", async () => {
  await run(`create table public.events (id int, at date, gone text, kept text, primary key (id, at)) partition by range (at);
    create table public.events_old partition of public.events for values from ('2025-01-01') to ('2026-01-01');
    create table public."events New" (kept text, at date not null, id int not null, gone text);
    alter table public.events attach partition public."events New" for values from ('2026-01-01') to ('2027-01-01');
    insert into public.events values (1, '2025-05-05', 'g', 'k'), (2, '2026-05-05', 'g', 'k,"(2')`);
  await backUp();
  await run(`drop table public.events_old; delete from public.events;
    create table public.events_other partition of public.events default;
    alter table public.events drop column gone; alter table public.events add column fresh text not null default 'f'`);
  const [restored] = await restore(["events"], "insert");
  expect(restored!.comparison).toMatchObject({ missing: 2, gone: ["gone"], added: ["fresh"] });
  expect(await run("select tableoid::regclass::text as place, id, kept, fresh from public.events order by id")).toEqual(
    [
      { place: "events_other", id: 1, kept: "k", fresh: "f" },
      { place: '"events New"', id: 2, kept: 'k,"(2', fresh: "f" },
    ],
  );
});

test("foreign keys are checked, and several tables are restored in the order of their foreign keys or not at all", async () => {
  await run(`create table public.parents (id int primary key, boss int references public.parents);
    create table public.children (id int primary key, parent int references public.parents on delete cascade);
    insert into public.parents values (1, null), (2, 1); insert into public.children values (10, 2)`);
  await backUp();
  await run("delete from public.parents where id = 2; delete from public.parents");
  await expect(restore(["children"], "insert")).rejects.toThrow(
    /foreign key.*name that table by another --table before.*Nothing was changed/,
  );
  expect(await run("select from public.parents")).toEqual([]);
  const restored = await restore(["children", "parents"], "insert");
  expect(restored.map(({ applied }) => applied?.inserted)).toEqual([2, 1]);
  expect(restored[0]!.dependents).toEqual(["public.children"]);
});

test("tables that refer to each other are restored together", async () => {
  await run(`create table public.people (id int primary key, portrait int);
    create table public.pictures (id int primary key, owner int not null references public.people on delete cascade);
    alter table public.people add foreign key (portrait) references public.pictures on delete set null;
    insert into public.people values (1, null), (2, null), (3, null); insert into public.pictures values (10, 1), (20, 2);
    update public.people set portrait = id * 10 where id < 3`);
  await backUp();
  const people = "select id, portrait from public.people order by id";
  const before = await run(people);
  await run("delete from public.people where id = 1; delete from public.pictures where id = 20");
  expect(await run(people)).toEqual([
    { id: 2, portrait: null },
    { id: 3, portrait: null },
  ]);
  await restore(["people", "pictures"], "overwrite");
  expect(await run(people)).toEqual(before);
  expect(await counts("pictures")).toEqual({ missing: 0, different: 0, onlyHere: 0 });
});

test("triggers after the change run, and those that would change the restored row again do not", async () => {
  await run(`create table public.notes (id int primary key, body text, changed timestamptz);
    create table public.journal (line text);
    create function public.touch() returns trigger language plpgsql as $$ begin new.changed := now(); return new; end $$;
    create function public.note() returns trigger language plpgsql as
      $$ begin insert into journal values (tg_op || ' ' || new.id); return null; end $$;
    insert into public.notes values (1, 'a', '2020-01-01'), (2, 'b', '2020-01-01');
    create trigger touch before insert or update on public.notes for each row execute function public.touch();
    create trigger note after insert or update on public.notes for each row execute function public.note();
    alter table public.notes enable always trigger touch`);
  await backUp();
  await run("delete from public.notes where id = 1; update public.notes set body = 'c'; truncate public.journal");
  const [restored] = await restore(["notes"], "overwrite");
  expect(restored!.applied).toEqual({ inserted: 1, updated: 1, skippedTriggers: ["touch"] });
  expect(await counts("notes")).toEqual({ missing: 0, different: 0, onlyHere: 0 });
  expect(await run("select line from public.journal")).toEqual([{ line: "INSERT 1" }, { line: "UPDATE 2" }]);
  expect(await run("select tgenabled from pg_trigger where tgname = 'touch'")).toEqual([{ tgenabled: "A" }]);
});

test("a counter that is restored with what it counts is not counted twice, and one that stayed is", async () => {
  await run(`create table public.posts (id int primary key, likes int not null default 0, changed timestamptz);
    create table public.likes (post int references public.posts on delete cascade, who int, primary key (post, who));
    create function public.count_likes() returns trigger language plpgsql as $$ begin
      update posts set likes = likes + case tg_op when 'INSERT' then 1 else -1 end, changed = now() where id = coalesce(new.post, old.post);
      return null; end $$;
    create trigger count_likes after insert or delete on public.likes for each row execute function public.count_likes();
    insert into public.posts values (1), (2); insert into public.likes select post, who from generate_series(1, 2) as post, generate_series(1, 3) as who;
    update public.posts set changed = '2020-01-01'`);
  await backUp();
  const posts = "select id, likes from public.posts order by id";
  await run("delete from public.posts where id = 1; delete from public.likes where post = 2 and who = 1");
  expect(await run(posts)).toEqual([{ id: 2, likes: 2 }]);
  const restored = await restore(["likes", "posts"], "insert");
  expect(restored.map(({ applied }) => applied!.inserted)).toEqual([1, 4]);
  expect(await run(posts)).toEqual([
    { id: 1, likes: 3 },
    { id: 2, likes: 3 },
  ]);
  expect(await run("select from public.posts where changed = '2020-01-01'")).toHaveLength(1);
  expect(await counts("likes")).toEqual({ missing: 0, different: 0, onlyHere: 0 });
  expect(await run("select tgenabled from pg_trigger where tgname = 'count_likes'")).toEqual([{ tgenabled: "O" }]);
});

test("tables whose columns and types have the names of our own SQL are compared", async () => {
  await run(`create table public.a (a int primary key, h text, place text, content text, number int, name text, here text, "Row" text);
    insert into public.a values (1, 'h', 'p', 'c', 1, 'n', 'here', 'r'), (2, 'h', 'p', 'c', 1, 'n', 'here', 'r');
    create table public.h (a int, h text, place text, number int); insert into public.h values (1, 'x', 'y', 2)`);
  await backUp();
  await run("delete from public.a where a = 1; update public.a set h = 'i', here = null; delete from public.h");
  expect(await counts("a", "overwrite")).toEqual({ missing: 1, different: 1, onlyHere: 0 });
  expect(await counts("h", "insert")).toEqual({ missing: 1, different: 0, onlyHere: 0 });
  expect(await counts("a")).toEqual({ missing: 0, different: 0, onlyHere: 0 });
});

test("rows of another database are compared in the same way", async () => {
  const earlier = await cloneDatabase("empty");
  try {
    const definition = `create table public.parts (id int primary key, v text) partition by list (id);
      create table public.parts_1 partition of public.parts default`;
    await run(definition);
    await withClient(earlier.ownerUrl, (client) =>
      client.query(`${definition}; insert into public.parts values (1, 'a,b')`),
    );
    const source = openDatabaseSource(earlier.ownerUrl, "then");
    const options = { url: database.ownerUrl, source, tables: ["parts"], where: null };
    const [restored] = await restoreTables({ ...options, mode: "insert" });
    expect(restored!.applied).toMatchObject({ inserted: 1 });
    expect(await run("select * from public.parts")).toEqual([{ id: 1, v: "a,b" }]);
  } finally {
    await earlier.drop();
  }
});

test("only the parts that differ are read from a database, whatever the key and the columns of then and now", async () => {
  const earlier = await cloneDatabase("empty");
  try {
    const definition = `create table public.many (id int primary key, body text, gone int);
      create table public.lines (line text);
      create table public.same (id int primary key); insert into public.same values (1);
      create extension citext schema public;
      create table public.names (name public.citext primary key, n int);
      create table public.later_key (id int, v text);
      insert into public.many select n, 'body ' || n, n from generate_series(1, 50000) as n;
      insert into public.lines select 'line ' || n % 100 from generate_series(1, 1000) as n;
      insert into public.names select 'Name ' || n, n from generate_series(1, 1000) as n;
      insert into public.later_key select n, 'v' from generate_series(1, 100) as n`;
    await withClient(earlier.ownerUrl, (client) => client.query(definition));
    await run(`${definition};
      delete from public.many where id % 10000 = 7; update public.many set body = null where id % 20000 = 9;
      insert into public.many select n, 'new', 0 from generate_series(60001, 60003) as n;
      alter table public.many drop column gone; alter table public.many alter id type bigint, add column fresh int default 3;
      delete from public.lines where ctid in (select ctid from public.lines where line = 'line 5' limit 3); insert into public.lines values ('new');
      update public.names set name = upper(name::text) where n = 5; update public.names set name = 'other' where n = 6;
      alter table public.later_key add primary key (id); delete from public.later_key where id = 50`);
    const source = openDatabaseSource(earlier.ownerUrl, "then");
    const reported: string[] = [];
    const options = {
      url: database.ownerUrl,
      source,
      where: null,
      tables: ["many", "lines", "names", "later_key", "same"],
      reportRow: async ({ table, kind, json }: DifferingRow) => void reported.push(`${table} ${kind} ${json}`),
    };
    const countsOf = (restored: readonly RestoredTable[]) =>
      restored.map(({ comparison: { archived, missing, different, onlyHere } }) => [
        archived,
        missing,
        different,
        onlyHere,
      ]);
    expect(countsOf(await restoreTables({ ...options, mode: "preview" }))).toEqual([
      [50_000, 5, 3, 3],
      [1000, 3, 0, 1],
      [1000, 1, 1, 1],
      [100, 1, 0, 0],
      [1, 0, 0, 0],
    ]);
    expect(reported.filter((row) => row.startsWith('"public"."many"'))).toHaveLength(8);
    expect(reported).toContain('"public"."later_key" missing {"id":50,"v":"v"}');
    await withClient(database.ownerUrl, async (writer) => {
      await writer.query("begin; update public.same set id = 1");
      await restoreTables({ ...options, mode: "overwrite" });
    });
    expect(countsOf(await restoreTables({ ...options, mode: "preview" }))).toEqual([
      [50_000, 0, 0, 3],
      [1000, 0, 0, 1],
      [1000, 0, 1, 1],
      [100, 0, 0, 0],
      [1, 0, 0, 0],
    ]);
  } finally {
    await earlier.drop();
  }
});

test("the command previews by default, and explains what it cannot do", async () => {
  await run(
    "create table public.notes (id int primary key, body text unique); insert into public.notes values (1, 'a')",
  );
  await backUp();
  await run("delete from public.notes; create table public.later ()");
  const command = (...args: readonly string[]) => runCommand("restore", args, database);
  const preview = await command("--table", "public.notes", "--from", file);
  expect(preview).toMatchObject({ code: 0, stderr: "" });
  expect(preview.stdout).toMatch(
    /"public"\."notes", 1 row as of \S+, compared by id:\n {2}1 missing here, 0 different, 0 only here \(they stay\)\n {2}missing:\n {4}\{"id":1,"body":"a"\}\nNothing was changed\./,
  );
  expect(await command("--table", "notes", file, "--apply")).toMatchObject({
    code: 0,
    stdout: expect.stringContaining("1 row is inserted and 0 overwritten."),
  });
  await run("update public.notes set id = 2");
  expect((await command("--table", "notes", file, "--apply")).stderr).toContain("Another row has got the value since.");
  expect((await command("--table", "nothing", file)).stderr).toContain("There is no table nothing here.");
  expect((await command("--table", "later", file)).stderr).toContain('has no table "public"."later"');
  expect((await command("--table", "notes", file, "--where", "nix = 1")).stderr).toContain("--where cannot be used");
  expect(await command("--table", "notes", file, "--overwrite")).toMatchObject({ code: 2 });
  expect(await command("--table", "notes", "--at", "latest")).toMatchObject({
    code: 1,
    stderr: expect.stringContaining("pgBackRest"),
  });
});
