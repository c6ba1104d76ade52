import pg from "pg";
import type { ArchiveTable } from "../content/archive-format.ts";
import { insertRows } from "../content/restore-rows.ts";
import { type ChangedParts, findChangedParts, isInParts, rowText } from "./changed-parts.ts";
import type { TableSource, TableSourceLine } from "./table-source.ts";
import { findTarget, quoteColumn, type TargetTable, usableKey } from "./target-table.ts";

/** The number of rows to print, as JSON. */
const EXAMPLES = 5;
const BATCH_ROWS = 500;
const BATCH_CHARACTERS = 4_000_000;
/** The temporary tables: the archived rows, a row in the order of the backup's columns, and the missing and different rows. */
export const ARCHIVED = "pg_temp.restored_rows";
const LITERAL = "pg_temp.restored_literal";
export const MISSING = "pg_temp.restored_missing";
export const DIFFERENT = "pg_temp.restored_different";

export type TableComparison = {
  readonly target: TargetTable;
  /** The columns that the backup and the table share. */
  readonly columns: readonly string[];
  /** The columns of the backup that the table no longer has. */
  readonly gone: readonly string[];
  /** The columns that were added to the table since the backup. */
  readonly added: readonly string[];
  readonly archived: number;
  readonly missing: number;
  readonly different: number;
  /** The number of rows that only the table has; null if there is a condition. */
  readonly onlyHere: number | null;
  /** Selects the rows of the backup that are missing here, as JSON. */
  readonly selectMissing: string;
  readonly missingExamples: readonly string[];
  /** Selects the key and the changed columns, each as `[here, in the backup]`, as JSON. Null if there is no key. */
  readonly selectDifferent: string | null;
  readonly differentExamples: readonly string[];
};

export type CompareOptions = {
  /** The name of the table as in SQL; without a schema it is in `public`. */
  readonly table: string;
  /** A condition in SQL on the rows of the backup; null for all rows. */
  readonly where: string | null;
};

/** Loads the archived rows into temporary tables of the transaction, and compares them with the present ones. Changes no row. */
export async function compareTable(
  client: pg.ClientBase,
  source: TableSource,
  { table, where }: CompareOptions,
): Promise<TableComparison> {
  const target = await findTarget(client, table);
  await client.query(`drop table if exists ${[ARCHIVED, LITERAL, MISSING, DIFFERENT].join(", ")}`);
  const parts =
    where === null && source.databaseUrl !== null ? await findChangedParts(client, target, source.databaseUrl) : null;
  const archived = await loadRows(client, source.readTable(target.table, parts), target);
  if (!archived) {
    throw new Error(`The backup of ${source.madeAt} has no table ${target.table}. Was it renamed, or created later?`);
  }
  const { columns } = archived;
  const key = usableKey(target, columns);
  if (where !== null) await deleteOthers(client, where);
  await client.query(`analyze ${ARCHIVED}`);
  await findMissing(client, target, { key, columns, parts });
  const different = await findDifferent(client, target, key, columns);
  const selectDifferent = key && differentRows(target, key, columns);
  const { rows } = await client.query<{ archived: string; missing: string }>(
    `select (select pg_catalog.count(*) from ${ARCHIVED}) as archived, (select pg_catalog.count(*) from ${MISSING}) as missing`,
  );
  return {
    target: { ...target, key },
    ...archived,
    archived: parts?.archived ?? Number(rows[0]!.archived),
    missing: Number(rows[0]!.missing),
    different,
    onlyHere: where === null ? await countOnlyHere(client, target, { key, columns, parts }) : null,
    selectMissing: MISSING_ROWS,
    missingExamples: await readExamples(client, MISSING_ROWS),
    selectDifferent,
    differentExamples: selectDifferent === null ? [] : await readExamples(client, selectDifferent),
  };
}

type LoadedColumns = Pick<TableComparison, "columns" | "gone" | "added">;

/** Returns null if the backup has no such table. */
async function loadRows(
  client: pg.ClientBase,
  lines: AsyncIterable<TableSourceLine>,
  target: TargetTable,
): Promise<LoadedColumns | null> {
  let loaded: LoadedColumns | null = null;
  let batch: string[] = [];
  let characters = 0;
  const flush = async () => {
    if (batch.length > 0) await insertLoaded(client, batch, loaded!.columns);
    batch = [];
    characters = 0;
  };
  for await (const line of lines) {
    if (typeof line === "string") {
      batch.push(line);
      characters += line.length;
      if (batch.length >= BATCH_ROWS || characters > BATCH_CHARACTERS) await flush();
      continue;
    }
    await flush();
    if (!loaded) {
      loaded = matchColumns(line, target);
      await client.query(
        `create temporary table ${ARCHIVED.slice("pg_temp.".length)} on commit drop as
         select ${columnList(loaded.columns)} from ${target.relation} with no data`,
      );
    }
    await makeLiteralType(client, line, target);
  }
  await flush();
  return loaded;
}

function matchColumns({ columns: archived }: ArchiveTable, { table, columns: present }: TargetTable): LoadedColumns {
  const names = present.map(({ name }) => name);
  const columns = names.filter((name) => archived.includes(name));
  if (columns.length === 0) throw new Error(`${table} has no column that it had in the backup.`);
  return {
    columns,
    gone: archived.filter((name) => !names.includes(name)),
    added: names.filter((name) => !archived.includes(name)),
  };
}

/** A type with the columns of the backup in their order, to parse its rows. Partitions may have another order. */
async function makeLiteralType(
  client: pg.ClientBase,
  { columns: archived }: ArchiveTable,
  { relation, columns: present }: TargetTable,
): Promise<void> {
  const names = present.map(({ name }) => name);
  const typed = archived.map((name) =>
    names.includes(name) ? quoteColumn(name) : `null::pg_catalog.text as ${quoteColumn(name)}`,
  );
  await client.query(
    `drop table if exists ${LITERAL};
     create temporary table ${LITERAL.slice("pg_temp.".length)} on commit drop as select ${typed} from ${relation} with no data`,
  );
}

