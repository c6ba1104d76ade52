import { strongestBlockingMode } from "./lock-modes.ts";
import type { MeasuredStates, RelationState, StatementStates } from "./measure-statement.ts";

/** The number of rows from before the transaction that a statement has locked or changed, by the oid of the table. */
export type FoundRowLocks = ReadonlyMap<number, number>;

/** Finds the tables where a statement has locked rows that no earlier statement of its transaction had locked. */
export type RowLockFinder = (states: StatementStates) => Promise<FoundRowLocks>;

/** Each session that locks a row holds one of these locks on its table. */
const ROW_LOCKING_MODES = ["RowShareLock", "RowExclusiveLock"];

/** True if the transaction has a lock on the table that stops all writes, so that locks of rows do not matter. */
export function stopsAllWrites({ modes }: Pick<RelationState, "modes">): boolean {
  return strongestBlockingMode(modes) !== null;
}

/** A statement's use of a table. */
export type TableUse = {
  readonly table: RelationState;
  /** Modes of locks that no statement before it has taken. */
  readonly newModes: readonly string[];
  /** `isScanned`: the table was searched; `isRead`: rows were found; both also count indexes. */
  readonly isScanned: boolean;
  readonly isRead: boolean;
  /** True for any access, also by `ctid`, which counts as no scan. */
  readonly isTouched: boolean;
  readonly inserts: boolean;
  readonly changes: boolean;
};

/** The tables that a statement has used and whose rows it may have locked. */
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

/** The tables whose indexes were searched, and the tables whose rows were found that way. */
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
