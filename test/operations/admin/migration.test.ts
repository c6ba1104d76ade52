import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import jwt from "jsonwebtoken";
import { beforeAll, describe, expect, test } from "vitest";
import { writeMigration } from "../../../migrate/committed-migrations.ts";
import type { DryRun } from "../../../migrate/dry-run.ts";
import { withClient } from "../../../postgres/client/with-client.ts";
import { cloneDatabase, useDatabase } from "../../database.ts";
import { useFixture, useFolder } from "../../fixture.ts";
import { startGateway } from "../../program.ts";
import { SECRET } from "../../secret.ts";
import { serve, useService } from "../../serve.ts";
import { until } from "../../until.ts";

const ADMINISTRATOR = jwt.sign({ sub: "1", role: "admin" }, SECRET);
const NOTES = `create table if not exists public.notes (id bigint primary key, note text);
alter table public.notes enable row level security;
drop policy if exists everybody on public.notes;
create policy everybody on public.notes using (true);
grant select on public.notes to anon;`;

const database = useDatabase({ template: "platform" });
const SETTINGS = { BASE_SCHEMA: "platform", STUDIO_SQL: "on" };

const rows = (sql: string, { ownerUrl } = database) =>
  withClient(ownerUrl, async (client) => (await client.query(sql)).rows);

async function ask(url: string, body: object | null, token: string | null = ADMINISTRATOR) {
  const response = await fetch(`${url}/admin/v1/migration`, {
    method: body ? "POST" : "GET",
    headers: { "content-type": "application/json", ...(token && { authorization: `Bearer ${token}` }) },
    body: body && JSON.stringify(body),
  });
  // biome-ignore lint/suspicious/noExplicitAny: the tests say what they expect of it
  return { status: response.status, body: (await response.json()) as any };
}

