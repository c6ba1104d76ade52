import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { beforeAll, describe, expect, test } from "vitest";
import { runMigrations } from "../../../migrate/migrate.ts";
import { rehearseMigrations } from "../../../migrate/rehearse.ts";
import { withClient } from "../../../postgres/client/with-client.ts";
import { urlOf } from "../../database.ts";
import { useFixture } from "../../fixture.ts";
import { ownHistories } from "../../migrate/own-histories.ts";
import { run } from "../../program.ts";
import { SECRET } from "../../secret.ts";
import { until } from "../../until.ts";
import { runCommand } from "./run-command.ts";

const own = useFixture(() => ownHistories([]));
beforeAll(async () => {
  await own.add(
    "project",
    "notes",
    "create table public.notes (id int primary key, text text); insert into public.notes select i, 'n' from generate_series(1, 10000) i",
  );
  await runMigrations({ name: "migrate" }, own.settings);
});

function settings(): NodeJS.ProcessEnv {
  const { shadowUrl, rootUrl } = own.settings;
  return {
    BASE_SCHEMA: "none",
    MIGRATIONS_DIR: own.history("project").folder,
    SHADOW_DATABASE_URL: shadowUrl,
    ROOT_DATABASE_URL: rootUrl,
  };
}

function migrate(...words: string[]) {
  return runCommand("migrate", words, { url: own.requestUrl, ownerUrl: own.settings.url }, settings());
}

function rehearse(...words: string[]) {
  return migrate("rehearse", ...words);
}

test("says whom each pending statement would hold up, and leaves the database as it is", async () => {
  expect(await rehearse("--schema-only")).toMatchObject({ stdout: "No migrations are pending.\n", code: 0 });

  await own.add("project", "likes", "alter table public.notes add column likes int");
  const brief = await rehearse();
  expect(brief.stdout).toContain("brief: ");
  expect(brief.stdout).toContain("access exclusive lock on public.notes: holds reads and writes");
  expect(brief.stdout).toMatch(
    /\nThe migration can be undone by:\n {2}alter table public\.notes drop column likes;\n$/,
  );
  expect(brief.code).toBe(0);

  await own.write("project", "0010-index.sql", "select 1;\ncreate index on public.notes (text)");
  const held = await rehearse("--json");
  const statements = JSON.parse(held.stdout);
  expect(statements.at(-1)).toMatchObject({
    line: 2,
    verdict: "holds writes",
    safeForm: expect.stringContaining("create index concurrently"),
    locks: [{ relation: "public.notes", mode: "ShareLock", blocks: "writes", isEarlier: false }],
    scanned: [{ relation: "public.notes", rows: 10_000 }],
  });
  expect(statements.at(-1).walBytes).toBeGreaterThan(10_000);
  expect(held.code).toBe(3);

  await own.write(
    "project",
    "0010-index.sql",
    "--! no-transaction\ncreate index concurrently if not exists notes_text on public.notes (text)",
  );
  const safe = await rehearse("--markdown", "--schema-only");
  expect(safe.stdout).toContain("### safe: ");
  expect(safe.stdout).toContain("**The migration can be undone by:**\n\n```sql\ndrop index public.notes_text;\n```");
  expect(safe.code).toBe(0);

  const columns = "select attname from pg_attribute where attrelid = 'public.notes'::regclass and attnum > 0";
  expect(await own.rows(columns)).toHaveLength(2);
  expect(await own.shadowExists()).toBe(false);
});

test("skips what would change the server", async () => {
  const role = `rehearsed_${randomUUID().replaceAll("-", "")}`;
  const statements = [
    `create role ${role}`,
    `do $$ begin create role ${role}; end $$`,
    `alter role ${role} login`,
    `grant pg_monitor to ${role}`,
    "alter system set work_mem = '5MB'",
    "create user mapping for public server elsewhere",
  ];
  await own.write("project", "0010-index.sql", `${statements.join(";\n")};\ngrant select on public.notes to public`);
  const done = await rehearse("--schema-only", "--json");
  expect(JSON.parse(done.stdout).at(-1).undo).toMatchObject({
    verdict: "cannot be undone",
    reason: "It changes the server, and is not rehearsed.",
    statement: { line: 1, sql: statements[0] },
  });
  const verdicts = JSON.parse(done.stdout).map(({ verdict }: { verdict: string }) => verdict);
  expect(verdicts.slice(-7)).toEqual([...statements.map(() => "not rehearsed"), expect.not.stringContaining("not")]);
  expect(await own.rows(`select from pg_roles where rolname = '${role}'`)).toEqual([]);

  await own.write("project", "0010-index.sql", `create role ${role};\ngrant select on public.notes to ${role}`);
  expect((await rehearse("--schema-only")).stderr).toContain("A rehearsal creates no roles");
  await own.write("project", "0010-index.sql", "select 1");
});

