/** The work that a lock on a table blocks. */
export type BlockedWork = "writes" | "reads and writes";

/** The modes of locks on tables that others wait for, from weak to strong. */
const BLOCKING_MODES: readonly (readonly [mode: string, blocks: BlockedWork])[] = [
  ["ShareLock", "writes"],
  ["ShareRowExclusiveLock", "writes"],
  ["ExclusiveLock", "writes"],
  ["AccessExclusiveLock", "reads and writes"],
];

/** The strongest mode that others wait for; null if there is none. */
export function strongestBlockingMode(modes: readonly string[]): { mode: string; blocks: BlockedWork } | null {
  const strongest = BLOCKING_MODES.findLast(([mode]) => modes.includes(mode));
  return strongest ? { mode: strongest[0], blocks: strongest[1] } : null;
}

/** The name in the manual of Postgres: `access exclusive` for `AccessExclusiveLock`. */
export function lockModeName(mode: string): string {
  return mode
    .replace(/Lock$/, "")
    .replaceAll(/(?<=[a-z])(?=[A-Z])/g, " ")
    .toLowerCase();
}
