import type pg from "pg";
import { rowText } from "./changed-parts.ts";
import { ARCHIVED, columnList, DIFFERENT, MISSING, matches, type TableComparison } from "./compare-table.ts";
import { quoteColumn } from "./target-table.ts";

const FOREIGN_KEY = "23503";
const UNIQUE = "23505";
const NOT_NULL = "23502";

export type AppliedRows = {
  readonly inserted: number;
  readonly updated: number;
  /** The triggers that were not run. */
  readonly skippedTriggers: readonly string[];
};

type ApplyOptions = {
  readonly overwrite: boolean;
  /** The columns that get their values when the rows are settled. */
  readonly postponed: readonly string[];
};

/**
 * Inserts the missing rows of a comparison, and on request overwrites the different ones. Foreign keys and other constraints are checked, and
 * triggers after the change run, as counters and audit logs need. Row triggers before it do not: they would change the rows again, such as
 * the time of the last change.
 */
export async function applyRows(
  client: pg.ClientBase,
  comparison: TableComparison,
  { overwrite, postponed: columns }: ApplyOptions,
): Promise<AppliedRows> {
  const { target } = comparison;
  const postponed = columns.filter((name) => settableColumns(comparison).includes(name));
  const triggers = await disableTriggers(client, target.table, "before rows");
  // Triggers of users expect the search path of users; our statements name their schemas.
  await client.query("set local search_path to default");
  const inserted = await insertMissing(client, comparison, postponed).catch((error) => explain(error, target.table));
  const updated = overwrite
    ? await updateDifferent(client, comparison, postponed).catch((error) => explain(error, target.table))
    : 0;
  // A table with pending triggers cannot be altered.
  await client.query("set constraints all immediate").catch((error) => explain(error, target.table));
  await client.query("set local search_path to ''");
  await moveSequences(client, comparison);
  for (const { enable } of triggers) await client.query(enable);
  const expected = comparison.missing + (overwrite ? comparison.different : 0);
  if (inserted + updated !== expected) {
    throw new Error(
      `Only ${inserted + updated} of ${expected} rows could be written, because of a rule or trigger of ${target.table}.`,
    );
  }
  return { inserted, updated, skippedTriggers: triggers.map(({ name }) => name) };
}

/** Returns the columns that an update of a row with this key can set. */
function settableColumns({ target, columns }: TableComparison): string[] {
  if (!target.key) return [];
  const keyNames = target.key.columns.map(({ name }) => name);
  return target.columns
    .filter(({ name, isGenerated, isAlwaysIdentity }) => {
      return columns.includes(name) && !keyNames.includes(name) && !isGenerated && !isAlwaysIdentity;
    })
    .map(({ name }) => name);
}

const quoteSet = (columns: readonly string[]) =>
  columns.map((name) => `${quoteColumn(name)} = a.${quoteColumn(name)}`).join(", ");

/** Keeps the archived rows that were written, until the other tables are restored too. */
export async function keepWritten(
  client: pg.ClientBase,
  name: string,
  { overwrite }: Pick<ApplyOptions, "overwrite">,
): Promise<void> {
  await client.query(
    `create temporary table ${name} on commit drop as
     select a.* from ${ARCHIVED} as a join ${MISSING} as m on m.place operator(pg_catalog.=) a.ctid
     ${overwrite ? `union all select a.* from ${ARCHIVED} as a join ${DIFFERENT} as d on d.place operator(pg_catalog.=) a.ctid` : ""}`,
  );
}

/**
 * Restores the archived values of written rows: triggers of other restored rows may have changed them, such as a counter
 * that has counted them already, and postponed columns are null.
 */
export async function settleWritten(client: pg.ClientBase, name: string, comparison: TableComparison): Promise<void> {
  const { target, columns } = comparison;
  const settable = settableColumns(comparison);
  if (!target.key || settable.length === 0) return;
  const triggers = await disableTriggers(client, target.table, "all");
  // Constraints of users also expect the search path of users.
  await client.query("set local search_path to default");
  const update = `update ${target.relation} as h set ${quoteSet(settable)} from pg_temp.${name} as a
      where ${matches(target.key)} and ${rowText("a", columns)} is distinct from ${rowText("h", columns)}`;
  await client.query(update).catch((error) => explain(error, target.table));
  await client.query("set constraints all immediate").catch((error) => explain(error, target.table));
  await client.query("set local search_path to ''");
  for (const { enable } of triggers) await client.query(enable);
}