async function insertLoaded(client: pg.ClientBase, rows: readonly string[], columns: readonly string[]): Promise<void> {
  await insertRows(client, { table: ARCHIVED, columns, generated: [] }, rows, LITERAL).catch((error: Error) => {
    throw new Error(`The archived rows do not fit the columns of today: ${error.message}.`, { cause: error });
  });
}

/** The condition runs with the search path of users, for their functions and operators. */
async function deleteOthers(client: pg.ClientBase, where: string): Promise<void> {
  await client.query("set local search_path to default");
  await client.query(`delete from ${ARCHIVED} where (${where}) is not true`).catch((error: Error) => {
    throw new Error(`--where cannot be used: ${error.message}.`, { cause: error });
  });
  await client.query("set local search_path to ''");
}

type UsableKey = TargetTable["key"];

/** Returns SQL that is true if a row of the table (h) has the key of an archived one (a). */
export function matches({ columns }: NonNullable<UsableKey>): string {
  return columns.map(({ name, equals }) => `h.${quoteColumn(name)} ${equals} a.${quoteColumn(name)}`).join(" and ");
}

type ComparedRows = {
  readonly key: UsableKey;
  readonly columns: readonly string[];
  readonly parts: ChangedParts | null;
};

/** If there is no key, the table must contain each row as often as the backup. */
async function findMissing(
  client: pg.ClientBase,
  { relation }: TargetTable,
  { key, columns, parts }: ComparedRows,
): Promise<void> {
  const places = key
    ? `select a.ctid as place from ${ARCHIVED} as a where not exists (select from ${relation} as h where ${matches(key)})`
    : `select a.place from (
         select a.ctid as place, ${rowText("a", columns)} as content,
           pg_catalog.row_number() over (partition by ${rowText("a", columns)}) as number
         from ${ARCHIVED} as a
       ) as a left join (
         select ${rowText("h", columns)} as content, pg_catalog.count(*) as number from ${relation} as h where ${isInParts("h", parts)} group by 1
       ) as h on h.content = a.content
       where a.number > coalesce(h.number, 0)`;
  await client.query(`create temporary table ${MISSING.slice("pg_temp.".length)} on commit drop as ${places}`);
}

async function findDifferent(
  client: pg.ClientBase,
  { relation }: TargetTable,
  key: UsableKey,
  columns: readonly string[],
): Promise<number> {
  const places = key
    ? `select a.ctid as place from ${ARCHIVED} as a join ${relation} as h on ${matches(key)}
        where ${rowText("a", columns)} is distinct from ${rowText("h", columns)}`
    : `select ctid as place from ${ARCHIVED} limit 0`;
  const { rowCount } = await client.query(
    `create temporary table ${DIFFERENT.slice("pg_temp.".length)} on commit drop as ${places}`,
  );
  return rowCount ?? 0;
}

async function countOnlyHere(
  client: pg.ClientBase,
  { relation }: TargetTable,
  { key, columns, parts }: ComparedRows,
): Promise<number> {
  const count = key
    ? `select pg_catalog.count(*) as count from ${relation} as h
        where ${isInParts("h", parts)} and not exists (select from ${ARCHIVED} as a where ${matches(key)})`
    : `select coalesce(pg_catalog.sum(h.number - coalesce(a.number, 0)), 0) as count from (
         select ${rowText("h", columns)} as content, pg_catalog.count(*) as number from ${relation} as h where ${isInParts("h", parts)} group by 1
       ) as h left join (
         select ${rowText("a", columns)} as content, pg_catalog.count(*) as number from ${ARCHIVED} as a group by 1
       ) as a on a.content = h.content where h.number > coalesce(a.number, 0)`;
  const { rows } = await client.query<{ count: string }>(count);
  return Number(rows[0]!.count);
}

export function columnList(columns: readonly string[]): string {
  return columns.map(quoteColumn).join(", ");
}

async function readExamples(client: pg.ClientBase, select: string): Promise<string[]> {
  const { rows } = await client.query<{ row: string }>(`${select} limit ${EXAMPLES}`);
  return rows.map(({ row }) => row);
}

const MISSING_ROWS = `
  select pg_catalog.row_to_json(a.*)::pg_catalog.text as row
    from ${ARCHIVED} as a join ${MISSING} as m on m.place = a.ctid order by a.ctid`;

function differentRows(
  { relation }: TargetTable,
  key: NonNullable<UsableKey>,
  columns: readonly string[],
): string | null {
  const keyNames = key.columns.map(({ name }) => name);
  const pairs = columns
    .filter((name) => !keyNames.includes(name))
    .map(
      (name) => `(${literal(name)}, h.${quoteColumn(name)}::pg_catalog.text, a.${quoteColumn(name)}::pg_catalog.text)`,
    );
  if (pairs.length === 0) return null;
  const keyParts = keyNames.map((name) => `${literal(name)}, h.${quoteColumn(name)}`);
  return `
    select pg_catalog.json_build_object('key', pg_catalog.json_build_object(${keyParts}), 'changed', (
        select pg_catalog.json_object_agg(v.name, pg_catalog.json_build_array(v.here, v.archived))
          from (values ${pairs}) as v (name, here, archived) where v.here is distinct from v.archived
      ))::pg_catalog.text as row
      from ${ARCHIVED} as a join ${DIFFERENT} as d on d.place = a.ctid join ${relation} as h on ${matches(key)}
     order by a.ctid`;
}

const literal = (text: string) => pg.escapeLiteral(text);
