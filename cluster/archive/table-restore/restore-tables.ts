import type pg from "pg";
import { withClient } from "#postgres/client";
import { setPortableFormats } from "../content/content-tables.ts";
import { readByCursor } from "../content/read-rows.ts";
import { type AppliedRows, applyRows, keepWritten, settleWritten } from "./apply-rows.ts";
import { findChangedParts } from "./changed-parts.ts";
import { type CompareOptions, compareTable, type TableComparison } from "./compare-table.ts";
import { type OrderedTable, sortTables } from "./compared-tables.ts";
import type { TableSource } from "./table-source.ts";
import { findTarget } from "./target-table.ts";

export type RestoreTablesOptions = {
  /** The URL of the owner. */
  readonly url: string;
  readonly source: TableSource;
  readonly tables: readonly string[];
  readonly where: string | null;
  /** `preview` changes nothing, `insert` adds the missing rows, `overwrite` changes the different ones too. */
  readonly mode: "preview" | "insert" | "overwrite";
  /** Receives each row that differs, as JSON. */
  readonly reportRow?: ((row: DifferingRow) => Promise<void>) | undefined;
};

export type DifferingRow = {
  readonly table: string;
  readonly kind: "missing" | "different";
  readonly json: string;
};

export type RestoredTable = {
  readonly comparison: TableComparison;
  /** Null in a preview. */
  readonly applied: AppliedRows | null;
  /** The tables whose rows were changed when rows were deleted. */
  readonly dependents: readonly string[];
};

export function isDifferent({ comparison: { missing, different, onlyHere } }: RestoredTable): boolean {
  return missing > 0 || different > 0 || onlyHere !== 0;
}

/** Compares the archived rows of tables with the present ones, and restores them in one transaction. Never deletes a row. */
export async function restoreTables(options: RestoreTablesOptions): Promise<RestoredTable[]> {
  const { url, mode } = options;
  return withClient(url, async (client) => {
    await setPortableFormats(client);
    await client.query(mode === "preview" ? "begin isolation level repeatable read" : "begin");
    const targets: string[] = [];
    for (const name of options.tables) targets.push((await findTarget(client, name)).table);
    const restored: RestoredTable[] = [];
    for (const { table, postponed } of await sortTables(client, targets)) {
      const compare = { table, postponed, where: options.where, written: writtenName(restored.length) };
      restored.push(await restoreTable(client, options, compare));
    }
    if (mode === "preview") {
      await client.query("rollback");
      return restored;
    }
    for (const [index, { comparison, applied }] of restored.entries())
      if (applied && applied.inserted + applied.updated > 0)
        await settleWritten(client, writtenName(index), comparison);
    await recordRestore(client, restored);
    await client.query("commit");
    return restored;
  });
}

/** Returns the name of the temporary table with the rows that were written to the table at this index. */
const writtenName = (index: number) => `restored_written_${index}`;

async function restoreTable(
  client: pg.ClientBase,
  { source, mode, reportRow }: RestoreTablesOptions,
  { written, postponed, ...compare }: CompareOptions & Pick<OrderedTable, "postponed"> & { readonly written: string },
): Promise<RestoredTable> {
  const mayWrite = mode !== "preview" && !(await isUnchanged(client, source, compare));
  // The lock prevents changes after the comparison; others can still read the rows.
  if (mayWrite) await client.query(`lock table ${compare.table} in share row exclusive mode`);
  const comparison = await compareTable(client, source, compare);
  if (reportRow) await reportRows(client, comparison, reportRow);
  const dependents = await findDependents(client, comparison.target.table);
  if (mode === "preview") return { comparison, applied: null, dependents };
  if (!mayWrite) return { comparison, applied: { inserted: 0, updated: 0, skippedTriggers: [] }, dependents };
  const overwrite = mode === "overwrite";
  const applied = await applyRows(client, comparison, { overwrite, postponed });
  if (applied.inserted + applied.updated > 0) await keepWritten(client, written, { overwrite });
  return { comparison, applied, dependents };
}

/** An unchanged table is not locked. A backup file reveals nothing about a table before its rows are read. */
async function isUnchanged(
  client: pg.ClientBase,
  { databaseUrl }: TableSource,
  { table, where }: CompareOptions,
): Promise<boolean> {
  if (databaseUrl === null || where !== null) return false;
  const parts = await findChangedParts(client, await findTarget(client, table), databaseUrl);
  return parts?.numbers.length === 0;
}

async function reportRows(
  client: pg.ClientBase,
  { target, selectMissing, selectDifferent }: TableComparison,
  reportRow: NonNullable<RestoreTablesOptions["reportRow"]>,
): Promise<void> {
  const { table } = target;
  for await (const json of readByCursor(client, selectMissing)) await reportRow({ table, kind: "missing", json });
  if (selectDifferent === null) return;
  for await (const json of readByCursor(client, selectDifferent)) await reportRow({ table, kind: "different", json });
}

/** Finds the tables whose foreign keys delete or change rows when a row of the table is deleted. */
async function findDependents(client: pg.ClientBase, table: string): Promise<string[]> {
  const { rows } = await client.query<{ name: string }>(
    `select distinct conrelid::pg_catalog.regclass::pg_catalog.text as name from pg_catalog.pg_constraint
      where confrelid = pg_catalog.to_regclass($1) and contype = 'f' and confdeltype in ('c', 'n', 'd') and conrelid <> confrelid
        and conparentid = 0 order by 1`,
    [table],
  );
  return rows.map(({ name }) => name);
}

/** Writes the restore to the audit log, if the database has one, without the rows. */
async function recordRestore(client: pg.ClientBase, restored: readonly RestoredTable[]): Promise<void> {
  const { rows } = await client.query<{ has: boolean }>(
    "select pg_catalog.to_regprocedure('auth.log_event(text, bigint, auth.client_info, jsonb)') is not null as has",
  );
  if (!rows[0]!.has) return;
  for (const { comparison, applied } of restored) {
    if (!applied || applied.inserted + applied.updated === 0) continue;
    const { inserted, updated } = applied;
    const details = JSON.stringify({ table: comparison.target.table, inserted, updated });
    await client.query("select auth.log_event('rows.restored', null, null, $1)", [details]);
  }
}
