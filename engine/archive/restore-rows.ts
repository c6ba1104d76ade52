import { cp, mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type pg from "pg";
import {
  type CommittedMigration,
  committedMigrations,
  type MigrateSettings,
  type MigrationHistory,
} from "../migrate/committed-migrations.ts";
import { runMigrations } from "../migrate/migrate.ts";
import { withClient } from "../pg-client/with-client.ts";
import { type ArchiveHeader, type ArchiveSummary, readArchive } from "./archive-format.ts";
import { contentTables, relationsOfKind, setPortableFormats } from "./content-tables.ts";
import { RowInserter, setSequence } from "./row-inserter.ts";

/** The last migration of the single history of earlier versions, and the last ones here that create the same tables. */
const SINGLE_HISTORY = {
  last: "sha1:0ee66714ea76da3b093c4ec20a567b9e324530c4",
  platform: "000023",
  content: "000008",
} as const;

/**
 * Restores a backup of the first format, which has rows only: runs the migrations that were applied when it was made, and
 * inserts the rows in one transaction.
 */
export async function restoreRows(
  file: string,
  archive: ArchiveSummary,
  settings: Required<MigrateSettings>,
): Promise<void> {
  const migrations = await archivedMigrations(archive.header, settings.histories);
  await withClient(settings.url, async (client) => {
    // Checks the privilege in a transaction that is rolled back when the connection closes.
    await client.query("begin");
    await disableTriggers(client);
  });
  await migrateTo(migrations, settings);
  await withClient(settings.url, (client) => loadRows(client, file, archive));
}

async function loadRows(client: pg.ClientBase, file: string, { tables }: ArchiveSummary): Promise<void> {
  const existing = new Map((await contentTables(client)).map((table) => [table.table, table]));
  const mismatched = tables.filter(({ table, columns }) => String(existing.get(table)?.columns) !== String(columns));
  if (mismatched.length > 0) {
    const list = mismatched.map(({ table }) => table).join(", ");
    throw new Error(
      `The migrations create these tables with other columns, or not at all, so their rows cannot be restored: ${list}`,
    );
  }
  await setPortableFormats(client);
  await client.query("begin");
  await disableTriggers(client);
  // Some migrations insert rows.
  await client.query(`truncate ${[...existing.keys()].join(", ")}`);
  const restoreChecks = await dropUnvalidatedChecks(client);
  const rows = new RowInserter(client, existing);
  for await (const line of readArchive(file)) {
    if (typeof line === "string") {
      await rows.add(line);
      continue;
    }
    await rows.flush();
    if ("table" in line) await rows.startTable(line);
    else if ("sequence" in line) await setSequence(client, line);
  }
  for (const statement of restoreChecks) await client.query(statement);
  for (const view of await relationsOfKind(client, "m", true)) await client.query(`refresh materialized view ${view}`);
  await client.query("commit");
  await client.query("analyze");
}

/** Disables foreign keys, because the tables are not in their order, and other triggers, whose effects are in the backup. */
async function disableTriggers(client: pg.ClientBase): Promise<void> {
  await client.query("set local session_replication_role = replica").catch((error: unknown) => {
    if ((error as pg.DatabaseError).code !== "42501") throw error;
    throw new Error(
      "The owner lacks a privilege: a superuser must run GRANT SET ON PARAMETER session_replication_role TO the owner. " +
        "Postgres 14 has no such grant: restore as a superuser there. Nothing was changed.",
    );
  });
}

const UNVALIDATED_CHECKS = `
  select format('alter table %s drop constraint %I', conrelid::regclass, conname) as lift, array_remove(array[
      format('alter table %s add constraint %I %s', conrelid::regclass, conname, pg_get_constraintdef(oid)),
      'comment on constraint ' || quote_ident(conname) || ' on ' || conrelid::regclass
        || ' is ' || quote_literal(obj_description(oid, 'pg_constraint'))], null) as impose
    from pg_constraint where contype = 'c' and conrelid <> 0 and not convalidated and coninhcount = 0`;

/** Drops constraints that are `not valid`, because older rows may violate them. Returns the statements that add them again. */
async function dropUnvalidatedChecks(client: pg.ClientBase): Promise<string[]> {
  const { rows } = await client.query<{ lift: string; impose: string[] }>(UNVALIDATED_CHECKS);
  for (const { lift } of rows) await client.query(lift);
  return rows.flatMap(({ impose }) => impose);
}

/** The migrations that were applied when the backup was made. Throws if this release lacks one of them. */
export async function archivedMigrations(
  { migrations }: ArchiveHeader,
  histories: readonly MigrationHistory[],
): Promise<readonly CommittedMigration[]> {
  if (migrations.length === 0) {
    throw new Error(
      "The backup was made by an early version, of a database that was not created by this service's migrations, and has no " +
        "definitions of tables. Back the database up again with this version.",
    );
  }
  const committed = (await Promise.all(histories.map(committedMigrations))).flat();
  if (migrations.some(({ history }) => history === undefined)) return migrationsOfSingleHistory(migrations, committed);
  const available = new Map(committed.map((migration) => [`${migration.history} ${migration.hash}`, migration]));
  const unknown = migrations.filter(({ history, hash }) => !available.has(`${history} ${hash}`));
  if (unknown.length > 0) {
    const list = unknown.map(({ history, name }) => `${history}/${name}`).join(", ");
    throw new Error(
      `The backup needs migrations that this release does not have: ${list}. Restore it with the release that made it.`,
    );
  }
  return migrations.map(({ history, hash }) => available.get(`${history} ${hash}`)!);
}

/** A project's own migrations must be in the project's history now. */
function migrationsOfSingleHistory(
  migrations: ArchiveHeader["migrations"],
  committed: readonly CommittedMigration[],
): readonly CommittedMigration[] {
  const end = migrations.findIndex(({ hash }) => hash === SINGLE_HISTORY.last);
  if (end < 0) {
    throw new Error(
      "The backup was made by an early version. Update that database to the last version with a single history of migrations " +
        "(npm run migrate), and back it up again.",
    );
  }
  const added = migrations.slice(end + 1);
  const own = committed.filter(({ history }) => history === "project");
  if (added.length > 0 && own.length === 0) {
    throw new Error(
      `The backup needs migrations of your own: ${added.map(({ name }) => name).join(", ")}. ` +
        "Commit the same SQL to your project's history (MIGRATIONS_DIR) first.",
    );
  }
  const released = committed.filter(
    ({ history, name }) => history !== "project" && name.slice(0, 6) <= SINGLE_HISTORY[history],
  );
  return added.length > 0 ? [...released, ...own] : released;
}

/** Runs exactly these migrations. */
async function migrateTo(
  migrations: readonly CommittedMigration[],
  settings: Required<MigrateSettings>,
): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), "content-service-migrations-"));
  try {
    const histories = settings.histories.map(({ name }) => ({ name, folder: join(folder, name) }));
    for (const history of histories) await mkdir(join(history.folder, "committed"), { recursive: true });
    for (const { history, name, file } of migrations) await cp(file, join(folder, history, "committed", name));
    await runMigrations({ name: "migrate" }, { ...settings, histories });
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
