import { createHash } from "node:crypto";
import { expect, test } from "vitest";
import { bringUpToDate, runMigrations } from "../../migrate/migrate.ts";
import { databaseOf, PROJECT, SINGLE_HISTORY_VERSION } from "./earlier-databases.ts";
import { presentName, requireSchemaOfNewDatabase, rowsOfAllTables } from "./earlier-rows.ts";
import { type OwnHistories, ownHistories } from "./own-histories.ts";

const start = ({ settings, requestUrl }: OwnHistories, isOwnDatabase = false) =>
  bringUpToDate({ settings, requestUrl, isOwnDatabase, report: () => {} });

test("a database with one history is brought to the present ones in one step, and loses nothing", async () => {
  await using own = await databaseOf(SINGLE_HISTORY_VERSION);
  await expect(start(own)).rejects.toThrow(/one history of migrations\..+npm run migrate/);
  const before = await rowsOfAllTables(own);
  expect(before.size).toBeGreaterThan(25);

  await runMigrations({ name: "migrate" }, own.settings);
  expect(await start(own)).toMatchObject({ kind: "current" });
  const columns = new Map(
    [...before.keys()].map((key) => presentName(key).slice(0, -1).split(" (") as [string, string]),
  );
  columns.set("auth.users", columns.get("auth.credentials")!);
  const after = await rowsOfAllTables(own, columns);
  for (const [table, rows] of before) {
    expect([table, after.get(presentName(table).replace("auth.credentials", "auth.users"))]).toEqual([table, rows]);
  }
  await requireSchemaOfNewDatabase(own);
});

test("accounts, sign-ins, second factors, keys and unfinished tasks of such a database go on", async () => {
  await using own = await databaseOf(SINGLE_HISTORY_VERSION);
  await runMigrations({ name: "migrate" }, own.settings);
  const hash = createHash("sha256").update(SINGLE_HISTORY_VERSION.key).digest("hex");
  const claims = `select claims ->> 'role' as role from auth.use_api_keys(array['\\x${hash}'::bytea])`;
  expect(await own.rows(claims)).toEqual([{ role: "service_role" }]);
  const accounts = `
    select email, auth.claims_of(user_id) ->> 'role' as role, auth.has_factor(user_id) as factor from auth.users order by user_id`;
  expect(await own.rows(accounts)).toEqual([
    { email: "ada@example.com", role: "admin", factor: true },
    { email: "bob@example.com", role: "authenticated", factor: false },
  ]);
  const rotated = `
    select distinct outcome from auth.refresh_tokens as token
    cross join auth.rotate_refresh_token(token.token_hash, sha256(token.token_hash), 60, null, null)`;
  expect(await own.rows(rotated)).toEqual([{ outcome: "rotated" }]);
  const identities = "select issuer, subject from auth.identities where user_id = 2";
  expect(await own.rows(identities)).toEqual([{ issuer: "hub", subject: "s-1" }]);
  // The process that ran it was killed.
  expect(await own.rows("select status from content_service.tasks order by created_at")).toEqual([
    { status: "done" },
    { status: "running" },
  ]);
  await own.rows("select content_service.maintain_tasks()");
  const begun = `
    select begun.caller ->> 'role' as role, begun.request ->> 'path' as path
    from content_service.task_lanes cross join lateral content_service.begin_task(task_lanes.name) as begun`;
  expect(await own.rows(begun)).toEqual([{ role: "service_role", path: "/rest/v1/rpc/nothing" }]);
});

test("the project's migrations are recorded in its own history", async () => {
  await using own = await databaseOf(SINGLE_HISTORY_VERSION);
  await own.add("project", "more", "create table public.more (id int primary key)");
  await runMigrations({ name: "migrate" }, own.settings);
  const project = "select filename from graphile_migrate.histories where history = 'project' order by filename";
  expect(await own.rows(project)).toEqual([{ filename: "000001.sql" }, { filename: "000002.sql" }]);
  expect(await own.rows("select name from public.tags")).toEqual([{ name: "a" }]);
  expect(await own.rows("select to_regclass('public.more')::text as name")).toEqual([{ name: "more" }]);
});

test.each([
  ["is missing", []],
  ["has other SQL", [PROJECT.replace("name text", "name text not null")]],
])("a database whose own migration %s in the project is refused, and stays as it is", async (_case, migrations) => {
  await using own = await ownHistories();
  await using dump = await databaseOf(SINGLE_HISTORY_VERSION);
  for (const sql of migrations) await own.add("project", "tags", sql);
  const settings = { ...dump.settings, histories: own.settings.histories };
  await expect(runMigrations({ name: "migrate" }, settings)).rejects.toThrow(
    /000058\.sql is your own.+Commit the same SQL/,
  );
  expect(await dump.rows("select to_regclass('auth.credentials')::text as name")).toEqual([
    { name: "auth.credentials" },
  ]);
});

test("a database of an earlier migration of that history is refused with the commit that helps", async () => {
  await using own = await ownHistories();
  await own.rows(`
    create schema graphile_migrate;
    create table graphile_migrate.migrations (hash text primary key, previous_hash text, filename text, date timestamptz);
    insert into graphile_migrate.migrations values ('sha1:59e9ed9b1d9c80e11b0952e7224cd99c513936b1', null, '000001.sql', now())`);
  const refusal = /before 22 November 2026.+fewer than 57.+git checkout 5c10d4c, npm ci, npm run migrate/s;
  for (const ours of [true, false]) await expect(start(own, ours)).rejects.toThrow(refusal);
  await expect(runMigrations({ name: "migrate" }, own.settings)).rejects.toThrow(refusal);
  expect(await own.rows("select to_regnamespace('auth') as auth")).toEqual([{ auth: null }]);
});
