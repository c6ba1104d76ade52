import type pg from "pg";
import { type MigrateSettings, releasedHistories } from "../migrate/histories.ts";
import { runMigrations } from "../migrate/migrate.ts";
import { withClient } from "../with-client.ts";
import { type ArchiveSequence, readArchive } from "./archive-format.ts";
import { type ContentTable, contentRelations, contentTables, setPortableFormats } from "./content-tables.ts";
import { insertRows } from "./insert-rows.ts";
import { type ArchiveSummary, inspectArchive } from "./inspect-archive.ts";
import { migrateTo, migrationsOf } from "./restore-migrations.ts";

const BATCH_ROWS = 500;
const BATCH_CHARACTERS = 4_000_000;

/**
 * Restores a backup into an empty database: runs the migrations that were applied when it was made, inserts the rows in
 * one transaction, then runs the later migrations. Checks as much as possible before it changes anything.
 */
export async function restoreArchive(file: string, given: MigrateSettings): Promise<ArchiveSummary> {
  const settings = { ...given, histories: given.histories ?? releasedHistories() };
  const archive = await inspectArchive(file);
  const migrations = await migrationsOf(archive.header, settings.histories);
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

const UNVALIDATED = `
  select format('alter table %s drop constraint %I', conrelid::regclass, conname) as lift, array_remove(array[
      format('alter table %s add constraint %I %s', conrelid::regclass, conname, pg_get_constraintdef(oid)),
      'comment on constraint ' || quote_ident(conname) || ' on ' || conrelid::regclass
        || ' is ' || quote_literal(obj_description(oid, 'pg_constraint'))], null) as impose
    from pg_constraint where contype = 'c' and conrelid <> 0 and not convalidated and coninhcount = 0`;

/** Drops constraints that are `not valid`, because older rows may violate them. Returns the statements that add them again. */
async function dropUnvalidatedChecks(client: pg.ClientBase): Promise<string[]> {
  const { rows } = await client.query<{ lift: string; impose: string[] }>(UNVALIDATED);
  for (const { lift } of rows) await client.query(lift);
  return rows.flatMap(({ impose }) => impose);
}

async function setSequence(client: pg.ClientBase, { sequence, last, isCalled }: ArchiveSequence): Promise<void> {
  await client.query("select pg_catalog.setval($1::regclass, $2::bigint, $3)", [sequence, last, isCalled]);
}
