import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { afterEach, beforeEach, expect, test } from "vitest";
import { applyCommitted } from "../../migrate/apply-migrations.ts";
import { committedMigrations, type MigrationHistory, writeMigration } from "../../migrate/committed-migrations.ts";
import { runMigrations } from "../../migrate/migrate.ts";
import { rehearseMigrations } from "../../migrate/rehearse.ts";
import { cloneDatabase, type TestDatabase, urlOf } from "../database.ts";

let database: TestDatabase;
let client: pg.Client;
let folder: string;
let history: MigrationHistory;
beforeEach(async () => {
  database = await cloneDatabase("empty");
  client = new pg.Client({ connectionString: database.ownerUrl });
  await client.connect();
  folder = await mkdtemp(join(tmpdir(), "migrations-"));
  history = { name: "project", folder: join(folder, "migrations") };
});
afterEach(async () => {
  await client.end();
  await database.drop();
  await rm(folder, { recursive: true });
});

function settings() {
  return {
    url: database.ownerUrl,
    shadowUrl: urlOf("postgres", `${database.name}_shadow`),
    rootUrl: urlOf("postgres", "postgres"),
    histories: [history],
  };
}

/** Writes the migrations as committed ones. */
async function commitFiles(bodies: readonly string[]): Promise<void> {
  await mkdir(join(history.folder, "committed"), { recursive: true });
  let previous: string | null = null;
  for (const [index, body] of bodies.entries()) {
    const { hash, text } = writeMigration({ previous, message: null, body });
    await writeFile(join(history.folder, "committed", `${String(index + 1).padStart(6, "0")}.sql`), text);
    previous = hash;
  }
}

function migrate(): Promise<void> {
  return applyCommitted(database.ownerUrl, urlOf("postgres", "postgres"), [history]);
}

async function values(sql: string): Promise<unknown[]> {
  return (await client.query({ text: sql, rowMode: "array" })).rows.flat();
}

test("a commit in a migration commits: a value of an enumeration can be used after it", async () => {
  await commitFiles([
    "create type mood as enum ('sad');",
    `alter type mood add value 'glad'; commit;
     begin; select set_config('request.jwt.claims', '{"sub": 1}', true);
     create table people (mood mood default 'glad'); insert into people default values; commit;
     insert into people select 'sad' where current_setting('request.jwt.claims', true) = '';`,
    "insert into people values ('glad');",
  ]);
  await migrate();
  expect(await values("select mood::text from people")).toEqual(["glad", "sad", "glad"]);
  expect(await values("select filename from graphile_migrate.histories order by filename")).toEqual([
    "000001.sql",
    "000002.sql",
    "000003.sql",
  ]);
  expect(await values("select count(*)::int from graphile_migrate.committed_transactions")).toEqual([0]);
});

test("a rollback in a migration takes back what stands before it", async () => {
  await commitFiles(["create table a (); rollback; create table b (); begin; create table c (); rollback;"]);
  await migrate();
  const present = "select relname::text from pg_class where relname in ('a', 'b', 'c')";
  expect(await values(present)).toEqual([]);
  expect(await values("select count(*)::int from graphile_migrate.histories")).toEqual([1]);
});

test("what is committed of a file that fails stays and is said, and the next run goes on after it", async () => {
  await client.query("create role editing_role");
  await commitFiles([
    `create table a (id int);
set search_path = '';
set role editing_role;
commit;
reset role;
create table public.b ();
insert into nothing values (1);`,
  ]);
  await expect(migrate()).rejects.toThrow(
    /:10:13: relation "nothing" does not exist[\s\S]*What stands up to line 7 is committed, and stays\. The next run continues after it\./,
  );
  expect(await values("select to_regclass('a') is not null, to_regclass('b') is not null")).toEqual([true, false]);
  expect(await values("select count(*)::int from graphile_migrate.histories")).toEqual([0]);

  const file = join(history.folder, "committed/000001.sql");
  const text = await readFile(file, "utf8");
  const body = text.slice(text.indexOf("\n\n") + 2);
  await commitFiles([body.replace("id int", "id bigint")]);
  await expect(migrate()).rejects.toThrow("failed after 1 of its transactions were committed");
  await commitFiles([body.replace("insert into nothing", "create view c as")]);
  // The empty search path of the first transaction is that of the second one.
  await expect(migrate()).rejects.toThrow("no schema has been selected to create in");
  await commitFiles([body.replace("insert into nothing", "create view public.c as")]);
  await migrate();
  expect(await values("select to_regclass('b') is not null, to_regclass('c') is not null")).toEqual([true, true]);
  expect(await values("select count(*)::int from graphile_migrate.committed_transactions")).toEqual([0]);
  await client.query("drop role editing_role");
});

