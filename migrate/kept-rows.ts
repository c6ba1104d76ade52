import type pg from "pg";
import { quotedName, withClient } from "#postgres/client";
import { displayPath } from "./committed-migrations.ts";
import { splitStatements } from "./split-statements.ts";

/** A line of a file in `current/` that keeps the rows of tables that the file drops and creates again. */
const KEEP_ROWS = /^--![ \t]*keep-rows[ \t]*$/m;
const DROP_TABLE = /^drop\s+table\s+(?:if\s+exists\s+)?(?<names>.+?)(?:\s+(?:cascade|restrict))?$/is;
const NAME = /(?:"(?:[^"]|"")+"|[\w$\u0080-\uffff]+)/;
/** `public.notes`, `"Notes"`. */
const TABLE_NAME = new RegExp(`^${NAME.source}(?:\\s*\\.\\s*${NAME.source})?$`);
/** The schema that holds the rows meanwhile: no dump of the schema shows it. */
const KEEPING_SCHEMA = "graphile_migrate";

/** A file of `current/`. */
type ScriptFile = { readonly file: string; readonly sql: string };
export type ReportLine = (line: string) => void;

type DroppedTable = {
  readonly schema: string;
  readonly name: string;
  readonly oid: number;
  readonly rows: number;
};

type KeptColumn = { readonly name: string; readonly type: string };

/** The rows as texts, which survive if a type of the table is dropped too. */
export type KeptTable = DroppedTable & { readonly copy: string; readonly columns: readonly KeptColumn[] };

/** Reports the rows that the file is about to drop, and copies those to keep. */
export async function keepRows(client: pg.ClientBase, file: ScriptFile, report: ReportLine): Promise<KeptTable[]> {
  const isKept = KEEP_ROWS.test(file.sql);
  const kept: KeptTable[] = [];
  for (const table of await findDroppedTables(client, file.sql)) {
    report(`${displayPath(file.file)}: drops ${nameOf(table)} and its ${rowCount(table.rows)}.`);
    if (isKept) kept.push(await copyRows(client, table));
    else report('  To keep the rows of a table that comes back with the same columns, add the line "--! keep-rows".');
  }
  return kept;
}

/** Puts the rows back into tables that have the same columns. The table that was dropped last comes first, since others refer to it. */
export async function restoreKeptRows(
  client: pg.ClientBase,
  kept: readonly KeptTable[],
  report: ReportLine,
): Promise<void> {
  for (const table of kept.toReversed()) {
    const columns = await readColumns(client, nameOf(table));
    const missing = table.columns.find(({ name, type }) => {
      return !columns.some((column) => column.name === name && column.type === type);
    });
    if (columns.length === 0 || missing) {
      const reason = missing && columns.length > 0 ? `it has no column ${missing.name} ${missing.type}` : "it is gone";
      report(`  The rows of ${nameOf(table)} could not be kept: ${reason}. They are in ${table.copy}, as texts.`);
      continue;
    }
    await insertRows(client, table);
    await client.query(`drop table ${table.copy}`);
    report(`  ${nameOf(table)} has its ${rowCount(table.rows)} again.`);
  }
}

/** Keeps rows during work on other connections: the copies stay if it fails. */
export async function withKeptRows(
  url: string,
  files: readonly ScriptFile[],
  report: ReportLine,
  work: () => Promise<void>,
): Promise<void> {
  const kept = await withClient(url, async (client) => {
    const tables = new Map<number, KeptTable>();
    for (const file of files) for (const table of await keepRows(client, file, report)) tables.set(table.oid, table);
    return [...tables.values()];
  });
  await work();
  if (kept.length === 0) return;
  await withClient(url, async (client) => {
    await client.query("begin");
    await restoreKeptRows(client, kept, report);
    await client.query("commit");
  });
}

