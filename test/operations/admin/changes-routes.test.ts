import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { request } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { displayPath, writeMigration } from "../../../migrate/committed-migrations.ts";
import { runMigrations } from "../../../migrate/migrate.ts";
import { type MigrationWatch, watchMigrations } from "../../../migrate/watch-migrations.ts";
import { withClient } from "../../../postgres/client/with-client.ts";
import { cloneDatabase, urlOf, useDatabase } from "../../database.ts";
import { useFixture, useFolder } from "../../fixture.ts";
import { serve } from "../../serve.ts";
import { until } from "../../until.ts";
import { tokenFor } from "./operated-service.ts";

const ADMINISTRATOR = tokenFor({ sub: "1", role: "admin" });
const NOTES = `create table public.notes (id bigint primary key, note text);
insert into public.notes select n, n::text from generate_series(1, 20000) as n;
grant select on public.notes to anon;`;

let watch: MigrationWatch | null = null;

const database = useDatabase({ template: "empty" });
const folder = useFolder("project-");
beforeAll(() => mkdir(join(folder, "current")));
const service = useFixture(() => serve(database, settings(), { migrationWatch: () => watch }));
beforeAll(async () => {
  await rows(`${NOTES}; analyze public.notes`);
});
afterAll(() => watch?.stop());

const settings = (others: NodeJS.ProcessEnv = {}) => ({
  STUDIO_SQL: "on",
  BASE_SCHEMA: "none",
  MIGRATIONS_DIR: folder,
  ...others,
});
const shadowName = () => `${database.name}_shadow`;

function rows(sql: string, url = database.ownerUrl) {
  return withClient(url, async (client) => (await client.query(sql)).rows);
}

async function send(path: string, body?: object, { url } = service) {
  const response = await fetch(`${url}/admin/v1/migrations${path}`, {
    method: body ? "POST" : "GET",
    headers: { "content-type": "application/json", authorization: `Bearer ${ADMINISTRATOR}` },
    ...(body && { body: JSON.stringify(body) }),
  });
  // biome-ignore lint/suspicious/noExplicitAny: the tests say what they expect of it
  return { status: response.status, body: (await response.json()) as any };
}

const write = (name: string, sql: string) => writeFile(join(folder, "current", name), sql);

describe("files of current/ that the database has not applied", () => {
  beforeAll(() =>
    write(
      "0010-index.sql",
      "create index if not exists notes_note on public.notes (note);\ndrop table public.notes;\n",
    ),
  );
  afterAll(() => rm(join(folder, "current/0010-index.sql")));

  test("are pending, with their SQL", async () => {
    const { status, body } = await send("");
    expect(status).toBe(200);
    expect(body).toMatchObject({ refusal: null, commands: { rehearse: "npm run migrate -- rehearse" } });
    expect(body.pending).toEqual([
      {
        history: "project",
        name: "0010-index.sql",
        file: expect.stringMatching(/current\/0010-index\.sql$/),
        is_current: true,
        is_applied: false,
        sql: expect.stringMatching(/^create index/),
      },
    ]);
  });

  test("are rehearsed on a copy of the database, with its number of rows", async () => {
    for (const with_rows of [false, true]) {
      const { status, body } = await send("/rehearsal", { with_rows });
      expect([status, body.error, body.basis]).toEqual([200, null, "database"]);
      const [index, drop] = body.statements;
      expect(index).toMatchObject({
        line: 1,
        verdict: "holds writes",
        safeForm: expect.stringContaining("concurrently"),
        scanned: [{ relation: "public.notes", rows: 20_000 }],
        undo: null,
      });
      expect(drop.undo.verdict).toBe("cannot be undone");
    }
    expect(await rows("select count(*)::int as count from public.notes")).toEqual([{ count: 20_000 }]);
    expect(await rows(`select from pg_database where datname = '${shadowName()}'`)).toEqual([]);
  });

  test("are compared on each interface, also as Markdown", async () => {
    const { status, body } = await send("/diff", {});
    expect([status, body.error]).toEqual([200, null]);
    const lost = body.changes.filter(({ level }: { level: string }) => level === "breaking");
    expect(new Set(lost.map(({ surface }: { surface: string }) => surface))).toEqual(
      new Set(["graphql", "openapi", "tables", "types"]),
    );
    expect(body.markdown).toContain("### GraphQL");
  });

  test("have the place of their error", async () => {
    await write("0020-wrong.sql", "select 1;\nselect\n  missing;\n");
    for (const path of ["/rehearsal", "/diff"]) {
      const { status, body } = await send(path, {});
      expect([status, body.error]).toMatchObject([200, { sqlstate: "42703", line: 3, column: 3 }]);
      expect(body.error.file).toContain("0020-wrong.sql");
    }
    await rm(join(folder, "current/0020-wrong.sql"));
  });
});

