import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { inspectArchive } from "../../archive/archive-format.ts";
import { allTables } from "../../archive/content-tables.ts";
import { restoreArchive } from "../../archive/restore-archive.ts";
import { archivedMigrations } from "../../archive/restore-rows.ts";
import { writeArchive } from "../../archive/write-archive.ts";
import { releaseHistories } from "../../migrate/committed-migrations.ts";
import { withClient } from "../../postgres/client/with-client.ts";
import { urlOf } from "../database.ts";
import { ownHistories } from "../migrate/own-histories.ts";

/** Written by `npm run backup` of the last version that had a single history. */
const BACKUP = new URL("single-history.fixture.gz", import.meta.url).pathname;
const LAST = { name: "000062.sql", hash: "sha1:0ee66714ea76da3b093c4ec20a567b9e324530c4" };

test("a backup of an earlier version is restored into the histories of this one", async () => {
  await using own = await ownHistories();
  const { rows } = await restoreArchive(BACKUP, own.settings);
  expect(rows).toBe(15);
  expect(await own.rows("select name, age from public.users order by id")).toEqual([
    { name: "Ann", age: 44 },
    { name: "Bob", age: null },
    // Longer than the limit, which is newer.
    { name: "Long ".repeat(60), age: null },
  ]);
  expect(await own.rows("select title from public.article_translations")).toEqual([{ title: "Gärten im Juni" }]);
  expect(await own.rows("select username, role from auth.users join auth.user_roles using (user_id)")).toEqual([
    { username: "ann", role: "admin" },
  ]);
  const insert = "insert into public.users (name, email) values ('Next', 'next@example.org') returning id";
  expect(await own.rows(insert)).toEqual([{ id: "4" }]);
});

test("a backup of an earlier version is not restored by an owner without a privilege; the message says what to grant", async () => {
  await using own = await ownHistories();
  const [{ database }] = (await own.rows("select current_database() as database")) as [{ database: string }];
  const owner = `owner_of_${database}`;
  await own.rows(`create role ${owner} login createrole; alter database ${database} owner to ${owner}`);
  try {
    const url = urlOf(owner, database);
    await expect(restoreArchive(BACKUP, { ...own.settings, url })).rejects.toThrow("GRANT SET ON PARAMETER");
    expect(await withClient(own.settings.url, allTables)).toEqual([]);
  } finally {
    await own.rows(`alter database ${database} owner to postgres; drop role ${owner}`);
  }
});

test("a backup with a project's own migrations requires them in its history first", async () => {
  await using own = await ownHistories();
  const header = {
    contentService: 1,
    postgres: "18.4",
    madeAt: "2026-01-01T00:00:00Z",
    migrations: [LAST, { name: "000063.sql", hash: "sha1:0000000000000000000000000000000000000000" }],
  } as const;
  await expect(archivedMigrations(header, own.settings.histories)).rejects.toThrow(
    "migrations of your own: 000063.sql",
  );
  await own.add("project", "tags", "create table public.tags ();");
  const migrations = await archivedMigrations(header, own.settings.histories);
  expect(migrations.at(-1)).toMatchObject({ history: "project", name: "000001-tags.sql" });
});

test("a backup from before the last migration of the single history is rejected with advice", async () => {
  const header = {
    contentService: 1,
    postgres: "18.4",
    madeAt: "2026-01-01T00:00:00Z",
    migrations: [{ name: "000001.sql", hash: "sha1:59e9ed9b1d9c80e11b0952e7224cd99c513936b1" }],
  } as const;
  await expect(archivedMigrations(header, releaseHistories())).rejects.toThrow(
    /Update it first to commit c4ab2c85, .+Then back it up again/,
  );
});

test("a database of the single history can be backed up by this version too", async () => {
  await using own = await ownHistories();
  await own.rows(`
    create schema graphile_migrate;
    create table graphile_migrate.migrations (hash text primary key, previous_hash text, filename text, date timestamptz);
    insert into graphile_migrate.migrations values
      ('sha1:59e9ed9b1d9c80e11b0952e7224cd99c513936b1', null, '000001.sql', now()), ('${LAST.hash}', null, '${LAST.name}', now())`);
  const folder = await mkdtemp(join(tmpdir(), "single-history-"));
  const file = join(folder, "content.backup.gz");
  await writeArchive(own.settings.url, file);
  const { header } = await inspectArchive(file);
  await rm(folder, { recursive: true });
  expect(header.migrations.at(-1)).toEqual(LAST);
  expect(await archivedMigrations(header, own.settings.histories)).toHaveLength(31);
});
