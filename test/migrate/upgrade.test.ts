import { readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { writeMigration } from "../../migrate/committed-migrations.ts";
import { bringUpToDate, runMigrations } from "../../migrate/migrate.ts";
import { readMigrationState, SINGLE_HISTORY } from "../../migrate/migration-state.ts";
import { withClient } from "../../postgres/client/with-client.ts";
import { cloneDatabase, urlOf } from "../database.ts";
import { type OwnHistories, ownHistories } from "./own-histories.ts";

const start = ({ settings, requestUrl }: OwnHistories) =>
  bringUpToDate({ settings, requestUrl, isOwnDatabase: false, report: () => {} });
const stateOf = ({ settings }: OwnHistories) =>
  withClient(settings.url, (client) => readMigrationState(client, settings.histories));

test("an upgrade keeps accounts and sign-ins of the release that named the table auth.credentials", async () => {
  await using own = await ownHistories();
  const newer = new Map<string, string>();
  for (const [name, last] of [
    ["platform", 24],
    ["content", 9],
  ] as const) {
    const committed = join(own.history(name).folder, "committed");
    for (const file of await own.committed(name)) {
      if (Number.parseInt(file, 10) <= last) continue;
      newer.set(join(committed, file), await readFile(join(committed, file), "utf8"));
      await rm(join(committed, file));
    }
  }
  await runMigrations({ name: "migrate" }, own.settings);
  await own.rows("select auth.register('Ann', 'ann@example.org', 44, null, '$hash', null)");
  await own.rows("update auth.credentials set verified_email = 'ann@example.org'");
  await own.rows(
    "select auth.open_tokens(1, sha256('one'), 60, row('192.0.2.1', 'Phone', null, null)::auth.client_info)",
  );
  await own.rows("select * from auth.rotate_refresh_token(sha256('one'), sha256('two'), 60, null, null)");

  for (const [file, text] of newer) await writeFile(file, text);
  await runMigrations({ name: "migrate" }, own.settings);
  expect(await stateOf(own)).toMatchObject({ kind: "current" });
  expect(
    await own.rows(
      "select user_id, username, password_hash, email, email_confirmed_at is not null as confirmed from auth.users",
    ),
  ).toEqual([
    { user_id: "1", username: "ann@example.org", password_hash: "$hash", email: "ann@example.org", confirmed: true },
  ]);
  expect(await own.rows("select user_id from auth.token_sessions where refreshed_at > created_at")).toHaveLength(1);
  expect(
    await own.rows("select outcome from auth.rotate_refresh_token(sha256('two'), sha256('three'), 60, null, null)"),
  ).toEqual([{ outcome: "rotated" }]);
});

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
    const histories = own.settings.histories.filter(({ name }) => name !== "content");
    await runMigrations({ name: "migrate" }, { ...own.settings, histories });
    await expect(runMigrations({ name: "migrate" }, own.settings)).rejects.toThrow("Choose BASE_SCHEMA before");
    expect(await own.rows("select to_regclass('public.users') as users")).toEqual([{ users: null }]);
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
    await using own = await ownHistories();
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
    await using own = await ownHistories();
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
    await using own = await ownHistories();
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

describe("a database of the single history that earlier versions had", () => {
  const RECORD = `
    create schema graphile_migrate;
    create table graphile_migrate.migrations (hash text primary key, previous_hash text, filename text, date timestamptz);
    insert into graphile_migrate.migrations values ('sha1:59e9ed9b1d9c80e11b0952e7224cd99c513936b1', null, '000001.sql', now())`;

  test("is neither served nor migrated, and the error says how to move it", async () => {
    await using own = await ownHistories();
    await own.rows(RECORD);
    for (const ours of [true, false]) {
      const { settings, requestUrl } = own;
      const starting = bringUpToDate({ settings, requestUrl, isOwnDatabase: ours, report: () => {} });
      await expect(starting).rejects.toThrow(
        /before 22 November 2026.+git checkout c4ab2c85, npm ci, npm run migrate\. .+own.+Then: Back it up .+restore the backup/s,
      );
    }
    await own.rows(
      `insert into graphile_migrate.migrations values ('${SINGLE_HISTORY.last}', null, '000062.sql', now())`,
    );
    const migrating = runMigrations({ name: "migrate" }, own.settings);
    await expect(migrating).rejects.toThrow(
      /one history of migrations\. Back it up with this version \(npm run backup\)/,
    );
    expect(await own.rows("select to_regnamespace('auth') as auth")).toEqual([{ auth: null }]);
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