test("names the place of a statement that fails, and refuses options of other actions", async () => {
  await own.write("project", "0020-wrong.sql", "select 1;\nalter table public.nothing add column likes int");
  const failed = await rehearse();
  expect(failed.stderr).toContain('0020-wrong.sql:2:1: relation "public.nothing" does not exist');
  expect(failed.code).toBe(1);
  expect((await rehearse("--json", "--markdown")).code).toBe(2);
  expect((await rehearse("--fail-on", "breaking")).code).toBe(2);
});

test("a commit says whom its statements hold up where tables are large, without copying rows", async () => {
  await own.write("project", "0020-wrong.sql", "update public.notes set text = 'x';\nselect 1");
  await own.write(
    "project",
    "0010-index.sql",
    "with kept as (select 'update' from public.notes) select from kept;\nalter table public.notes add column stars int;\nanalyze public.notes;",
  );
  const held = await migrate("commit", "fill notes");
  expect(held).toMatchObject({ code: 0, stderr: "" });
  expect(held.stdout).toMatch(/^Where the tables have 10,000 rows or more, others wait/);
  expect(held.stdout).toMatch(/holds reads: \S+current\/0020-wrong\.sql:1: update public\.notes set text = 'x'\n/);
  expect(held.stdout).toContain("Safe form: An earlier statement of this migration holds the locks");
  expect(held.stdout).not.toContain("stars");
  expect(held.stdout).not.toContain("kept");
  expect(await own.shadowExists()).toBe(false);

  await own.write("project", "0010-index.sql", "alter table public.notes alter column stars set default 0");
  expect((await migrate("commit", "default of stars")).stdout).toMatch(/^wrote /);
});

describe("a rehearsal that is ended", () => {
  const sleeping = () =>
    own.rows("select from pg_stat_activity where state = 'active' and query = 'select pg_sleep(3600)'");

  /** Resolves when it runs its statement in the copy. */
  async function startSleeping() {
    await own.write("project", "0020-wrong.sql", "select pg_sleep(3600)");
    const database = { DATABASE_URL: own.requestUrl, OWNER_DATABASE_URL: own.settings.url, JWT_SECRET: SECRET };
    const args = ["rehearse", "--schema-only"];
    const { child, streams } = run("service/cli/migrate.ts", { ...database, ...settings() }, { args });
    const ended = once(child, "close");
    await until(async () => child.exitCode !== null || (await sleeping()).length === 1);
    expect(streams.logged).toBe("");
    expect(await own.shadowExists()).toBe(true);
    return { child, streams, ended };
  }

  test("by a signal drops its copy; while it runs, no other command does", async () => {
    for (const signal of ["SIGINT", "SIGTERM"] as const) {
      const { child, streams, ended } = await startSleeping();
      const second = signal === "SIGINT" ? await rehearse("--schema-only") : null;
      if (second) expect(second).toMatchObject({ code: 1, stderr: expect.stringContaining("used by another command") });
      expect(await sleeping()).toHaveLength(1);
      child.kill(signal);
      // npm sends a second signal at Ctrl-C, beside that of the terminal.
      child.kill(signal);
      expect(await ended).toEqual([1, null]);
      expect(streams.logged).toContain(`Stopped by ${signal}.`);
      expect(await own.shadowExists()).toBe(false);
      expect(await sleeping()).toEqual([]);
    }
  });

  test("by kill -9 leaves its copy to the next, which ends its session and drops it", async () => {
    const { child, ended } = await startSleeping();
    child.kill("SIGKILL");
    await ended;
    expect(await own.shadowExists()).toBe(true);
    expect(await sleeping()).toHaveLength(1);
    await own.write("project", "0020-wrong.sql", "select 1");
    expect(await rehearse("--schema-only")).toMatchObject({ code: 0 });
    expect(await own.shadowExists()).toBe(false);
    expect(await sleeping()).toEqual([]);
  });
});

test("drops the user mappings of the copy, by which it would write to other servers", async () => {
  const [{ name }] = (await own.rows("select current_database() as name")) as [{ name: string }];
  const url = urlOf("postgres", name);
  await withClient(url, (client) =>
    client.query(
      "create foreign data wrapper nowhere; create server elsewhere foreign data wrapper nowhere; create user mapping for public server elsewhere",
    ),
  );
  await own.write("project", "0020-wrong.sql", "select 1");
  await rehearseMigrations({ ...own.settings, url }, { originalUrl: own.settings.url, withRows: true });
  expect(await own.rows("select from pg_user_mappings")).toEqual([]);
});
