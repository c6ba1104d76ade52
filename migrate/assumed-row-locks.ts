import type { RelationState, RowCounts, StatementStates } from "./measure-statement.ts";
import { type FoundRowLocks, listLockableTables, type RowLockFinder, type TableUse } from "./row-locks.ts";
import { FILLS_SMALL_TABLES } from "./statement-verdict.ts";

const LOCKS_ROWS = new RegExp(
  [
    String.raw`\bfor\s+((no\s+key\s+)?update|share)\b`,
    String.raw`\bupdate\s+(only\s+)?\S+.*?\bset\b`,
    String.raw`\b(delete\s+from|merge\s+into|do\s+update)\b`,
    // This matches queries of an earlier statement that may lock rows.
    String.raw`^(fetch|move|execute)\b`,
  ].join("|"),
  "is",
);

/**
 * Finds locked rows where they cannot be tried: in a copy without rows, and in a database that others use. Each statement, function or trigger
 * that locks or changes rows locks the table, which shows the rows' locks. Inserts and checks of foreign keys take such locks too, so the text
 * of the statement, and of the functions and triggers that it runs, tells them apart. In a copy without rows, a loop or condition may not
 * reach its statements: then the tables that such a text names count.
 */
export function assumeRowLocks({ hasRows, estimate }: RowCounts): RowLockFinder {
  return async (states) => {
    const { sql, texts } = states;
    if (!hasRows && sql.includes(FILLS_SMALL_TABLES)) return new Map();
    const uses = listLockableTables(states);
    const isLocking = texts.some((text) => LOCKS_ROWS.test(text));
    const locked = uses.filter((use) => {
      const { newModes, inserts } = use;
      if (use.changes || (isLocking && !inserts && isNewlyLocked(use, hasRows))) return true;
      if (!(hasRows ? use.isRead : use.isScanned)) return false;
      return isLocking || (newModes.includes("RowExclusiveLock") && !inserts);
    });
    const tables = locked.map(({ table }) => table);
    const isIndirect = texts.length > 1 || /^(do|call)\b/i.test(texts[0] ?? "");
    if (tables.length === 0 && isLocking && isIndirect && !hasRows) tables.push(...listNamedTables(states));
    return toRowCounts(tables, estimate);
  };
}

/** A search by `ctid` counts as no scan, and a join may end before its second table if the first one has no rows. */
function isNewlyLocked({ table, newModes, isTouched }: TableUse, hasRows: boolean): boolean {
  return hasRows ? isTouched && table.modes.includes("RowShareLock") : newModes.length > 0;
}

function toRowCounts(tables: readonly RelationState[], estimate: RowCounts["estimate"]): FoundRowLocks {
  return new Map(tables.map((table) => [table.oid, estimate(table)] as const).filter(([, rows]) => rows > 0));
}

function listNamedTables({ begun, after, texts }: StatementStates): RelationState[] {
  const words = new Set(texts.flatMap((text) => text.match(/[\w$]+/g) ?? []));
  return [...after.values()].filter(
    (table) => begun.has(table.oid) && table.kind === "r" && words.has(table.name.slice(table.name.indexOf(".") + 1)),
  );
}
