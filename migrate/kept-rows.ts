import pg from "pg";
import { quotedName, withClient } from "#postgres/client";
import { displayPath } from "./committed-migrations.ts";
import { splitStatements } from "./split-statements.ts";

const DROP_TABLE = /^drop\s+table\s+(?:if\s+exists\s+)?(?<names>.+?)(?:\s+(?:cascade|restrict))?$/is;
const NAME = /(?:"(?:[^"]|"")+"|[\w$\u0080-\uffff]+)/;
/** `public.notes`, `"Notes"`. */
const TABLE_NAME = new RegExp(`^${NAME.source}(?:\\s*\\.\\s*${NAME.source})?$`);
/** The schema that holds the rows meanwhile: no dump of the schema shows it. */
const KEEPING_SCHEMA = "graphile_migrate";

/** A file of `current/`. */
type ScriptFile = { readonly file: string; readonly sql: string };
export type ReportLine = (line: string) => void;

type TableColumn = {
  readonly name: string;
  readonly type: string;
  /** True if an inserted row has to have a value. */
  readonly isRequired: boolean;
  readonly hasDefault: boolean;
};

/** A table with rows that a file is about to drop. */
type DroppedTable = {
  readonly file: string;
  readonly schema: string;
  readonly name: string;
  readonly oid: number;
  readonly rows: number;
  readonly columns: readonly TableColumn[];
};

/** A table whose rows cannot come back, and why. */
export type LostTable = { readonly table: DroppedTable; readonly problem: string };

/** The rows as texts, which survive if a type of the table is dropped too. */
export type KeptTable = DroppedTable & { readonly copy: string };

/** Copies the rows that the file is about to drop. */
export async function keepRows(client: pg.ClientBase, file: ScriptFile): Promise<KeptTable[]> {
  return copyTables(client, await findDroppedTables(client, [file]));
}

/** Puts the rows back into tables that have the same columns. The table that was dropped last comes first, since others refer to it. */
export async function restoreKeptRows(
  client: pg.ClientBase,
  kept: readonly KeptTable[],
  report: ReportLine,
): Promise<void> {
  for (const table of kept.toReversed()) {
    report(`${displayPath(table.file)}: drops ${nameOf(table)} and its ${rowCount(table.rows)}.`);
    const problem = (await findColumnProblem(client, table)) ?? (await tryToInsert(client, table, report));
    if (problem === null) await client.query(`drop table ${table.copy}`);
    else report(`  The rows could not be kept: ${problem}. They are in ${table.copy}, as texts.`);
  }
}

/** Keeps rows of tables during work on other connections. If that fails, the copies of tables that are still there are dropped. */
export async function withKeptRows(
  url: string,
  tables: readonly DroppedTable[],
  report: ReportLine,
  work: () => Promise<void>,
): Promise<void> {
  const kept = await withClient(url, (client) => copyTables(client, tables));
  try {
    await work();
  } catch (error) {
    await withClient(url, (client) => dropNeedlessCopies(client, kept, report));
    throw error;
  }
  if (kept.length === 0) return;
  await withClient(url, async (client) => {
    await client.query("begin");
    await restoreKeptRows(client, kept, report);
    await client.query("commit");
  });
}

/** The tables to which the rows cannot come back, because they have other columns in the database of the client, or are not there. */
export async function findLostTables(client: pg.ClientBase, tables: readonly DroppedTable[]): Promise<LostTable[]> {
  const lost: LostTable[] = [];
  for (const table of tables) {
    const problem = await findColumnProblem(client, table);
    if (problem !== null) lost.push({ table, problem });
  }
  return lost;
}

/** `"public"."notes" and its 2 rows: it is not created again`. */
export function describeLostTable({ table, problem }: LostTable): string {
  return `${nameOf(table)} and its ${rowCount(table.rows)}: ${problem}`;
}

async function findColumnProblem(client: pg.ClientBase, table: DroppedTable): Promise<string | null> {
  const columns = await readColumns(client, nameOf(table));
  if (columns.length === 0) return "it is not created again";
  const missing = table.columns.find(({ name, type }) => {
    return !columns.some((column) => column.name === name && column.type === type);
  });
  if (missing) return `it has no column ${missing.name} ${missing.type}`;
  const required = columns.find(
    ({ name, isRequired }) => isRequired && !table.columns.some((column) => column.name === name),
  );
  return required ? `its new column ${required.name} requires a value` : null;
}

/** The tables with rows that scripts drop, each once, in the order of the scripts. */
export async function findDroppedTables(client: pg.ClientBase, files: readonly ScriptFile[]): Promise<DroppedTable[]> {
  const dropped = new Map<number, DroppedTable>();
  for (const { file, sql } of files) {
    for (const table of await findNamedTables(client, sql)) {
      const counted = await client.query<{ rows: string }>(`select pg_catalog.count(*) as rows from ${nameOf(table)}`);
      const rows = Number(counted.rows[0]!.rows);
      if (rows > 0) dropped.set(table.oid, { ...table, file, rows, columns: await readColumns(client, nameOf(table)) });
    }
  }
  return [...dropped.values()];
}