test("a constraint that fails at a commit is an error of its transaction", async () => {
  await commitFiles([
    `create table a (id int unique deferrable initially deferred);
commit;
insert into a values (1), (1);
commit;
insert into a values (2);`,
  ]);
  await expect(migrate()).rejects.toThrow(/:6:1: duplicate key[\s\S]*up to line 5 is committed/);
  expect(await values("select count(*)::int from a")).toEqual([0]);
});

test("a rehearsal of a file that has failed begins after what is committed", async () => {
  await commitFiles(["create table a (); commit; create table b (id nothing);"]);
  await expect(migrate()).rejects.toThrow('type "nothing" does not exist');
  await commitFiles(["create table a (); commit; create table b (id int);"]);
  const rehearsed = await rehearseMigrations(settings(), { originalUrl: null, withRows: false });
  expect(rehearsed.map(({ sql }) => sql)).toEqual(["create table b (id int)"]);
});

test("files of current/ and the seed keep their transactions too", async () => {
  await mkdir(join(history.folder, "current"), { recursive: true });
  const file = join(history.folder, "current/0010-moods.sql");
  const start = `drop table if exists people; drop type if exists mood; create type mood as enum ('sad'); commit;
alter type mood add value 'glad'; commit; create table people (mood mood);`;
  await writeFile(file, `${start}\ninsert into people values ('bad');`);
  await expect(runMigrations({ name: "current" }, settings())).rejects.toThrow(
    /0010-moods\.sql:3:28: invalid input value[\s\S]*What stands up to line 2 is committed, and stays\./,
  );
  await writeFile(file, `${start}\ninsert into people values ('glad');`);
  await runMigrations({ name: "current" }, settings());
  expect(await values("select mood::text from people")).toEqual(["glad"]);
  await runMigrations({ name: "commit", message: "moods", history: "project" }, settings());
  expect(await values("select mood::text from people")).toEqual(["glad"]);
  expect(await committedMigrations(history)).toHaveLength(1);

  await writeFile(
    join(folder, "seed.sql"),
    "insert into people values ('sad');\ncommit;\ninsert into people values ('bad');",
  );
  await expect(runMigrations({ name: "seed" }, settings())).rejects.toThrow(
    /seed\.sql:3:28: invalid input value[\s\S]*What stands up to line 2 is committed, and stays\./,
  );
  expect(await values("select mood::text from people")).toEqual(["glad", "sad"]);
});

test("a migration is recorded whatever it leaves of the settings of its session", async () => {
  await client.query("create role editing_role");
  await client.query("grant create on schema public to editing_role");
  await commitFiles([
    "create table a (); reset all;",
    "create table b (); do $$ begin execute 'reset all'; end $$;",
    "create table c (); set search_path = ''; set role editing_role;",
    "create table d (); set session authorization editing_role;",
    "create table e ();",
  ]);
  await migrate();
  const recorded = "select history || ' ' || filename from graphile_migrate.histories order by filename";
  expect(await values(recorded)).toEqual([1, 2, 3, 4, 5].map((number) => `project 00000${number}.sql`));
  expect(
    await values("select relname::text from pg_class where relname in ('a', 'b', 'c', 'd', 'e') order by 1"),
  ).toEqual(["a", "b", "c", "d", "e"]);
  await client.query("drop owned by editing_role; drop role editing_role");
});

test("a file of current/ leaves its role behind neither in its record nor to the next file", async () => {
  await client.query("create role editing_role");
  await client.query("grant create on schema public to editing_role");
  await mkdir(join(history.folder, "current"), { recursive: true });
  await writeFile(
    join(history.folder, "current/0010-a.sql"),
    "drop table if exists a; create table a (); set role editing_role;",
  );
  await writeFile(join(history.folder, "current/0020-b.sql"), "drop table if exists b; create table b ();");
  await runMigrations({ name: "current" }, settings());
  expect(await values("select filename from graphile_migrate.current order by filename")).toEqual([
    "project/0010-a.sql",
    "project/0020-b.sql",
  ]);
  expect(
    await values("select distinct tableowner = current_user from pg_tables where tablename in ('a', 'b')"),
  ).toEqual([true]);
  await client.query("drop owned by editing_role; drop role editing_role");
});
