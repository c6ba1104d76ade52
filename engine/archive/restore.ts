import type pg from "pg";
import { type MigrateSettings, releasedHistories } from "../migrate/histories.ts";
import { runMigrations } from "../migrate/migrate.ts";
import { withClient } from "../with-client.ts";
import { readArchive, type Sequence } from "./format.ts";
import { insertRows } from "./insert-rows.ts";
import { type Archive, inspectArchive } from "./inspect.ts";
import { migrateTo, migrationsOf } from "./restore-migrations.ts";
import { type ContentTable, contentRelations, contentTables, speakPlainly } from "./tables.ts";

const ROWS_AT_ONCE = 500;
const CHARACTERS_AT_ONCE = 4_000_000;

/**
 * Fills an empty database: the migrations that the rows were under make the tables and the roles, the rows follow in one
 * transaction, and then the later migrations. Refuses before it changes anything where it can.
 */
export async function restoreArchive(file: string, given: MigrateSettings): Promise<Archive> {
  const settings = { ...given, histories: given.histories ?? releasedHistories() };
  const archive = await inspectArchive(file);
  const migrations = await migrationsOf(archive.header, settings.histories);
  await withClient(settings.url, async (client) => {
    await refuseUnlessEmpty(client);
    // Of a transaction that ends with the connection.
    await client.query("begin");
    await ignoreTriggers(client);
  });
  await migrateTo(migrations, settings);
  await withClient(settings.url, (client) => load(client, file, archive));
  await runMigrations({ name: "migrate" }, settings);
  return archive;
}

async function refuseUnlessEmpty(client: pg.ClientBase): Promise<void> {
  const tables = await contentTables(client);
  if (tables.length === 0) return;
  throw new Error(
    `The database is not empty: it has ${tables.length} tables, ${tables[0]!.table} among them. Nothing was changed. ` +
      "Restore into a new DATA_DIR or a new database.",
  );
}

async function load(client: pg.ClientBase, file: string, { tables }: Archive): Promise<void> {
  const here = new Map((await contentTables(client)).map((table) => [table.table, table]));
  const strange = tables.filter(({ table, columns }) => String(here.get(table)?.columns) !== String(columns));
  if (strange.length > 0) {
    const list = strange.map(({ table }) => table).join(", ");
    throw new Error(`The migrations make these tables otherwise, or not at all, so their rows have no place: ${list}`);
  }
  await speakPlainly(client);
  await client.query("begin");
  await ignoreTriggers(client);
  // The migrations have filled some of them.
  await client.query(`truncate ${[...here.keys()].join(", ")}`);
  const imposeAgain = await liftUnvalidated(client);
  let table: ContentTable | null = null;
  let waiting: string[] = [];
  let characters = 0;
  const flush = async () => {
    if (table && waiting.length > 0) await insertRows(client, table, waiting);
    waiting = [];
    characters = 0;
  };
  for await (const line of readArchive(file)) {
    if (typeof line === "string") {
      waiting.push(line);
      characters += line.length;
      if (waiting.length >= ROWS_AT_ONCE || characters > CHARACTERS_AT_ONCE) await flush();
      continue;
    }
    await flush();
    if ("table" in line) table = here.get(line.table)!;
    else if ("sequence" in line) await setSequence(client, line);
  }
  for (const statement of imposeAgain) await client.query(statement);
  for (const view of await contentRelations(client, "m")) await client.query(`refresh materialized view ${view}`);
  await client.query("commit");
  await client.query("analyze");
}

/** Neither foreign keys, since tables come in no order of theirs, nor what has happened once already. */
async function ignoreTriggers(client: pg.ClientBase): Promise<void> {
  await client.query("set local session_replication_role = replica").catch((error: unknown) => {
    if ((error as pg.DatabaseError).code !== "42501") throw error;
    throw new Error(
      "The owner may not restore: a superuser has to run GRANT SET ON PARAMETER session_replication_role TO the owner first, " +
        "which Postgres 14 does not have: there, restore as a superuser. Nothing was changed.",
    );
  });
}

const UNVALIDATED = `
  select format('alter table %s drop constraint %I', conrelid::regclass, conname) as lift, array_remove(array[
      format('alter table %s add constraint %I %s', conrelid::regclass, conname, pg_get_constraintdef(oid)),
      'comment on constraint ' || quote_ident(conname) || ' on ' || conrelid::regclass
        || ' is ' || quote_literal(obj_description(oid, 'pg_constraint'))], null) as impose
    from pg_constraint where contype = 'c' and conrelid <> 0 and not convalidated and coninhcount = 0`;

/** Checks that were added `not valid` hold for later rows alone. Gives the statements by which they are there again. */
async function liftUnvalidated(client: pg.ClientBase): Promise<string[]> {
  const { rows } = await client.query<{ lift: string; impose: string[] }>(UNVALIDATED);
  for (const { lift } of rows) await client.query(lift);
  return rows.flatMap(({ impose }) => impose);
}

async function setSequence(client: pg.ClientBase, { sequence, last, isCalled }: Sequence): Promise<void> {
  await client.query("select pg_catalog.setval($1::regclass, $2::bigint, $3)", [sequence, last, isCalled]);
}
