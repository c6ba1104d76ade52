import { readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { writeMigration } from "../../migrate/committed-migrations.ts";
import { bringUpToDate, runMigrations } from "../../migrate/migrate.ts";
import { readMigrationState } from "../../migrate/migration-state.ts";
import { withClient } from "../../postgres/client/with-client.ts";
import { cloneDatabase, urlOf } from "../database.ts";
import { type OwnHistories, ownHistories } from "./own-histories.ts";

const start = ({ settings, requestUrl }: OwnHistories) =>
  bringUpToDate({ settings, requestUrl, isOwnDatabase: false, report: () => {} });
const stateOf = ({ settings }: OwnHistories) =>
  withClient(settings.url, (client) => readMigrationState(client, settings.histories));

describe("the migrations of an empty database", () => {
  test("are applied history by history, but one that names another of a later history comes after that", async () => {
    await using own = await ownHistories();
    const last = (await own.committed("content")).length;
    const likes = await own.add("content", "likes", "create table public.likes (id int);");
    await own.add(
      "platform",
      "rename likes",
      `--! after content/${likes.slice(0, 6)}\nalter table public.likes rename to votes;`,
    );
    await own.add("content", "more likes", "alter table public.votes add column since date;");
    await runMigrations({ name: "migrate" }, own.settings);
    expect(await own.committed("content")).toHaveLength(last + 2);
    expect(await own.rows("select since from public.votes")).toEqual([]);
    expect(await stateOf(own)).toMatchObject({ kind: "current" });
    await runMigrations({ name: "migrate" }, own.settings);
  });

  test("cannot be added when later ones have changed what they build on, which changes nothing", async () => {
    await using own = await ownHistories();
    const last = (await own.committed("content")).at(-1)!.slice(0, 6);
    await own.add("platform", "votes", `--! after content/${last}\ncreate table auth.votes (id int);`);
    const histories = own.settings.histories.filter(({ name }) => name !== "content");
    await runMigrations({ name: "migrate" }, { ...own.settings, histories });
    await expect(runMigrations({ name: "migrate" }, own.settings)).rejects.toThrow("Choose BASE_SCHEMA before");
    expect(await own.rows("select to_regclass('public.users') as users")).toEqual([{ users: null }]);
  });

  test("of the example application are added to a platform without accounts, and refused with some", async () => {
    await using own = await ownHistories();
    const histories = own.settings.histories.filter(({ name }) => name !== "content");
    await runMigrations({ name: "migrate" }, { ...own.settings, histories });
    const [account] = await own.rows(
      "insert into auth.users (username, email) values ('ann', 'ann@example.org') returning user_id",
    );
    expect(account).toEqual({ user_id: "1" });
    await expect(runMigrations({ name: "migrate" }, own.settings)).rejects.toThrow("Choose BASE_SCHEMA before");
    expect(await own.rows("select to_regclass('public.users') as users")).toEqual([{ users: null }]);
    await own.rows("delete from auth.users");
    await runMigrations({ name: "migrate" }, own.settings);
    expect(await stateOf(own)).toMatchObject({ kind: "current" });
  });

  test("do not wait for a history that is not applied", async () => {
    await using own = await ownHistories(["platform"]);
    await own.add("platform", "votes", "--! after content/000900\ncreate table auth.votes (id int);");
    await runMigrations({ name: "migrate" }, own.settings);
    expect(await own.rows("select from auth.votes")).toEqual([]);
  });
});

describe("an upgrade of a project with migrations of its own", () => {
  test("applies the migrations of the release and of the project, each with its own numbers, and keeps the rows", async () => {
    await using own = await ownHistories(["platform", "content"], { isMigrated: true });
    await own.add("project", "add tags", "create table public.tags (id int primary key, name text);");
    await own.add(
      "project",
      "tags of articles",
      "alter table public.tags add column article_id bigint references public.articles;",
    );
    await runMigrations({ name: "migrate" }, own.settings);
    await own.rows("insert into public.users (name, email) values ('Ann', 'ann@example.org')");
    await own.rows("insert into public.articles (title, content, author_id) values ('Gardens', 'Text', 1)");
    await own.rows("insert into public.tags values (1, 'green', 1)");

    // The new release numbers on where the project's numbers are, too.
    const released = [
      await own.add("platform", "audit", "alter table auth.audit_log add column reason text;"),
      await own.add("content", "likes", "alter table public.articles add column likes int not null default 7;"),
    ];
    await own.add(
      "project",
      "popular",
      "create view public.popular as select title, likes from public.articles join public.tags on article_id = articles.id;",
    );
    expect(await stateOf(own)).toMatchObject({
      kind: "behind",
      missing: [`platform/${released[0]}`, `content/${released[1]}`, "project/000003-popular.sql"],
    });
    await expect(start(own)).rejects.toThrow("half migrated");
    await runMigrations({ name: "migrate" }, own.settings);
    expect(await start(own)).toMatchObject({ kind: "current" });
    expect(await own.rows("select * from public.popular")).toEqual([{ title: "Gardens", likes: 7 }]);
    expect(await own.rows("select name from public.tags")).toEqual([{ name: "green" }]);
  });

  test("that fails keeps the applied migrations, refuses to serve, and continues once the migration is fixed", async () => {
    await using own = await ownHistories(["platform", "content"], { isMigrated: true });
    await own.add("project", "tags", "create table public.tags (name text);");
    await runMigrations({ name: "migrate" }, own.settings);
    await own.rows("insert into public.tags values ('twice'), ('twice')");
    await own.add("content", "likes", "alter table public.articles add column likes int;");
    const failing = await own.add(
      "project",
      "unique tags",
      "-- Fails.\nalter table public.tags add constraint tags_key unique (name);",
    );

    const refusal: Error = await runMigrations({ name: "migrate" }, own.settings).catch((error) => error);
    expect(refusal.message).toMatch(/000002-unique-tags\.sql:6:1: could not create unique index/);
    expect(refusal.message).toContain("Key (name)=(twice) is duplicated");
    expect(await stateOf(own)).toMatchObject({ kind: "behind", missing: [`project/${failing}`] });
    await expect(start(own)).rejects.toThrow(`project/${failing}`);

    await own.rows("delete from public.tags where ctid = '(0,2)'");
    await runMigrations({ name: "migrate" }, own.settings);
    expect(await start(own)).toMatchObject({ kind: "current" });
    expect(await own.rows("select likes from public.articles")).toEqual([]);
  });

  test("is refused when a migration was committed again after it was applied", async () => {
    await using own = await ownHistories(["platform", "content"], { isMigrated: true });
    const name = await own.add("project", "tags", "create table public.tags (name text);");
    await runMigrations({ name: "migrate" }, own.settings);
    const file = join(own.history("project").folder, "committed", name);
    await rm(file);
    await writeFile(
      file,
      writeMigration({ previous: null, message: "tags", body: "create table public.labels ();" }).text,
    );
    const refusal = "The database has project/000001.sql where project/000001-tags.sql is here";
    await expect(runMigrations({ name: "migrate" }, own.settings)).rejects.toThrow(refusal);
    await expect(start(own)).rejects.toThrow(refusal);
  });
});

describe("a deployment without the example application", () => {
  test("has the platform and its own tables, and no table of the example", async () => {
    await using own = await ownHistories(["platform"]);
    await own.add(
      "project",
      "notes",
      "create table public.notes (id int primary key); grant select on public.notes to anon;",
    );
    await runMigrations({ name: "migrate" }, own.settings);
    expect(await start(own)).toMatchObject({ kind: "current" });
    const tables = "select tablename from pg_tables where schemaname = 'public'";
    expect(await own.rows(tables)).toEqual([{ tablename: "notes" }]);
  });
});

test("a database that another application migrates with graphile-migrate is served, and not migrated", async () => {
  const database = await cloneDatabase("empty");
  try {
    await withClient(database.ownerUrl, (client) =>
      client.query("create schema graphile_migrate; create table graphile_migrate.migrations (hash text primary key)"),
    );
    await using own = await ownHistories();
    const settings = { ...own.settings, url: database.ownerUrl, shadowUrl: urlOf("postgres", "nowhere") };
    const starting = bringUpToDate({ settings, requestUrl: database.ownerUrl, isOwnDatabase: false, report: () => {} });
    expect(await starting).toEqual({ kind: "foreign" });
    await expect(runMigrations({ name: "migrate" }, settings)).rejects.toThrow("belongs to another application");
  } finally {
    await database.drop();
  }
});

test("every released history is numbered from 000001 without a gap", async () => {
  await using own = await ownHistories();
  for (const { folder } of own.settings.histories.slice(0, 2)) {
    const numbers = (await readdir(join(folder, "committed"))).sort().map((name) => Number.parseInt(name, 10));
    expect(numbers).toEqual(numbers.map((_, index) => index + 1));
  }
});