const TRIGGERS = `
  select tgname as name, pg_catalog.format('alter table %s disable trigger %I', tgrelid::regclass, tgname) as disable,
    pg_catalog.format('alter table %s enable %s trigger %I', tgrelid::regclass,
      case tgenabled when 'R' then 'replica' when 'A' then 'always' end, tgname) as enable
  from pg_catalog.pg_trigger
  where not tgisinternal and tgparentid = 0 and tgenabled in ('O', 'A') and ($2 or tgtype & 3 = 3) and tgtype & 20 <> 0 and tgrelid in (
    select pg_catalog.to_regclass($1) union select relid from pg_catalog.pg_partition_tree(pg_catalog.to_regclass($1)))`;

async function disableTriggers(
  client: pg.ClientBase,
  table: string,
  which: "before rows" | "all",
): Promise<readonly { readonly name: string; readonly enable: string }[]> {
  const { rows } = await client.query<{ name: string; disable: string; enable: string }>(TRIGGERS, [
    table,
    which === "all",
  ]);
  for (const { disable } of rows) await client.query(disable);
  return rows;
}

async function insertMissing(
  client: pg.ClientBase,
  { target, columns }: TableComparison,
  postponed: readonly string[],
): Promise<number> {
  const generated = target.columns.filter(({ isGenerated }) => isGenerated).map(({ name }) => name);
  const insertable = columns.filter((name) => !generated.includes(name));
  const { rowCount } = await client.query(
    `insert into ${target.table} (${columnList(insertable)}) overriding system value
     select ${insertable.map((name) => (postponed.includes(name) ? "null" : `a.${quoteColumn(name)}`))} from ${ARCHIVED} as a join ${MISSING} as m on m.place operator(pg_catalog.=) a.ctid
      order by a.ctid`,
  );
  return rowCount ?? 0;
}

async function updateDifferent(
  client: pg.ClientBase,
  comparison: TableComparison,
  postponed: readonly string[],
): Promise<number> {
  const { key, relation } = comparison.target;
  const settable = settableColumns(comparison).filter((name) => !postponed.includes(name));
  if (!key) return 0;
  if (settable.length === 0) return postponed.length > 0 ? comparison.different : 0;
  const { rowCount } = await client.query(
    `update ${relation} as h set ${quoteSet(settable)}
       from ${ARCHIVED} as a join ${DIFFERENT} as d on d.place operator(pg_catalog.=) a.ctid where ${matches(key)}`,
  );
  return rowCount ?? 0;
}

/** Moves sequences, because new rows must not get the numbers of restored ones. */
async function moveSequences(client: pg.ClientBase, { target, columns }: TableComparison): Promise<void> {
  for (const column of columns) {
    const { rows } = await client.query<{ sequence: string | null; ascends: boolean }>(
      `select s.name as sequence, seqincrement > 0 as ascends
         from (select pg_catalog.pg_get_serial_sequence($1, $2) as name) as s
         left join pg_catalog.pg_sequence on seqrelid = s.name::pg_catalog.regclass`,
      [target.table, column],
    );
    const { sequence, ascends } = rows[0]!;
    if (sequence === null) continue;
    const [furthest, beyond] = ascends ? ["max", ">"] : ["min", "<"];
    await client.query(
      `select pg_catalog.setval($1::pg_catalog.regclass, restored.value)
         from (select pg_catalog.${furthest}(${quoteColumn(column)})::pg_catalog.int8 as value from ${ARCHIVED}) as restored, ${sequence} as s
        where restored.value ${beyond} s.last_value or restored.value = s.last_value and not s.is_called`,
      [sequence],
    );
  }
}

function explain(error: pg.DatabaseError, table: string): never {
  const { code, message, detail } = error;
  const advice: Readonly<Record<string, string>> = {
    [FOREIGN_KEY]: "Restore the rows that they refer to as well: name that table by another --table before this one.",
    [UNIQUE]: "Another row has got the value since. Leave the restored one out by --where, or change the other one.",
    [NOT_NULL]: "The column was added since the backup, and has no default. Give it one for the time of the restore.",
  };
  const parts = [
    `The rows of ${table} cannot be restored: ${message}.`,
    detail,
    advice[code ?? ""],
    "Nothing was changed.",
  ];
  throw new Error(parts.filter(Boolean).join(" "), { cause: error });
}