/** The tables with rows that a script drops, each once. */
async function findDroppedTables(client: pg.ClientBase, sql: string): Promise<DroppedTable[]> {
  const names = splitStatements(sql).flatMap((statement) => {
    const list = DROP_TABLE.exec(statement.sql)?.groups?.names ?? "";
    return list.split(",").map((name) => name.trim());
  });
  const { rows } = await client.query<Omit<DroppedTable, "rows">>(
    `select distinct on (class.oid) namespace.nspname as schema, class.relname as name, class.oid::pg_catalog.int8::int as oid
     from pg_catalog.unnest($1::pg_catalog.text[]) with ordinality as named (name, place)
     join pg_catalog.pg_class as class on class.oid = pg_catalog.to_regclass(named.name)
     join pg_catalog.pg_namespace as namespace on namespace.oid = class.relnamespace
     where class.relkind in ('r', 'p') order by class.oid, named.place`,
    [names.filter((name) => TABLE_NAME.test(name))],
  );
  const inOrder = rows.toSorted((one, other) => placeOf(names, one) - placeOf(names, other));
  const dropped: DroppedTable[] = [];
  for (const table of inOrder) {
    const counted = await client.query<{ rows: string }>(`select pg_catalog.count(*) as rows from ${nameOf(table)}`);
    const count = Number(counted.rows[0]!.rows);
    if (count > 0) dropped.push({ ...table, rows: count });
  }
  return dropped;
}

function placeOf(names: readonly string[], { name }: Pick<DroppedTable, "name">): number {
  return names.findIndex((each) => each.replaceAll('"', "").toLowerCase().endsWith(name.toLowerCase()));
}

function nameOf({ schema, name }: Pick<DroppedTable, "schema" | "name">): string {
  return quotedName(schema, name);
}

function rowCount(rows: number): string {
  return rows === 1 ? "row" : `${rows} rows`;
}

async function copyRows(client: pg.ClientBase, table: DroppedTable): Promise<KeptTable> {
  const columns = await readColumns(client, nameOf(table));
  const copy = quotedName(KEEPING_SCHEMA, `rows_of_${table.oid}_${Date.now()}`);
  const texts = columns.map(({ name }) => `${quotedName(name)}::pg_catalog.text as ${quotedName(name)}`);
  await client.query(`create table ${copy} as select ${texts.join(", ")} from ${nameOf(table)}`);
  return { ...table, copy, columns };
}

/** The columns that can be written; empty if there is no such table. */
async function readColumns(client: pg.ClientBase, table: string): Promise<KeptColumn[]> {
  const { rows } = await client.query<KeptColumn>(
    `select attname as name, pg_catalog.format_type(atttypid, atttypmod) as type from pg_catalog.pg_attribute
     where attrelid = pg_catalog.to_regclass($1) and attnum > 0 and not attisdropped and attgenerated = '' order by attnum`,
    [table],
  );
  return rows;
}

/** Inserts the rows without users' triggers, which have already run for them; sequences continue after the inserted values. */
async function insertRows(client: pg.ClientBase, table: KeptTable): Promise<void> {
  const name = nameOf(table);
  const { rows: triggers } = await client.query<{ name: string }>(
    `select tgname as name from pg_catalog.pg_trigger
     where tgrelid = pg_catalog.to_regclass($1) and not tgisinternal and tgenabled = 'O'`,
    [name],
  );
  const switchTriggers = async (state: "disable" | "enable") => {
    for (const trigger of triggers)
      await client.query(`alter table ${name} ${state} trigger ${quotedName(trigger.name)}`);
  };
  const columns = table.columns.map((column) => quotedName(column.name));
  const values = table.columns.map((column) => `${quotedName(column.name)}::${column.type}`);
  await switchTriggers("disable");
  await client.query(
    `insert into ${name} (${columns.join(", ")}) overriding system value select ${values.join(", ")} from ${table.copy}`,
  );
  await client.query("set constraints all immediate");
  await switchTriggers("enable");
  for (const { name: column } of table.columns) {
    const { rows } = await client.query<{ sequence: string | null }>(
      "select pg_catalog.pg_get_serial_sequence($1, $2) as sequence",
      [name, column],
    );
    const sequence = rows[0]!.sequence;
    if (sequence === null) continue;
    await client.query(
      `select pg_catalog.setval($1, highest) from (select pg_catalog.max(${quotedName(column)}) as highest from ${name}) as found
       where highest > 0`,
      [sequence],
    );
  }
}
