import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { compareSchemas } from "../../migrate/compare-schemas.ts";
import { findDrift, readComparedSchema } from "../../migrate/drift.ts";
import { runMigrations } from "../../migrate/migrate.ts";
import { driftFindings, readDrift } from "../../operations/doctor/drift-checks.ts";
import { withClient } from "../../postgres/client/with-client.ts";
import { useDatabase } from "../database.ts";
import { ownHistories } from "./own-histories.ts";

const NOTES = `
  create table public.notes (id int primary key, text text not null default 'none', "Odd name" int);
  alter table public.notes enable row level security;
  create policy select_all on public.notes for select using (true);
  create index notes_text on public.notes (text);
  grant select on public.notes to anon;
  create function public.one() returns int language sql as 'select 1';
  create view public.texts as select text from public.notes;
  grant select on public.texts to anon;
  comment on table public.notes is 'Notes.';`;
const WITHOUT_NOTES = "drop table if exists public.notes cascade; drop function if exists public.one();";

const BY_HAND = [
  "alter table public.notes add column likes int not null default 0",
  'create index by_hand on public.notes ("Odd name")',
  "alter table public.notes add constraint text_length check (length(text) < 100)",
  "create policy write on public.notes for insert to authenticated with check (true)",
  "grant update (text) on public.notes to anon",
  "alter table public.notes alter column text drop not null, alter column text set default 'some'",
  'alter table public.notes alter column "Odd name" type bigint',
  "alter table public.notes disable row level security",
  "drop index public.notes_text",
  "drop policy select_all on public.notes; create policy select_all on public.notes for select using (id > 0)",
  "create or replace function public.one() returns int language sql as 'select 2'",
  "comment on table public.notes is 'Other words.'",
  "create or replace view public.texts as select text from public.notes where id > 5",
  "create view public.ids as select id from public.notes",
  'alter table public.notes drop column "Odd name"',
  "revoke select on public.notes from anon",
];

describe("findDrift", () => {
  test("does not use a database with other tables as the scratch database", async () => {
    await using own = await ownHistories();
    const { shadowUrl, rootUrl } = own.settings;
    const name = /[^/?]+_shadow/.exec(shadowUrl)![0];
    const ask = (url: string, sql: string) => withClient(url, async (client) => (await client.query(sql)).rows);
    await ask(rootUrl, `create database "${name}"`);
    try {
      await ask(shadowUrl, "create table orders as select 1 as id");
      await expect(findDrift(own.settings)).rejects.toThrow("Set SHADOW_DATABASE_URL");
      expect(await ask(shadowUrl, "select * from orders")).toEqual([{ id: 1 }]);
    } finally {
      await ask(rootUrl, `drop database if exists "${name}"`);
    }
  });

  test("reports manual changes with the SQL to keep and to undo them, and leaves no scratch database", async () => {
    await using own = await ownHistories(["platform"], { isMigrated: true });
    await own.add("project", "notes", NOTES);
    await runMigrations({ name: "migrate" }, own.settings);
    // Its triggers belong to its row.
    await own.rows(
      "insert into api.webhooks (name, table_name, url, role) values ('notes', 'notes', 'https://example.com', 'service_role')",
    );
    expect(await findDrift(own.settings)).toEqual([]);
    for (const sql of BY_HAND.slice(0, 5)) await own.rows(sql);
    const found = await findDrift(own.settings);
    expect(found.map(({ description: what }) => what)).toEqual([
      "index by_hand of table public.notes is not created by a migration",
      "policy write of table public.notes is not created by a migration",
      "grant update (text) on public.notes to anon is not created by a migration",
      "constraint text_length of table public.notes is not created by a migration",
      "column likes of table public.notes is not created by a migration",
    ]);
    expect(found.at(-1)).toMatchObject({
      keepSql: "alter table public.notes add column likes integer default 0 not null;",
      undoSql: "alter table public.notes drop column likes;",
    });
    expect(await own.shadowExists()).toBe(false);
  });

  test("does not report a function that Postgres prints differently after a restore, unless it was changed", async () => {
    await using own = await ownHistories([]);
    const body = (value: string) => `begin atomic select 'a'::text as name union all select '${value}'; end`;
    const create = (value: string) => `create or replace function public.names() returns setof text ${body(value)}`;
    await own.add("project", "names", `${create("b")};`);
    await runMigrations({ name: "migrate" }, own.settings);
    const printed = async () =>
      (await own.rows("select pg_get_functiondef('public.names'::regproc) as sql"))[0]!.sql as string;
    const migrated = await printed();
    await own.rows(migrated);
    expect(await printed()).not.toBe(migrated);
    expect(await findDrift(own.settings)).toEqual([]);
    await own.rows(create("c"));
    expect(await findDrift(own.settings)).toMatchObject([
      { description: "function public.names() differs from the migrations" },
    ]);
  });

  test("compares with the files of current/ as the database has applied them, and names those that it has not", async () => {
    await using own = await ownHistories(["platform"], { isMigrated: true });
    const found = async () => {
      const { directUrl, migrate } = { directUrl: own.settings.url, migrate: own.settings };
      return driftFindings(await readDrift({ directUrl, migrate })).map(({ problem, fix }) => [problem, fix]);
    };
    await runMigrations({ name: "migrate" }, own.settings);
    await own.write("project", "0010-notes.sql", NOTES);
    const file = join(own.history("project").folder, "current/0010-notes.sql");
    const pending = [[`${file} is not applied to this database.`, "npm run dev applies it."]];
    expect(await found()).toEqual(pending);
    await runMigrations({ name: "current" }, own.settings);
    expect(await found()).toEqual([]);
    await own.write("project", "0010-notes.sql", `drop table if exists public.notes cascade;${NOTES}`);
    expect(await found()).toEqual(pending);
  });
});

describe("compareSchemas", () => {
  const changed = useDatabase({ template: "empty" });
  const made = useDatabase({ template: "empty" });

  test.each(BY_HAND)("returns SQL that reverts, and SQL that keeps: %s", async (sql) => {
    const run = (url: string, script: string) => withClient(url, (client) => client.query(script));
    for (const { ownerUrl } of [changed, made]) await run(ownerUrl, `${WITHOUT_NOTES}${NOTES}`);
    const schemaOf = ({ ownerUrl }: { readonly ownerUrl: string }) => readComparedSchema(ownerUrl);
    await run(changed.ownerUrl, sql);
    const before = await schemaOf(made);
    const found = compareSchemas(await schemaOf(changed), before);
    expect(found).not.toEqual([]);
    for (const { undoSql: undo } of found) await run(changed.ownerUrl, undo);
    expect(compareSchemas(await schemaOf(changed), before)).toEqual([]);

    await run(changed.ownerUrl, sql);
    const after = await schemaOf(changed);
    for (const { keepSql: keep } of compareSchemas(after, before)) await run(made.ownerUrl, keep);
    expect(compareSchemas(after, await schemaOf(made))).toEqual([]);
  });
});
