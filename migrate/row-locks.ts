import { strongestBlockingMode } from "./lock-modes.ts";
import type { MeasuredStates, RelationState, StatementStates } from "./measure-statement.ts";

/** By the number of the table: how many of its rows a statement has locked or changed, that were there before its transaction. */
export type FoundRowLocks = ReadonlyMap<number, number>;

/** Finds the tables of which a statement has locked rows that no earlier one of its transaction had. */
export type RowLockFinder = (states: StatementStates) => Promise<FoundRowLocks>;

/** Whoever locks a row holds one of these on its table. */
const ROW_LOCKING_MODES = ["RowShareLock", "RowExclusiveLock"];

/** Whether the transaction has a lock on the table that stops all writes, so that locks of rows do not matter. */
export function stopsAllWrites({ modes }: Pick<RelationState, "modes">): boolean {
  return strongestBlockingMode(modes) !== null;
}

/** What a statement has done with a table. */
export type TableUse = {
  readonly table: RelationState;
  /** Modes of locks that no statement before it has taken. */
  readonly newModes: readonly string[];
  /** Whether it was searched, and whether rows were found; by an index, too. */
  readonly isScanned: boolean;
  readonly isRead: boolean;
  /** Also by a place, which counts as no search. */
  readonly isTouched: boolean;
  readonly inserts: boolean;
  readonly changes: boolean;
};

/** The tables that a statement has used and that it may have locked rows of. */
export function listLockableTables({ begun, before, after }: MeasuredStates): TableUse[] {
  const byIndex = findIndexUse({ before, after });
  return [...after.values()].flatMap((table): TableUse[] => {
    const was = before.get(table.oid);
    if (!was || !begun.has(table.oid) || table.kind !== "r" || stopsAllWrites(table)) return [];
    if (!ROW_LOCKING_MODES.some((mode) => table.modes.includes(mode))) return [];
    const isScanned = table.scans > was.scans || byIndex.scanned.has(table.oid);
    const newModes = table.modes.filter((mode) => !was.modes.includes(mode));
    const isTouched = table.readBlocks > was.readBlocks;
    if (!isTouched && !isScanned && newModes.length === 0) return [];
    return [
      {
        table,
        newModes,
        isScanned,
        isRead: table.read > was.read || byIndex.read.has(table.oid),
        isTouched,
        inserts: table.inserted > was.inserted,
        changes: table.changed > was.changed,
      },
    ];
  });
}

/** The tables whose indexes were searched, and those of which rows were found so. */
function findIndexUse({ before, after }: Pick<MeasuredStates, "before" | "after">) {
  const scanned = new Set<number>();
  const read = new Set<number>();
  for (const { oid, table, scans, fetched, read: entries } of after.values()) {
    if (table === 0) continue;
    const was = before.get(oid);
    if (scans > (was?.scans ?? 0)) scanned.add(table);
    if (fetched > (was?.fetched ?? 0) || entries > (was?.read ?? 0)) read.add(table);
  }
  return { scanned, read };
}