describe("a rehearsal that lasts", () => {
  const sleeping = `select from pg_stat_activity where query like '%pg_sleep(3600)%' and datname = `;
  const isWorking = async () => (await rows(`${sleeping}'${shadowName()}'`)).length > 0;
  beforeAll(() => write("0010-sleep.sql", "select pg_sleep(3600);\n"));
  afterAll(() => rm(join(folder, "current/0010-sleep.sql")));

  test.each(["/rehearsal", "/diff"])(
    "refuses another one, and ends with the connection of its client: %s",
    async (lasts) => {
      const { promise, resolve } = Promise.withResolvers<void>();
      const lasting = request(`${service.url}/admin/v1/migrations${lasts}`, {
        method: "POST",
        headers: { "content-type": "application/json", authorization: `Bearer ${ADMINISTRATOR}` },
      });
      lasting.on("error", () => resolve());
      lasting.end("{}");
      await until(isWorking);
      for (const path of ["/rehearsal", "/diff"]) {
        const second = await send(path, {});
        expect(second).toMatchObject({ status: 409, body: { error: { code: "STATE_CONFLICT" } } });
        expect(second.body.error.message).toContain("is used by another command");
      }
      lasting.destroy();
      await promise;
      await until(async () => (await rows(`select from pg_database where datname = '${shadowName()}'`)).length === 0);
      expect(await isWorking()).toBe(false);
    },
  );
});

describe("files of current/ that are applied, as under npm run dev", () => {
  beforeAll(async () => {
    await write("0010-likes.sql", "create table if not exists public.likes (id int primary key);\n");
    await write(
      "0020-column.sql",
      "alter table public.likes add column if not exists note text default 'x';\nalter table public.likes alter note set not null;\n",
    );
    watch = watchMigrations(service.postgres.migrate, () => {});
    await watch.begun;
  });

  test("stay pending, and are rehearsed and compared on the committed migrations", async () => {
    const { body } = await send("");
    expect(body.pending.map(({ name, is_applied }: Record<string, unknown>) => [name, is_applied])).toEqual([
      ["0010-likes.sql", true],
      ["0020-column.sql", true],
    ]);
    const rehearsal = await send("/rehearsal", {});
    expect(rehearsal.body).toMatchObject({ error: null, basis: "committed migrations" });
    expect(rehearsal.body.statements.map(({ line }: { line: number }) => line)).toEqual([1, 1, 2]);
    expect(rehearsal.body.statements.at(-1).undo).toEqual({
      verdict: "can be undone",
      sql: "drop table public.likes;",
      drops: ["table public.likes"],
    });
    const diff = await send("/diff", {});
    expect(diff.body.changes).toContainEqual(expect.objectContaining({ object: expect.stringContaining("likes") }));
  });

  test("cannot be rehearsed with rows", async () => {
    expect(await send("/rehearsal", { with_rows: true })).toMatchObject({
      status: 409,
      body: { error: { code: "STATE_CONFLICT", message: expect.stringContaining("without rows") } },
    });
  });
});

test("files are known as applied where no migration is committed", async () => {
  const other = await cloneDatabase("empty");
  const own = await mkdtemp(join(tmpdir(), "project-"));
  await mkdir(join(own, "current"));
  await writeFile(join(own, "current/0010-notes.sql"), "create table if not exists public.notes (id int primary key);");
  const served = await serve(other, settings({ MIGRATIONS_DIR: own }));
  try {
    expect((await send("", undefined, served)).body).toMatchObject({ pending: [{ is_applied: false }], applied: [] });
    const developed = watchMigrations(served.postgres.migrate, () => {});
    await developed.begun;
    await developed.stop();
    expect((await send("", undefined, served)).body.pending).toMatchObject([{ is_applied: true }]);
    const { body } = await send("/rehearsal", {}, served);
    expect(body).toMatchObject({ basis: "committed migrations", statements: [{ verdict: "safe" }] });
  } finally {
    await served.stop();
    await other.drop();
    await rm(own, { recursive: true });
  }
});

test("a committed migration that is not applied is pending, applied ones have their times, and one that was changed is a conflict", async () => {
  const other = await cloneDatabase("platform");
  const own = await mkdtemp(join(tmpdir(), "project-"));
  const served = await serve(other, settings({ MIGRATIONS_DIR: own, BASE_SCHEMA: "platform" }));
  try {
    await mkdir(join(own, "committed"));
    const { text } = writeMigration({ previous: null, message: "notes", body: "create table public.notes ();" });
    await writeFile(join(own, "committed/000001-notes.sql"), text);
    const { body } = await send("", undefined, served);
    expect(body.pending).toMatchObject([
      {
        history: "project",
        name: "000001-notes.sql",
        is_current: false,
        is_applied: false,
        sql: "create table public.notes ();",
      },
    ]);
    expect(body.applied.length).toBeGreaterThan(5);
    expect(body.applied[0].history).toBe("platform");
    expect(Date.parse(body.applied[0].applied_at)).not.toBeNaN();
    await writeFile(join(own, "committed/000001-notes.sql"), `${text}\n-- changed\n`);
    expect(await send("", undefined, served)).toMatchObject({
      status: 409,
      body: { error: { code: "STATE_CONFLICT" } },
    });
  } finally {
    await served.stop();
    await other.drop();
    await rm(own, { recursive: true });
  }
});

