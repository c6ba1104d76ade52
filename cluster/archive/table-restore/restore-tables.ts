import type pg from "pg";
import { withClient } from "#postgres/client";
import { setPortableFormats } from "../content-tables.ts";
import { type AppliedRows, applyRows } from "./apply-rows.ts";
import { type CompareOptions, compareTable, type TableComparison } from "./compare-table.ts";
import type { TableSource } from "./table-source.ts";
import { findTarget } from "./target-table.ts";

export type RestoreTablesOptions = {
  /** Of the owner. */
  readonly url: string;
  readonly source: TableSource;
  /** Those that others refer to first. */
  readonly tables: readonly string[];
  readonly where: string | null;
  /** `preview` changes nothing, `insert` adds the missing rows, `overwrite` changes the different ones too. */
  readonly mode: "preview" | "insert" | "overwrite";
};

export type RestoredTable = {
  readonly comparison: TableComparison;
  /** Null in a preview. */
  readonly applied: AppliedRows | null;
  /** Tables whose rows were changed with deleted ones. */
  readonly dependents: readonly string[];
};

/** Compares the archived rows of tables with the present ones, and restores them in one transaction. Never deletes a row. */
export async function restoreTables(options: RestoreTablesOptions): Promise<RestoredTable[]> {
  const { url, tables, mode } = options;
  return withClient(url, async (client) => {
    await setPortableFormats(client);
    await client.query("begin");
    const restored: RestoredTable[] = [];
    for (const table of tables) restored.push(await restoreTable(client, options, { table, where: options.where }));
    if (mode === "preview") {
      await client.query("rollback");
      return restored;
    }
    await recordRestore(client, restored);
    await client.query("commit");
    return restored;
  });
}

async function restoreTable(
  client: pg.ClientBase,
  { source, mode }: RestoreTablesOptions,
  compare: CompareOptions,
): Promise<RestoredTable> {
  if (mode !== "preview") {
    // The rows stay as they were compared; others can read them meanwhile.
    const { table } = await findTarget(client, compare.table);
    await client.query(`lock table ${table} in share row exclusive mode`);
  }
  const comparison = await compareTable(client, source, compare);
  const applied = mode === "preview" ? null : await applyRows(client, comparison, { overwrite: mode === "overwrite" });
  return { comparison, applied, dependents: await findDependents(client, comparison.target.table) };
}

/** Their foreign keys delete or change rows when a row of the table is deleted. */
async function findDependents(client: pg.ClientBase, table: string): Promise<string[]> {
  const { rows } = await client.query<{ name: string }>(
    `select distinct conrelid::pg_catalog.regclass::pg_catalog.text as name from pg_catalog.pg_constraint
      where confrelid = pg_catalog.to_regclass($1) and contype = 'f' and confdeltype in ('c', 'n', 'd') and conrelid <> confrelid
        and conparentid = 0 order by 1`,
    [table],
  );
  return rows.map(({ name }) => name);
}

/** In the audit log, if the database has one; without the rows. */
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
