import type pg from "pg";
import { assumeRowLocks } from "./assumed-row-locks.ts";
import { readExecutedTexts } from "./executed-texts.ts";
import {
  compareStates,
  measureCosts,
  prepareMeasuring,
  type RelationState,
  type RelationStates,
  type RowEstimates,
  readRelations,
  type StatementMeasures,
  type StatementStates,
} from "./measure-statement.ts";
import { type FoundRowLocks, type RowLockFinder, stopsAllWrites } from "./row-locks.ts";
import { runWithoutRows } from "./sql-transaction.ts";
import { judgeStatement, NO_WORK_UNDER_LOCKS, type StatementVerdict } from "./statement-verdict.ts";

type MeasureOptions = {
  readonly estimates: RowEstimates;
  /** False in a copy without rows. */
  readonly hasRows: boolean;
  /** Null if row locks cannot be tried: then they are assumed. */
  readonly findRowLocks: RowLockFinder | null;
};

type MeasuredStatement = {
  readonly judged: StatementMeasures & StatementVerdict;
  readonly before: RelationStates;
  readonly after: RelationStates;
};

/** Runs statements, one after the other. */
export type MeasuredTransaction = {
  /** The relations before the first statement. */
  readonly begun: RelationStates;
  /** Runs a statement; the last one includes the work that is deferred until the end of the transaction. */
  run(sql: string, options?: { readonly isLast?: boolean }): Promise<MeasuredStatement>;
};

/** Measures and judges the statements of the open transaction, whose locks are held until its end. */
export async function measureTransaction(
  client: pg.ClientBase,
  { estimates, hasRows, findRowLocks }: MeasureOptions,
): Promise<MeasuredTransaction> {
  await prepareMeasuring(client);
  const begun = await readRelations(client);
  let before = begun;
  let work = NO_WORK_UNDER_LOCKS;
  const lockedRows = new Map<number, number>();
  /** The largest number of rows that the transaction could have written to a table, had the copy any. */
  const missing = new Map<number, number>();
  const estimate = ({ oid, name }: RelationState) =>
    Math.max(begun.has(oid) ? estimates(name) : 0, missing.get(oid) ?? 0);
  const counts = { hasRows, estimate };
  const find = findRowLocks ?? assumeRowLocks(counts);
  return {
    begun,
    async run(sql, { isLast = false } = {}) {
      const costs = await measureCosts(client, async () => {
        await runWithoutRows(client, sql);
        if (isLast) await client.query("set constraints all immediate");
      });
      const after = await readRelations(client);
      const measuredStates = { sql, begun, before, after };
      const texts = findRowLocks === null ? await readExecutedTexts(client, measuredStates) : [];
      const states = { ...measuredStates, texts };
      const compared = compareStates(states, counts);
      const found = await find(states);
      for (const [oid, rows] of found) lockedRows.set(oid, rows);
      const measures = { ...compared, ...costs, lockedRows: listLockedRows(after, lockedRows, found) };
      if (!hasRows) addMissingRows(missing, states, measures);
      const { work: next, ...verdict } = judgeStatement(sql, measures, work);
      work = next;
      const start = before;
      before = after;
      return { judged: { ...measures, ...verdict }, before: start, after };
    },
  };
}

function listLockedRows(
  after: RelationStates,
  locked: FoundRowLocks,
  found: FoundRowLocks,
): StatementMeasures["lockedRows"] {
  return [...after.values()]
    .filter((table) => locked.has(table.oid) && !stopsAllWrites(table))
    .map(({ oid, name }) => ({ relation: name, rows: locked.get(oid)!, isEarlier: !found.has(oid) }));
}

/** Assumes as many rows as the largest table has that the statement has read. */
function addMissingRows(
  missing: Map<number, number>,
  { before, after }: StatementStates,
  { scanned }: Pick<StatementMeasures, "scanned">,
): void {
  const rows = Math.max(0, ...scanned.map((each) => each.rows));
  for (const { oid, kind, modes } of after.values()) {
    const isFilled = kind === "m" ? !before.has(oid) : kind === "r" && modes.includes("RowExclusiveLock");
    if (isFilled || (kind === "r" && !before.has(oid))) missing.set(oid, Math.max(rows, missing.get(oid) ?? 0));
  }
}