test("the last migration says how it is undone, and is undone when its file is confirmed and nothing was changed since", async () => {
  const other = await cloneDatabase("empty");
  const own = await mkdtemp(join(tmpdir(), "project-"));
  await mkdir(join(own, "committed"));
  const body =
    "create table public.notes (id int); create function public.one() returns int language sql as 'select 1';";
  const { text } = writeMigration({ previous: null, message: "notes", body });
  const served = await serve(other, settings({ MIGRATIONS_DIR: own }));
  await writeFile(join(own, "committed/000001-notes.sql"), text);
  const undo = (sent: object) => send("/undo", sent, served);
  const ownerRows = (sql: string) => rows(sql, other.ownerUrl);
  try {
    expect((await undo({})).body.error.message).toContain("is not applied to this database");
    await runMigrations({ name: "migrate" }, served.postgres.migrate);
    const { status, body: preview } = await undo({});
    expect([status, preview]).toEqual([
      200,
      {
        file: expect.stringMatching(/000001-notes\.sql$/),
        undo: {
          verdict: "can be undone",
          sql: expect.stringContaining("drop table public.notes;"),
          drops: ["table public.notes"],
        },
        changed_since: [],
        is_undone: false,
        error: null,
      },
    ]);
    expect(await undo({ confirmed_file: "other.sql" })).toMatchObject({
      status: 409,
      body: { error: { message: expect.stringMatching(/^The last migration is .*notes\.sql, not other\.sql\.$/) } },
    });
    await ownerRows("create or replace function public.one() returns int language sql as 'select 2'");
    expect((await undo({ confirmed_file: preview.file })).body).toMatchObject({
      is_undone: false,
      changed_since: ["function public.one() differs from the migrations"],
    });
    await ownerRows("create or replace function public.one() returns int language sql as 'select 1'");
    expect((await undo({ confirmed_file: preview.file })).body).toMatchObject({ is_undone: true });
    expect(await ownerRows("select to_regclass('public.notes') as notes")).toEqual([{ notes: null }]);
    expect((await send("", undefined, served)).body.pending).toMatchObject([{ name: "000001-notes.sql" }]);
  } finally {
    await served.stop();
    await other.drop();
    await rm(own, { recursive: true });
  }
});

test("what was tried, and that it was undone, are in the audit log", async () => {
  const other = await cloneDatabase("platform");
  const own = await mkdtemp(join(tmpdir(), "project-"));
  await mkdir(join(own, "committed"));
  const { text } = writeMigration({ previous: null, message: "notes", body: "create table public.notes ();" });
  const file = join(own, "committed/000001-notes.sql");
  const served = await serve(other, settings({ MIGRATIONS_DIR: own, BASE_SCHEMA: "platform" }));
  await writeFile(file, text);
  try {
    const { body } = await send("/undo", {}, served);
    expect(body.error.message).toContain("is not applied to this database");
    await runMigrations({ name: "migrate" }, served.postgres.migrate);
    const undone = await send("/undo", { confirmed_file: displayPath(file) }, served);
    expect(undone.body).toMatchObject({ is_undone: true });
    const events = await rows(
      "select event from auth.audit_log where event like 'studio.migration_und%' order by id",
      other.ownerUrl,
    );
    expect(events.map(({ event }) => event)).toEqual([
      "studio.migration_undo_tried",
      "studio.migration_undo_tried",
      "studio.migration_undone",
    ]);
  } finally {
    await served.stop();
    await other.drop();
    await rm(own, { recursive: true });
  }
});

test("with STUDIO_SQL=false nothing is copied, and the list says why", async () => {
  const off = await serve(database, settings({ STUDIO_SQL: "off" }));
  try {
    expect((await send("", undefined, off)).body.refusal).toEqual({
      reason: "The SQL of administrators is not run here.",
      how: "Set STUDIO_SQL=true.",
    });
    for (const path of ["/rehearsal", "/diff", "/undo"]) expect((await send(path, {}, off)).status).toBe(403);
  } finally {
    await off.stop();
  }
});

test("an owner who may not create databases is told what to do", async () => {
  const limited = await serve(database, settings({ ROOT_DATABASE_URL: urlOf("authenticator", "postgres") }));
  try {
    expect(await send("/rehearsal", {}, limited)).toMatchObject({
      status: 409,
      body: { error: { code: "STATE_CONFLICT", message: expect.stringContaining("createdb") } },
    });
  } finally {
    await limited.stop();
  }
});
