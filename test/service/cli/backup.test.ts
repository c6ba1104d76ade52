import { chmod, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { allTables, setPortableFormats } from "../../../cluster/archive/content/content-tables.ts";
import { insertRows } from "../../../cluster/archive/content/restore-rows.ts";
import { restoreArchive } from "../../../cluster/archive/restore-archive.ts";
import { writeArchive } from "../../../cluster/archive/write-archive.ts";
import { withOldCluster } from "../../../cluster/upgrade-cluster.ts";
import { runMigrations } from "../../../migrate/migrate.ts";
import { withClient } from "../../../postgres/client/with-client.ts";
import { cloneDatabase, type TestDatabase, urlOf } from "../../database.ts";
import { hasOldPostgres, makeOldCluster, OLD_BINARIES, OLD_MAJOR } from "../../old-cluster.ts";
import { serve } from "../../serve.ts";
import { runCommand, runCommandWith, runWithoutDatabase } from "./run-command.ts";

const ROWS = `
  insert into public.users (id, name, email, age) overriding system value values (41, 'Ann', 'ann@example.com', null);
  insert into public.articles (title, content, author_id, tags)
    select 'Number ' || n || ' of many', E'tab\\t "quoted" \\\\ (line\\nbreak\\r, \\u2028, \\u2029, \\u0085), ünï', 41, array['a', 'b,c', '"d"', '']
      from generate_series(1, 1200) as n`;
/** No migration makes it. */
const ODD_TABLE = `
  create table public.odd (
    id bigint generated always as identity primary key, twice bigint generated always as (size * 2) stored, size bigint,
    number numeric, float float8, bytes bytea, at timestamptz, span interval, many text[], doc jsonb, nothing text)`;
/** Values that a careless copy would change. */
const ODD_ROWS = `
  insert into public.odd (size, number, float, bytes, at, span, many, doc) values
    (4503599627370497, 'NaN', '-Infinity', '\\x00ff', '2024-02-29 23:59:59.999999+14', '1 mon -1 day',
     '{NULL,"NULL",","}', '{"a": [1e40, null]}'),
    (null, 0.10, 1e-300, '', 'infinity', '-00:00:00.000001', '{}', '"\\\\ \\" é"')`;

/** Digests of the rows of every table, which differ if any row does. */
const DIGEST = `
  select table_schema || '.' || table_name as name, (xpath('/row/d/text()', query_to_xml(format(
      'select md5(coalesce(string_agg(t::text, chr(10) order by t::text), '''')) as d from only %I.%I t',
      table_schema, table_name), false, true, '')))[1]::text as digest
    from information_schema.tables
   where table_type = 'BASE TABLE' and table_schema !~ '^pg_'
     and table_schema not in ('information_schema', 'graphile_migrate', 'graphile_worker')
   order by 1`;

const digests = (url: string) => withClient(url, async (client) => (await client.query(DIGEST)).rows);

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "backup-"));
  await chmod(folder, 0o755);
});
afterEach(() => rm(folder, { recursive: true, force: true }));