describe("under npm run dev", () => {
  const files = async () => (await readdir(join(folder, "current")).catch(() => [])).sort();
  const change = (body: object) => ask(program.url, body);

  const folder = useFolder("project-");
  const program = useFixture(() =>
    startGateway(database, { ...SETTINGS, MIGRATIONS_DIR: folder }, { args: ["--dev"] }),
  );

  test("the SQL becomes a file of the current migration, and the table is served when the response arrives", async () => {
    const changed = await change({ sql: NOTES, name: "create table notes" });
    expect(changed).toMatchObject({ status: 200, body: { applied: true, mode: "current", error: null } });
    expect(changed.body.file).toMatch(/current\/0010-create-table-notes\.sql$/);
    expect(await readFile(join(folder, "current/0010-create-table-notes.sql"), "utf8")).toBe(`${NOTES}\n`);
    const served = await fetch(`${program.url}/rest/v1/notes`, {
      headers: { authorization: `Bearer ${ADMINISTRATOR}`, apikey: ADMINISTRATOR },
    });
    expect(served.status).toBe(403);
    expect((await fetch(`${program.url}/api/v1/notes`)).status).toBe(200);
    const state = await ask(program.url, null);
    expect(state.body).toMatchObject({ mode: "current", how: null, committed: [], pending: [], new_file: null });
    expect(state.body.files.join()).toContain("0010-create-table-notes.sql");
    const named = await fetch(`${program.url}/admin/v1/migration?name=add%20tags`, {
      headers: { authorization: `Bearer ${ADMINISTRATOR}` },
    });
    expect(await named.json()).toMatchObject({ new_file: expect.stringMatching(/current\/0020-add-tags\.sql$/) });
    expect(await files()).toEqual(["0010-create-table-notes.sql"]);
  });

  test("SQL that fails leaves no file, and the error has its place", async () => {
    const before = await files();
    const failed = await change({ sql: "create table public.half ();\n\nselect nothing\n  from public.half;" });
    expect(failed).toMatchObject({ status: 200, body: { applied: false } });
    expect(failed.body.error).toEqual({
      message: 'column "nothing" does not exist',
      sqlstate: "42703",
      detail: null,
      hint: null,
      file: null,
      line: 3,
      column: 8,
    });
    expect(await files()).toEqual(before);
    expect(await rows("select to_regclass('public.half') as half")).toEqual([{ half: null }]);
  });

  test("changes at the same time become files one after the other", async () => {
    const names = ["one", "two", "three", "four"];
    const all = names.map((name) => change({ sql: `create table if not exists public.${name} (id int);`, name }));
    const failing = change({ sql: "create table public.five (id nonsense);", name: "five" });
    expect((await Promise.all(all)).map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    expect((await failing).body.applied).toBe(false);
    const numbered = (await files()).map((name) => name.split("-")[0]);
    expect(new Set(numbered).size).toBe(numbered.length);
    for (const name of names) {
      expect(await rows(`select to_regclass('public.${name}') is not null as there`)).toEqual([{ there: true }]);
    }
  });

  test("a file with an error comes first, and is named", async () => {
    const broken = join(folder, "current/0005-broken.sql");
    await writeFile(broken, "select\n  missing;\n");
    await until(() => program.printed().includes("0005-broken.sql:2:3"));
    const before = await files();
    const failed = await change({ sql: "create table if not exists public.late (id int);" });
    expect(failed.body.error).toMatchObject({
      message: 'column "missing" does not exist',
      line: 2,
      column: 3,
    });
    expect(failed.body.error.file).toContain("0005-broken.sql");
    expect(await files()).toEqual(before);
    await rm(broken);
    expect((await change({ sql: "create table if not exists public.late (id int);" })).body.applied).toBe(true);
  });

  test("an index can be created concurrently", async () => {
    const sql = "--! no-transaction\ncreate index concurrently if not exists notes_note on public.notes (note);";
    expect((await change({ sql, name: "index" })).body).toMatchObject({ applied: true, error: null });
    const valid = "select indisvalid as valid from pg_index where indexrelid = 'public.notes_note'::regclass";
    expect(await rows(valid)).toEqual([{ valid: true }]);
  });

  test("each change is in the audit log, with who made it, and the SQL without secrets", async () => {
    const logged = () =>
      rows(`select user_id::int as by, details ->> 'sql' as sql from auth.audit_log
        where event = 'studio.schema_changed' order by id desc limit 1`);
    await change({ sql: "comment on table public.notes is 'Logged.';" });
    expect(await logged()).toEqual([{ by: 1, sql: "comment on table public.notes is 'Logged.'" }]);
    await change({ sql: "comment on table public.notes is 'The password is secret.';" });
    expect(await logged()).toEqual([{ by: 1, sql: "comment on table public.notes is …" }]);
  });
});

describe("a dry run", () => {
  const service = useService({ database, settings: SETTINGS });
  beforeAll(async () => {
    await rows(`create table public.large (id bigint primary key, word text, parent bigint);
      insert into public.large select n, n::text from generate_series(1, 60000) as n;
      create table public.small (id bigint primary key);
      analyze public.large`);
  });

  const tried = async (sql: string): Promise<DryRun> => {
    const { status, body } = await ask(service.url, { sql, dry_run: true });
    expect([status, body.error]).toEqual([200, null]);
    return body;
  };

  test("reports what would be created and changed, and changes nothing", async () => {
    const run = await tried(`create table public.tried (id bigint primary key);
      create policy everybody on public.small using (true);
      alter table public.small add column word text default 'x' not null;
      drop view if exists public.unknown;`);
    expect(run.tried).toBe(true);
    expect(run.changes).toContainEqual(
      expect.objectContaining({
        object: "table public.tried",
        change: "created",
        added: expect.arrayContaining(["id bigint not null"]),
      }),
    );
    const small = run.changes.find(({ object }) => object === "table public.small")!;
    expect(small.change).toBe("changed");
    expect(small.added).toContain("word text default 'x'::text not null");
    expect(small.added.join()).toContain("create policy everybody on public.small");
    expect(run.locks).toContainEqual({
      table: "public.small",
      mode: "access exclusive",
      blocks: "reads and writes",
      rows: 0,
    });
    expect(run.warnings).toEqual([]);
    expect(await rows("select to_regclass('public.tried') as tried")).toEqual([{ tried: null }]);
  });

  test.each([
    [
      "a column that is not null and has no default",
      "alter table public.small add column w text not null",
      /no default/,
    ],
    ["a column that is lost", "alter table public.large drop column word", /Column word is dropped/],
    ["a table that is lost", "drop table public.large", /dropped with its 60000 rows/],
    ["rows that are lost", "truncate public.large", /All rows of public.large are deleted/],
  ])("warns of %s", async (_, sql, warning) => {
    const { warnings } = await tried(sql);
    expect(warnings.join("\n")).toMatch(warning);
  });

  test("has the verdicts and safe forms of a rehearsal", async () => {
    const run = await tried(`comment on table public.large is 'Large.';
      create index on public.large (word);
      alter table public.large add foreign key (parent) references public.large;
      alter table public.large add check (id > 0);
      alter table public.large alter column word set not null;
      alter table public.large alter column id type numeric;`);
    expect(run.statements.map(({ line, verdict }) => [line, verdict])).toEqual([
      [1, "safe"],
      [2, "holds writes"],
      [3, "holds writes"],
      [4, "holds reads"],
      [5, "holds reads"],
      [6, "rewrites"],
    ]);
    const forms = run.statements.map(({ safeForm }) => safeForm);
    expect(forms[0]).toBeNull();
    expect(forms[1]).toContain("concurrently");
    expect(run.statements[1]).toMatchObject({
      locks: [{ relation: "public.large", mode: "ShareLock" }],
      scanned: [{ relation: "public.large", rows: 60_000 }],
    });
  });

  test("does not warn of a foreign key that is not valid yet", async () => {
    const sql = "alter table public.large add foreign key (parent) references public.large not valid";
    const { warnings, statements } = await tried(sql);
    expect([warnings, statements.map(({ verdict }) => verdict)]).toEqual([[], ["brief"]]);
  });

  test("counts the rows that roles see, before and after", async () => {
    await rows(`create table public.seen (id int);
      insert into public.seen values (1), (2);
      alter table public.seen enable row level security;
      grant select on public.seen to service_role, anon`);
    const { body } = await ask(service.url, {
      sql: "create policy one on public.seen using (id = 1)",
      dry_run: true,
      count_rows: {
        table: { schema: "public", name: "seen" },
        roles: ["anon", "authenticated", "service_role", "nobody"],
      },
    });
    expect(body.visible).toEqual([
      { role: "anon", before: 0, after: 1 },
      { role: "authenticated", before: null, after: null },
      { role: "service_role", before: 2, after: 2 },
      { role: "nobody", before: null, after: null },
    ]);
    const unreadable = await ask(service.url, { sql: "select 1", dry_run: true, count_rows: { roles: [] } });
    expect(unreadable.status).toBe(400);
  });

  test("cannot be ended by its statements", async () => {
    for (const end of ["commit", "/* */ rollback", "end", "savepoint x", "prepare transaction 'x'"]) {
      const failed = await ask(service.url, { sql: `create table public.kept ();\n${end};`, dry_run: true });
      expect(failed.body.error).toMatchObject({
        sqlstate: null,
        line: 2,
        message: expect.stringContaining("transaction"),
      });
    }
    const inside = await ask(service.url, { sql: "do $$ begin commit; end $$;", dry_run: true });
    expect(inside.body.error.message).toContain("invalid transaction termination");
    expect(await rows("select to_regclass('public.kept') as kept")).toEqual([{ kept: null }]);
  });

  test("of a statement that returns many rows does not take the memory", async () => {
    const before = process.memoryUsage().rss;
    const sql = "select repeat('x', 1000) || n from generate_series(1, 500000) as n";
    expect(await tried(sql)).toMatchObject({ tried: true, changes: [] });
    expect(process.memoryUsage().rss - before).toBeLessThan(300 * 1024 * 1024);
  });

  test("says that a statement which refuses a transaction was not tried", async () => {
    const sql = "--! no-transaction\ncreate index concurrently on public.large (word);";
    expect(await tried(sql)).toMatchObject({ tried: false, changes: [], statements: [{ line: 2, verdict: "safe" }] });
    const failed = await ask(service.url, { sql: "create index concurrently on public.large (word)", dry_run: true });
    expect(failed.body.error.hint).toContain("--! no-transaction");
  });
});

describe("without npm run dev", () => {
  test("SQL is run in one transaction where the project has no migrations", async () => {
    await using own = await cloneForService();
    expect((await ask(own.url, null)).body).toMatchObject({ mode: "run", how: null });
    expect(await ask(own.url, { sql: NOTES })).toMatchObject({ status: 200, body: { mode: "run", file: null } });
    expect((await fetch(`${own.url}/api/v1/notes`)).status).toBe(200);
    const failed = await ask(own.url, { sql: "create table public.half ();\nselect 1 / 0;" });
    expect(failed.body.error).toMatchObject({ message: "division by zero", line: 2, column: 1 });
    expect(await rows("select to_regclass('public.half') as half", own.database)).toEqual([{ half: null }]);
  });

  test("SQL is refused where there are migrations, in files or in the database", async () => {
    const folder = await mkdtemp(join(tmpdir(), "project-"));
    await mkdir(join(folder, "current"));
    await writeFile(join(folder, "current/0010-notes.sql"), NOTES);
    {
      await using own = await cloneForService({ MIGRATIONS_DIR: folder });
      const refused = await ask(own.url, { sql: "create table public.hidden ();" });
      expect(refused).toMatchObject({ status: 409, body: { error: { code: "MIGRATIONS_REQUIRED" } } });
      expect((await ask(own.url, null)).body).toMatchObject({
        mode: "off",
        how: expect.stringContaining("npm run dev"),
      });
      expect(await rows("select to_regclass('public.hidden') as hidden", own.database)).toEqual([{ hidden: null }]);
      expect((await ask(own.url, { sql: "create table public.hidden ();", dry_run: true })).status).toBe(200);
    }
    const { text, hash } = writeMigration({ previous: null, message: "notes", body: NOTES });
    {
      await using own = await cloneForService();
      await rows(
        `insert into graphile_migrate.histories (history, hash, filename) values ('project', '${hash}', '000001-notes.sql')`,
        own.database,
      );
      expect((await ask(own.url, null)).body).toMatchObject({ mode: "off", committed: [] });
    }
    expect(text).toContain(hash);
    await rm(folder, { recursive: true });
  });

  test("nothing is run with STUDIO_SQL=false, nor for others than administrators", async () => {
    await using own = await cloneForService({ STUDIO_SQL: "off" });
    expect((await ask(own.url, null)).body).toMatchObject({ mode: "off", how: "Set STUDIO_SQL=true." });
    for (const dry_run of [true, false]) {
      expect((await ask(own.url, { sql: "select 1", dry_run })).status).toBe(403);
    }
    const token = (role: string) => jwt.sign({ sub: "1", role }, SECRET);
    const statuses = [null, token("authenticated"), token("service_role")].map((each) => ask(own.url, null, each));
    expect((await Promise.all(statuses)).map(({ status }) => status)).toEqual([401, 403, 403]);
  });
});

/** A service on a database of its own. */
async function cloneForService(settings: NodeJS.ProcessEnv = {}) {
  const own = await cloneDatabase("platform");
  const { url, stop } = await serve(own, { ...SETTINGS, ...settings });
  return {
    url,
    database: own,
    async [Symbol.asyncDispose]() {
      await stop();
      await own.drop();
    },
  };
}
