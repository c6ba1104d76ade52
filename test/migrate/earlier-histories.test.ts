import { createHash } from "node:crypto";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { restoreArchive } from "../../cluster/archive/restore-archive.ts";
import { writeArchive } from "../../cluster/archive/write-archive.ts";
import { bringUpToDate, runMigrations } from "../../migrate/migrate.ts";
import { readMigrationState } from "../../migrate/migration-state.ts";
import { withClient } from "../../postgres/client/with-client.ts";
import { DROP_OWN_OBJECTS, databaseOf, PROJECT, VERSIONS } from "./earlier-databases.ts";
import { presentName, requireSchemaOfNewDatabase, rowsOfAllTables } from "./earlier-rows.ts";
import { type OwnHistories, ownHistories } from "./own-histories.ts";

const start = ({ settings, requestUrl }: OwnHistories, isOwnDatabase: boolean) =>
  bringUpToDate({ settings, requestUrl, isOwnDatabase, report: () => {} });

describe.each(VERSIONS)("a database of commit $commit", (version) => {
  test("is refused by a start that may not migrate it, and loses nothing when it is migrated", async () => {
    await using own = await databaseOf(version);
    const named = `\\(platform/${version.file.slice(9, 15)}\\.sql, content/0000\\d\\d\\.sql\\).+npm run migrate`;
    await expect(start(own, false)).rejects.toThrow(new RegExp(named));
    const before = await rowsOfAllTables(own);
    const project = "select * from graphile_migrate.histories where history = 'project'";
    const recorded = await own.rows(project);
    expect(recorded).toMatchObject([{ filename: "000001.sql" }]);

    await runMigrations({ name: "migrate" }, own.settings);
    expect(await start(own, false)).toMatchObject({ kind: "current" });
    expect(await own.rows(project)).toEqual(recorded);
    const columns = new Map(
      [...before.keys()].map((key) => presentName(key).slice(0, -1).split(" (") as [string, string]),
    );
    const after = await rowsOfAllTables(own, columns);
    // Bounds are the release's, not the database's.
    for (const [table, rows] of before)
      if (!table.startsWith("private.bounds")) expect([table, after.get(presentName(table))]).toEqual([table, rows]);

    await own.rows(DROP_OWN_OBJECTS);
    await requireSchemaOfNewDatabase(own);
    await requireWorkingCredentials(own, version.key);
    await requireWaitingWork(own);
  });
});

test("objects of the project in the former schema of the service stay there, and call the service by its new name", async () => {
  await using own = await databaseOf(VERSIONS.at(-1)!);
  await runMigrations({ name: "migrate" }, own.settings);
  expect(await own.rows("insert into private.own_notes (note) values ('new') returning id, note")).toEqual([
    { id: 2, note: "new" },
  ]);
  expect(await own.rows("select public.own_bound() - content_service.bound('tasks of a caller') as notes")).toEqual([
    { notes: "2" },
  ]);
  await own.rows("select content_service.await_events(60); insert into public.own_rows values (1)");
  expect(await own.rows("select is_called from content_service.event_number")).toEqual([{ is_called: true }]);
});

test("a migration that names the former schema of the service is refused with the name that it has now", async () => {
  await using own = await ownHistories();
  await own.add(
    "project",
    "likes",
    `create table public.likes (id int primary key);
     create trigger _900_event after insert on public.likes for each row execute function private.tg__event();`,
  );
  await expect(runMigrations({ name: "migrate" }, own.settings)).rejects.toThrow(
    /schema "private" does not exist[\s\S]+called content_service[\s\S]+AllowInvalidHash/,
  );
});

test("a backup of an earlier version is restored, and brought to this one", async () => {
  await using own = await databaseOf(VERSIONS[0]!);
  await using other = await ownHistories();
  await other.add("project", "tags", PROJECT);
  const file = join(own.history("project").folder, "earlier.backup.gz");
  await writeArchive(own.settings.url, file);
  await restoreArchive(file, other.settings);
  expect(await start(other, false)).toMatchObject({ kind: "current" });
  const titles = "select title from public.articles order by id";
  expect(await other.rows(titles)).toEqual(await own.rows(titles));
  expect(await other.rows(titles)).toHaveLength(3);
});

async function requireWorkingCredentials(own: OwnHistories, key: string): Promise<void> {
  const hash = createHash("sha256").update(key).digest("hex");
  const claims = `select claims ->> 'role' as role from auth.use_api_keys(array['\\x${hash}'::bytea])`;
  expect(await own.rows(claims)).toEqual([{ role: "service_role" }]);
  const roles = "select auth.claims_of(user_id) ->> 'role' as role from auth.users order by user_id";
  expect(await own.rows(roles)).toEqual([{ role: "authenticated" }, { role: "admin" }]);
  const rotated = `
    select outcome from auth.refresh_tokens as token
    cross join auth.rotate_refresh_token(token.token_hash, sha256(token.token_hash), 60, null, null) order by user_id`;
  expect(await own.rows(rotated)).toEqual([{ outcome: "rotated" }, { outcome: "rotated" }]);
}

async function requireWaitingWork(own: OwnHistories): Promise<void> {
  await own.rows("update content_service.tasks set run_at = now() where status = 'queued'");
  const begun = `
    select begun.function, begun.caller ->> 'role' as role
    from content_service.task_lanes cross join lateral content_service.begin_task(task_lanes.name) as begun`;
  expect(await own.rows(begun)).toEqual([{ function: "public.nothing()", role: "service_role" }]);
  const deliveries = "select type, state from content_service.webhook_deliveries";
  expect(await own.rows(deliveries)).toEqual([{ type: "UPDATE", state: "pending" }]);
}

test("a database older than those that can be upgraded is refused with its version and the commands that help", async () => {
  await using own = await ownHistories();
  await own.rows(`
    create schema graphile_migrate;
    create table graphile_migrate.histories (
      history text, hash text, previous_hash text, filename text, date timestamptz default now(), primary key (history, filename)
    );
    insert into graphile_migrate.histories (history, hash, filename) values
      ('platform', 'sha1:de578ca582f33ba09bc65b82f4a989da35ac1448', '000001.sql'), ('platform', 'sha1:0000', '000040.sql')`);
  const refusal = /\(platform\/000040\.sql\).+git checkout 6bd84e18, npm ci, npm run migrate/;
  await expect(start(own, true)).rejects.toThrow(refusal);
  await expect(runMigrations({ name: "migrate" }, own.settings)).rejects.toThrow(refusal);
  const state = await withClient(own.settings.url, (client) => readMigrationState(client, own.settings.histories));
  expect(state).toMatchObject({ kind: "earlier", missing: null });
});
