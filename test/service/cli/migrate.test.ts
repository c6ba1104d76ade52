import { mkdir, mkdtemp, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { withClient } from "../../../postgres/client/with-client.ts";
import { cloneDatabase, urlOf, useDatabase } from "../../database.ts";
import { runCommand } from "./run-command.ts";

const database = useDatabase({ template: "empty" });

describe("a login role that does not exist yet", () => {
  const run = (name: string, ...words: string[]) =>
    runCommand(name, words, { url: urlOf("not_made_yet", database.name), ownerUrl: database.ownerUrl });

  test("is not needed to migrate, because the first migration creates it", async () => {
    const { stdout, stderr, code } = await run("migrate");
    expect(stderr).toBe("");
    expect(stdout).toMatch(/^All \d+ migrations are applied\.\n/);
    expect(code).toBe(0);
  });

  test("is reported by a command that connects as requests do", async () => {
    const { stderr, code } = await run("doctor");
    expect(stderr).toContain('(DATABASE_URL) cannot be used: role "not_made_yet" does not exist');
    expect(code).toBe(1);
  });
});

describe("npm run migrate -- --watch-only", () => {
  const foreign = useDatabase({ template: "empty" });
  const watchOnly = (...words: string[]) => runCommand("migrate", ["--watch-only", ...words], foreign);
  const doctor = () => runCommand("doctor", [], foreign);

  test("creates a trigger in a foreign database that notifies of each schema change, and changes nothing else", async () => {
    expect((await doctor()).stdout).toContain("create event trigger content_service_changed on ddl_command_end");
    const { stdout, code } = await watchOnly();
    expect([code, stdout]).toEqual([0, expect.stringMatching(/^Created event triggers/)]);
    expect((await doctor()).stdout).not.toContain("event trigger");
    await withClient(foreign.ownerUrl, async (client) => {
      const { rows } = await client.query("select to_regnamespace('graphile_migrate') as history");
      expect(rows).toEqual([{ history: null }]);
      const result: string[] = [];
      client.on("notification", ({ payload }) => result.push(String(payload)));
      await client.query("listen pgrst");
      const tellsOf = async (sql: string) => {
        result.length = 0;
        await client.query(sql);
        return result.length > 0;
      };
      expect(await tellsOf("create table public.notes (id int primary key)")).toBe(true);
      expect(await tellsOf("create temporary table passing (id int)")).toBe(false);
      expect(await tellsOf("drop table passing")).toBe(false);
      expect(await tellsOf("drop table public.notes")).toBe(true);
    });
    expect((await watchOnly()).stdout).toContain("Nothing was changed");
  });

  test("prints the SQL for a superuser if the owner is not one, and accepts no other action", async () => {
    const owned = await cloneDatabase("empty");
    try {
      const { stderr, code } = await runCommand("migrate", ["--watch-only"], { ...owned, ownerUrl: owned.url });
      expect(code).toBe(1);
      expect(stderr).toMatch(/^permission denied .*Run this as a superuser.*create event trigger/s);
      expect(stderr).not.toMatch(/^ +at /m);
    } finally {
      await owned.drop();
    }
    expect((await watchOnly("status")).stderr).toContain('--watch-only cannot be combined with "status".');
  });
});

test("a login that may not migrate gets an error with the missing setting", async () => {
  const migrated = await cloneDatabase("content");
  try {
    const { stderr, code } = await runCommand("migrate", [], { ...migrated, ownerUrl: migrated.url });
    expect(stderr).toMatch(/^The login .* Set OWNER_DATABASE_URL to the same database as its owner\.\n$/);
    expect(code).toBe(1);
  } finally {
    await migrated.drop();
  }
});

test("status and doctor name manual changes of the schema, with the SQL to keep and to undo them", async () => {
  const changed = await cloneDatabase("content");
  try {
    await withClient(changed.ownerUrl, (client) =>
      client.query("create index by_hand on public.articles (updated_at)"),
    );
    for (const command of ["migrate", "doctor"]) {
      const { stdout } = await runCommand(command, command === "migrate" ? ["status"] : [], changed);
      expect(stdout).toContain("index by_hand of table public.articles is not created by a migration");
      expect(stdout).toContain("CREATE INDEX by_hand ON public.articles USING btree (updated_at);");
      expect(stdout).toContain("drop index public.by_hand;");
    }
  } finally {
    await changed.drop();
  }
});

test("status explains why it cannot compare the schema with the migrations", async () => {
  const unreachable = { SHADOW_DATABASE_URL: urlOf("postgres", "x"), ROOT_DATABASE_URL: urlOf("postgres", "nowhere") };
  const migrated = await cloneDatabase("content");
  try {
    const { stdout, code } = await runCommand("migrate", ["status"], migrated, unreachable);
    expect([stdout, code]).toEqual([
      expect.stringContaining('could not be compared with the migrations: database "nowhere"'),
      0,
    ]);
  } finally {
    await migrated.drop();
  }
});

test("a migration that fails is printed with its place and what to do, without a stack", async () => {
  const foreign = await cloneDatabase("empty");
  try {
    await withClient(foreign.ownerUrl, (client) =>
      client.query("create schema storage; create table storage.objects (id bigint primary key)"),
    );
    const { stderr, code } = await runCommand("migrate", [], foreign);
    expect(stderr).toMatch(
      /^db\/platform\/committed\/\d+-buckets-and-objects\.sql:\d+:1: the table storage\.objects is not /,
    );
    expect(stderr).toContain("Hint: Rename it");
    expect(stderr).not.toMatch(/^ +at |cause/m);
    expect(code).toBe(1);
  } finally {
    await foreign.drop();
  }
});

test("commit refuses to drop rows where it cannot ask, unless --drop-rows says so", async () => {
  const own = await cloneDatabase("content");
  try {
    const folder = await mkdtemp(join(tmpdir(), "migrations-"));
    await mkdir(join(folder, "current"));
    await writeFile(join(folder, "current/0010-notes.sql"), "drop table if exists public.notes;\n");
    await withClient(own.ownerUrl, (client) => client.query("create table public.notes as select 1 as id"));
    const settings = {
      MIGRATIONS_DIR: folder,
      SHADOW_DATABASE_URL: urlOf("postgres", `${own.name}_shadow`),
      ROOT_DATABASE_URL: urlOf("postgres", "postgres"),
    };
    const commit = (...words: string[]) => runCommand("migrate", ["commit", "drop notes", ...words], own, settings);
    const refused = await commit();
    expect(refused.stderr).toContain('"public"."notes" and its row: it is not created again');
    expect(refused.code).toBe(1);
    const committed = await commit("--drop-rows");
    expect([committed.stderr, committed.code]).toEqual(["", 0]);
    expect(committed.stdout).toContain("000001-drop-notes.sql");
    const misplaced = await runCommand("migrate", ["status", "--drop-rows"], own, settings);
    expect([misplaced.stderr.trim().split("\n").at(-1), misplaced.code]).toEqual([
      "--drop-rows is only allowed with commit.",
      2,
    ]);
  } finally {
    await own.drop();
  }
});