describe("a database", () => {
  let source: TestDatabase;
  let target: TestDatabase;

  beforeEach(async () => {
    [source, target] = [await cloneDatabase("content"), await cloneDatabase("empty")];
    await withClient(source.ownerUrl, (client) => client.query(ROWS));
  });
  afterEach(async () => {
    await source.drop();
    await target.drop();
  });

  test("can be moved into the embedded Postgres and back, and is served unchanged", async () => {
    const [first, second] = [join(folder, "first.gz"), join(folder, "second.gz")];
    const embedded = { DATA_DIR: join(folder, "data") };
    expect(await runCommand("backup", [first], source)).toMatchObject({ code: 0 });
    expect((await stat(first)).mode & 0o777).toBe(0o600);
    expect(await runWithoutDatabase("restore", [first], embedded)).toMatchObject({ code: 0 });
    const result = await runWithoutDatabase("backup", [second], embedded);
    expect(result).toMatchObject({ code: 0, stdout: expect.stringContaining("secrets.json") });
    expect(await runCommand("restore", [second], target)).toMatchObject({ code: 0 });
    expect(await digests(target.ownerUrl)).toEqual(await digests(source.ownerUrl));

    const service = await serve(target);
    try {
      const post = { method: "POST", headers: { "Content-Type": "application/json" } };
      expect(await (await fetch(`${service.url}/users/41`)).json()).toMatchObject({ name: "Ann" });
      const body = JSON.stringify({ name: "Bob", email: "bob@example.com" });
      expect((await fetch(`${service.url}/users`, { ...post, body })).status).toBe(201);
    } finally {
      await service.stop();
    }
    // The foreign keys hold again.
    await expect(
      withClient(target.ownerUrl, (client) => client.query("update public.articles set author_id = 99")),
    ).rejects.toMatchObject({ code: "23503" });
  });

  test("is checked and restored with tables that no migration creates, and rows that violate a constraint that is not valid", async () => {
    const file = join(folder, "content.gz");
    await withClient(source.ownerUrl, async (client) => {
      await client.query(`${ODD_TABLE}; ${ODD_ROWS}; create table public."Odd one" (id int)`);
      await client.query("alter table public.users drop constraint users_name_present");
      await client.query("insert into public.users (name, email) values (e'\\t', 'blank@example.com')");
      await client.query("alter table public.users add constraint users_name_present check (name ~ '\\S') not valid");
      await client.query("comment on constraint users_name_present on public.users is 'Give a name.'");
    });
    const nowhere = join(folder, "no/such.gz");
    expect((await runCommand("backup", [nowhere], source)).stderr).toBe(`${nowhere} cannot be written: ENOENT.\n`);
    expect(await runCommand("backup", [file], source)).toMatchObject({ code: 0, stderr: "" });

    const databases = `select datname from pg_database where datname like '${source.name}%'`;
    const rootUrl = urlOf("postgres", "postgres");
    const before = await withClient(rootUrl, async (client) => (await client.query(databases)).rows);
    const checked = await runCommand("restore", ["--check", file], source);
    expect(checked).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(/^\d+ rows of \d+ tables can be restored/),
    });
    expect(await withClient(rootUrl, async (client) => (await client.query(databases)).rows)).toEqual(before);

    expect(await runCommand("restore", [file], target)).toMatchObject({ code: 0, stderr: "" });
    expect(await digests(target.ownerUrl)).toEqual(await digests(source.ownerUrl));
    const blank = "insert into public.users (name, email) values (' ', 'other@example.com')";
    await expect(withClient(target.ownerUrl, (client) => client.query(blank))).rejects.toMatchObject({
      constraint: "users_name_present",
    });
    const advice = `select obj_description(oid, 'pg_constraint') from pg_constraint where conname = 'users_name_present'`;
    expect(await withClient(target.ownerUrl, async (client) => (await client.query(advice)).rows)).toEqual([
      { obj_description: "Give a name." },
    ]);
  });

  test("with an object that a backup cannot contain is not backed up", async () => {
    await withClient(source.ownerUrl, (client) =>
      client.query("create conversion public.odd for 'UTF8' to 'LATIN1' from utf8_to_iso8859_1"),
    );
    const result = await runCommand("backup", [join(folder, "content.gz")], source);
    expect(result).toMatchObject({ code: 1, stderr: expect.stringContaining("conversion public.odd") });
    expect(await readdir(folder)).toEqual([]);
  });

  test("is not restored into a database with tables, or from a truncated file", async () => {
    const file = join(folder, "content.gz");
    const settingsOf = ({ name, ownerUrl }: TestDatabase) => {
      return { url: ownerUrl, shadowUrl: urlOf("postgres", `${name}_shadow`), rootUrl: urlOf("postgres", "postgres") };
    };
    await writeArchive(source.ownerUrl, file);
    const before = await digests(source.ownerUrl);
    await expect(restoreArchive(file, settingsOf(source))).rejects.toThrow("is not empty");
    expect(await digests(source.ownerUrl)).toEqual(before);

    const half = join(folder, "half.gz");
    await writeFile(half, (await readFile(file)).subarray(0, 2_000));
    await writeFile(join(folder, "letter.txt"), "Dear Ann");
    for (const name of [half, join(folder, "letter.txt"), join(folder, "missing.gz")]) {
      await expect(restoreArchive(name, settingsOf(target))).rejects.toThrow(
        /not a backup of this service|File not found/,
      );
    }
    expect(await digests(target.ownerUrl)).toEqual([]);
  });
});

