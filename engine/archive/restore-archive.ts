import { cp, mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import {
  type CommittedMigration,
  committedMigrations,
  type MigrateSettings,
  type MigrationHistory,
  releaseHistories,
} from "../migrate/committed-migrations.ts";
import { runMigrations } from "../migrate/migrate.ts";
import { withClient } from "../pg-client/with-client.ts";
import {
  type ArchiveHeader,
  type ArchiveSequence,
  type ArchiveSummary,
  inspectArchive,
  readArchive,
} from "./archive-format.ts";
import { type ContentTable, contentRelations, contentTables, setPortableFormats } from "./content-tables.ts";

/** The last migration of the single history of earlier versions, and the last ones here that create the same tables. */
const SINGLE_HISTORY = {
  last: "sha1:0ee66714ea76da3b093c4ec20a567b9e324530c4",
  platform: "000023",
  content: "000008",
} as const;

const BATCH_ROWS = 500;
const BATCH_CHARACTERS = 4_000_000;

/**
 * Restores a backup into an empty database: runs the migrations that were applied when it was made, inserts the rows in
 * one transaction, then runs the later migrations. Checks as much as possible before it changes anything.
 */
export async function restoreArchive(file: string, input: MigrateSettings): Promise<ArchiveSummary> {
  const settings = { ...input, histories: input.histories ?? releaseHistories() };
  const archive = await inspectArchive(file);
  const migrations = await archivedMigrations(archive.header, settings.histories);
  await withClient(settings.url, async (client) => {
    await refuseUnlessEmpty(client);
    // Checks the privilege in a transaction that is rolled back when the connection closes.
    await client.query("begin");
    await disableTriggers(client);
  });
  await migrateTo(migrations, settings);
  await withClient(settings.url, (client) => loadRows(client, file, archive));
  await runMigrations({ name: "migrate" }, settings);
  return archive;
}

async function refuseUnlessEmpty(client: pg.ClientBase): Promise<void> {
  const tables = await contentTables(client);
  if (tables.length === 0) return;
  throw new Error(
    `The database is not empty: it has ${tables.length} tables, for example ${tables[0]!.table}. Nothing was changed. ` +
      "Restore into a new DATA_DIR or a new database.",
  );
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
  let table: ContentTable | null = null;
  let batch: string[] = [];
  let characters = 0;
  const flush = async () => {
    if (table && batch.length > 0) await insertRows(client, table, batch);
    batch = [];
    characters = 0;
  };
  for await (const line of readArchive(file)) {
    if (typeof line === "string") {
      batch.push(line);
      characters += line.length;
      if (batch.length >= BATCH_ROWS || characters > BATCH_CHARACTERS) await flush();
      continue;
    }
    await flush();
    if ("table" in line) table = existing.get(line.table)!;
    else if ("sequence" in line) await setSequence(client, line);
  }
  for (const statement of restoreChecks) await client.query(statement);
  for (const view of await contentRelations(client, "m")) await client.query(`refresh materialized view ${view}`);
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

async function setSequence(client: pg.ClientBase, { sequence, last, isCalled }: ArchiveSequence): Promise<void> {
  await client.query("select pg_catalog.setval($1::regclass, $2::bigint, $3)", [sequence, last, isCalled]);
}

/** Inserts rows given as composite literals. `offset 0` makes Postgres parse each literal once, not once per column. */
export async function insertRows(
  client: pg.ClientBase,
  { table, columns, generated }: ContentTable,
  rows: readonly string[],
): Promise<void> {
  const insertable = columns
    .filter((column) => !generated.includes(column))
    .map((column) => pg.escapeIdentifier(column));
  await client.query(
    `insert into ${table} (${insertable}) overriding system value
     select ${insertable.map((column) => `(r).${column}`)}
       from (select line::${table} as r from unnest($1::text[]) as line offset 0) as rows`,
    [rows],
  );
}

/** The migrations that were applied when the backup was made. Throws if this release lacks one of them. */
export async function archivedMigrations(
  { migrations }: ArchiveHeader,
  histories: readonly MigrationHistory[],
): Promise<readonly CommittedMigration[]> {
  if (migrations.length === 0) {
    throw new Error(
      "The backup is of a database that was not created by this service's migrations. Use pg_dump for such databases.",
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