async function findNamedTables(
  client: pg.ClientBase,
  sql: string,
): Promise<Pick<DroppedTable, "schema" | "name" | "oid">[]> {
  const names = splitStatements(sql).flatMap((statement) => {
    const list = DROP_TABLE.exec(statement.sql)?.groups?.names ?? "";
    return list.split(",").map((name) => name.trim());
  });
  const { rows } = await client.query<Pick<DroppedTable, "schema" | "name" | "oid">>(
    `select distinct on (class.oid) namespace.nspname as schema, class.relname as name, class.oid::pg_catalog.int8::int as oid
     from pg_catalog.unnest($1::pg_catalog.text[]) with ordinality as named (name, place)
     join pg_catalog.pg_class as class on class.oid = pg_catalog.to_regclass(named.name)
     join pg_catalog.pg_namespace as namespace on namespace.oid = class.relnamespace
     where class.relkind in ('r', 'p') order by class.oid, named.place`,
    [names.filter((name) => TABLE_NAME.test(name))],
  );
  return rows.toSorted((one, other) => placeOf(names, one) - placeOf(names, other));
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

async function copyTables(client: pg.ClientBase, tables: readonly DroppedTable[]): Promise<KeptTable[]> {
  const kept: KeptTable[] = [];
  for (const table of tables) {
    const copy = quotedName(KEEPING_SCHEMA, `rows_of_${table.oid}_${Date.now()}`);
    const texts = table.columns.map(({ name }) => `${quotedName(name)}::pg_catalog.text as ${quotedName(name)}`);
    await client.query(`create table ${copy} as select ${texts.join(", ")} from ${nameOf(table)}`);
    const about = `@sample none\n@anonymize empty\nRows of ${nameOf(table)}, as texts, which ${displayPath(table.file)} drops.`;
    await client.query(`comment on table ${copy} is ${pg.escapeLiteral(about)}`);
    kept.push({ ...table, copy });
  }
  return kept;
}

async function dropNeedlessCopies(
  client: pg.ClientBase,
  kept: readonly KeptTable[],
  report: ReportLine,
): Promise<void> {
  for (const table of kept) {
    const { rows } = await client.query("select from pg_catalog.pg_class where oid = $1", [table.oid]);
    if (rows.length > 0) await client.query(`drop table ${table.copy}`);
    else report(`${nameOf(table)} was dropped; what it contained is in ${table.copy}, as texts (rows: ${table.rows}).`);
  }
}

/** The columns that can be written; empty if there is no such table. */
async function readColumns(client: pg.ClientBase, table: string): Promise<TableColumn[]> {
  const { rows } = await client.query<TableColumn>(
    `select attname as name, pg_catalog.format_type(atttypid, atttypmod) as type,
      attnotnull and not atthasdef and attidentity = '' as "isRequired", atthasdef or attidentity <> '' as "hasDefault"
     from pg_catalog.pg_attribute
     where attrelid = pg_catalog.to_regclass($1) and attnum > 0 and not attisdropped and attgenerated = '' order by attnum`,
    [table],
  );
  return rows;
}

/** Returns why the table refuses the rows, in which case the transaction can go on; null if it has them. */
async function tryToInsert(client: pg.ClientBase, table: KeptTable, report: ReportLine): Promise<string | null> {
  await client.query("savepoint kept_rows");
  try {
    const inserted = await insertRows(client, table);
    await client.query("release savepoint kept_rows");
    const given = table.rows - inserted;
    report(
      given === 0
        ? `  It has its ${rowCount(table.rows)} again.`
        : `  It has ${inserted} of them again, and in place of the others rows that the file inserts.`,
    );
    return null;
  } catch (error) {
    await client.query("rollback to savepoint kept_rows");
    return (error as Error).message;
  }
}

/**
 * Inserts the rows without users' triggers, which have already run for them; sequences continue after the inserted values. Rows that the
 * file has inserted again, with the same values in columns without a default, stay as they are. Returns the number of inserted rows.
 */
async function insertRows(client: pg.ClientBase, table: KeptTable): Promise<number> {
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
  const columns = table.columns.map((column) => quotedName(column.name)).join(", ");
  const described = table.columns.some(({ hasDefault }) => !hasDefault)
    ? table.columns.filter(({ hasDefault }) => !hasDefault)
    : table.columns;
  const texts = described.map((column) => `${quotedName(column.name)}::pg_catalog.text`).join(", ");
  const values = table.columns.map((column) => `${quotedName(column.name)}::${column.type}`).join(", ");
  await switchTriggers("disable");
  const { rowCount: inserted } = await client.query(
    `insert into ${name} (${columns}) overriding system value
     select ${values} from (
       select *, array[${texts}] as described, pg_catalog.row_number() over (partition by ${texts}) as nth from ${table.copy}
     ) as kept
     where not exists (
       select from (
         select array[${texts}] as described, pg_catalog.row_number() over (partition by ${texts}) as nth from ${name}
       ) as inserted
       where inserted.described operator(pg_catalog.=) kept.described and inserted.nth operator(pg_catalog.=) kept.nth
     )
     on conflict do nothing`,
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
  return inserted!;
}