test("values are restored exactly", async () => {
  await using stack = new AsyncDisposableStack();
  const source = await cloneDatabase("empty");
  stack.defer(() => source.drop());
  await withClient(source.ownerUrl, async (client) => {
    await client.query(`${ODD_TABLE};${ODD_ROWS}`);
    await setPortableFormats(client);
    const [table] = await allTables(client);
    expect(table).toMatchObject({ table: '"public"."odd"', generated: ["twice"] });
    const all = async () => (await client.query("select t::text as row from public.odd t")).rows.map(({ row }) => row);
    const before = await all();
    await client.query("delete from public.odd");
    await insertRows(client, table!, before);
    expect(await all()).toEqual(before);
    expect(before[0]).toContain("NaN");
  });
});

describe("an embedded database", () => {
  test.runIf(hasOldPostgres)(
    `of Postgres ${OLD_MAJOR}, with tables of one's own, is upgraded, and the original cluster stays unchanged`,
    async () => {
      const dataDir = join(folder, "data");
      const old = join(dataDir, "postgres");
      await makeOldCluster(old);
      const objects = await readFile(new URL("../../cluster/archive/own-objects.sql", import.meta.url), "utf8");
      const before = await withOldCluster(old, OLD_BINARIES, async (url) => {
        await withClient(url("postgres"), (client) => client.query("create database content"));
        const settings = { url: url("content"), shadowUrl: url("shadow"), rootUrl: url("postgres") };
        await runMigrations({ name: "migrate" }, settings);
        await withClient(url("content"), (client) => client.query(ROWS));
        await withClient(url("content"), (client) => client.query(objects));
        return digests(url("content"));
      });
      const refused = await runCommandWith("sql", ["select 1"], { DATA_DIR: dataDir });
      expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining("npm run upgrade") });

      const result = await runCommandWith("upgrade", [], { DATA_DIR: dataDir });
      expect(result).toMatchObject({ code: 0 });
      const again = await runCommandWith("upgrade", [], { DATA_DIR: dataDir });
      expect(again).toMatchObject({ code: 0, stdout: expect.stringContaining("Nothing to upgrade") });
      expect((await readFile(join(old, "PG_VERSION"), "utf8")).trim()).toBe("18");
      const query = `select (select count(*) from public.articles) as articles, (select name from shop.report limit 1) as name,
        (select count(*) from pg_policies where schemaname = 'shop') as policies`;
      const counted = await runCommandWith("sql", [query], { DATA_DIR: dataDir });
      expect(counted.stdout).toMatch(/1200 +Ann +2/);
      const kept = await withOldCluster(join(dataDir, `postgres-${OLD_MAJOR}`), OLD_BINARIES, (url) =>
        digests(url("content")),
      );
      expect(kept).toEqual(before);

      // The check uses an embedded Postgres of its own, of the present version.
      const file = join(dataDir, `postgres-${OLD_MAJOR}.backup.gz`);
      const checked = await runCommandWith("restore", ["--check", file], { DATA_DIR: join(folder, "other") });
      expect(checked).toMatchObject({ code: 0, stdout: expect.stringContaining("can be restored") });
      expect(await readdir(folder)).toEqual(["data"]);
    },
  );
});
