import { cp, mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import {
  adviseLastOfSingleHistory,
  type CommittedMigration,
  committedMigrations,
  type MigrateSettings,
  type MigrationHistory,
  runMigrations,
  SINGLE_HISTORY,
} from "#migrate";
import { withClient } from "#postgres/client";
import { commandLine } from "#runtime";
import {
  type ArchiveHeader,
  type ArchiveSequence,
  type ArchiveSummary,
  type ArchiveTable,
  readArchive,
} from "./archive-format.ts";
import { type ContentTable, contentTables, relationsOfKind, setPortableFormats } from "./content-tables.ts";

/** The last migrations here that create the same tables as the single history of earlier versions. */
const LAST_OF_SINGLE_HISTORY = {
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
      "The backup is of a database whose version had one history of migrations, and not all of them. " +
        `${adviseLastOfSingleHistory()} Then back it up again (${commandLine("backup")}).`,
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
    ({ history, name }) => history !== "project" && name.slice(0, 6) <= LAST_OF_SINGLE_HISTORY[history],
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

const BATCH_ROWS = 500;
const BATCH_CHARACTERS = 4_000_000;
/** Has the columns of a backup in their order, where that of the table is another. */
const ROW_TYPE = "pg_temp.archived_row";

type TableColumns = Pick<ContentTable, "table" | "columns" | "generated">;

/** Inserts the rows of a backup in batches. */
export class RowInserter {
  readonly #client: pg.ClientBase;
  readonly #existing: ReadonlyMap<string, ContentTable>;
  #table: TableColumns | null = null;
  #rowType = "";
  #batch: string[] = [];
  #characters = 0;

  constructor(client: pg.ClientBase, existing: ReadonlyMap<string, ContentTable>) {
    this.#client = client;
    this.#existing = existing;
  }

  /** The following rows are of this table. */
  async startTable({ table, columns }: ArchiveTable): Promise<void> {
    const existing = this.#existing.get(table);
    if (!existing || String([...existing.columns].sort()) !== String([...columns].sort())) {
      throw new Error(`The table ${table} has other columns than in the backup. Nothing was changed.`);
    }
    this.#table = { table, columns, generated: existing.generated };
    this.#rowType = table;
    if (String(existing.columns) === String(columns)) return;
    const list = columns.map((column) => pg.escapeIdentifier(column));
    await this.#client.query(
      `drop table if exists ${ROW_TYPE}; create temporary table archived_row on commit drop as select ${list} from ${table} with no data`,
    );
    this.#rowType = ROW_TYPE;
  }

  async add(row: string): Promise<void> {
    this.#batch.push(row);
    this.#characters += row.length;
    if (this.#batch.length >= BATCH_ROWS || this.#characters > BATCH_CHARACTERS) await this.flush();
  }

  async flush(): Promise<void> {
    if (this.#table && this.#batch.length > 0) {
      await insertRows(this.#client, this.#table, this.#batch, this.#rowType).catch((error: Error) => {
        throw new Error(
          `The rows of ${this.#table!.table} cannot be restored: ${error.message}. Nothing was changed.`,
          {
            cause: error,
          },
        );
      });
    }
    this.#batch = [];
    this.#characters = 0;
  }
}

/** Inserts rows given as composite literals. `offset 0` makes Postgres parse each literal once, not once per column. */
export async function insertRows(
  client: pg.ClientBase,
  { table, columns, generated }: TableColumns,
  rows: readonly string[],
  rowType: string = table,
): Promise<void> {
  const insertable = columns
    .filter((column) => !generated.includes(column))
    .map((column) => pg.escapeIdentifier(column));
  const target = insertable.length > 0 ? `${table} (${insertable}) overriding system value` : table;
  await client.query(
    `insert into ${target}
     select ${insertable.map((column) => `(r).${column}`)}
       from (select line::${rowType} as r from unnest($1::text[]) as line offset 0) as rows`,
    [rows],
  );
}

export async function setSequence(client: pg.ClientBase, { sequence, last, isCalled }: ArchiveSequence): Promise<void> {
  await client.query("select pg_catalog.setval($1::regclass, $2::bigint, $3)", [sequence, last, isCalled]);
}
