import { setTimeout as sleep } from "node:timers/promises";
import { lockModeName } from "./lock-modes.ts";
import { type LockHolder, type LockWait, type MigrationSession, type SeenLocks, withLockWatch } from "./lock-watch.ts";
import { splitStatements } from "./split-statements.ts";

/** How long a migration waits for locks, and others for the migration. */
export type LockLimits = {
  /** The timeout for each lock; 0: none. */
  readonly lockTimeoutMs: number;
  /** How often a migration that did not get a lock is run again. */
  readonly lockRetries: number;
  /** How long reads may wait for a migration; 0: any time. */
  readonly maxHoldMs: number;
};

type LockSettings = {
  readonly migrateLockTimeout: number;
  readonly migrateLockRetries: number;
  readonly migrateMaxHold: number;
};

export function lockLimitsOf({ migrateLockTimeout, migrateLockRetries, migrateMaxHold }: LockSettings): LockLimits {
  return { lockTimeoutMs: migrateLockTimeout, lockRetries: migrateLockRetries, maxHoldMs: migrateMaxHold };
}

export const NO_LOCK_LIMITS: LockLimits = { lockTimeoutMs: 0, lockRetries: 0, maxHoldMs: 0 };

const LOCK_NOT_AVAILABLE = "55P03";
/** The routine in Postgres's source that reports the timeout, whatever the language. `nowait` fails in another one. */
const TIMEOUT_ROUTINE = "ProcessInterrupts";
const FIRST_PAUSE_MS = 250;
const MAX_PAUSE_MS = 10_000;

type LockFault = { readonly code?: unknown; readonly routine?: unknown };

export function isLockTimeout({ code, routine }: LockFault): boolean {
  return code === LOCK_NOT_AVAILABLE && routine === TIMEOUT_ROUTINE;
}

type MigrationAttempt<T> = (session: MigrationSession) => Promise<(T & { readonly error: LockFault }) | null>;

/**
 * Repeats the attempt, after growing pauses, while it fails because a table's lock is not available: others wait behind it.
 * A wait for a row's lock is not repeated: nobody waits behind it, and the migration may have worked long. Null if it succeeds.
 */
export async function retryForLocks<T>(
  url: string,
  limits: LockLimits,
  report: (line: string) => void,
  attempt: MigrationAttempt<T>,
): Promise<{ readonly fault: T; readonly seen: SeenLocks } | null> {
  for (let retries = 0; ; retries++) {
    const { result: fault, ...seen } = await withLockWatch(url, limits.maxHoldMs, attempt);
    if (fault === null) return null;
    if (!isLockTimeout(fault.error) || !seen.wait?.table || retries >= limits.lockRetries) return { fault, seen };
    const pause = Math.min(FIRST_PAUSE_MS * 2 ** retries, MAX_PAUSE_MS);
    report(`${describeWait(seen.wait, limits)} It is tried again in ${pause / 1000} s.`);
    await sleep(pause);
  }
}

/** Describes the holders of the lock, without the statements of others. */
function describeWait(wait: LockWait | null, { lockTimeoutMs }: LockLimits): string {
  const lock = wait?.table
    ? `The ${lockModeName(wait.mode)} lock on ${wait.table}`
    : wait?.tableOfRow
      ? `The lock of a row of ${wait.tableOfRow}`
      : "A lock";
  const holders = wait?.holders.map(describeHolder).join(", ");
  return `${lock} was not granted within ${lockTimeoutMs} ms.${holders ? ` It is held by ${holders}.` : ""}`;
}

function describeHolder({ pid, application, login, state, since }: LockHolder): string {
  const details = [
    application === "" ? "no application_name" : application,
    ...(login === null ? [] : [`login ${login}`]),
    state ?? "state not visible to this login",
    ...(since === null ? [] : [`in a transaction since ${since}`]),
  ];
  return `pid ${pid} (${details.join(", ")})`;
}

/** The remains of a migration that did not get a lock. */
const LEFT_BEHIND = {
  nothing: "Nothing of this migration was applied.",
  unknown: "This migration has no transaction, and may be partly applied.",
  transactions: "This transaction was rolled back.",
} as const;

export function explainTimeout(wait: LockWait | null, limits: LockLimits, left: keyof typeof LEFT_BEHIND): string {
  const tries = limits.lockRetries === 0 || !wait?.table ? "" : ` It was tried ${limits.lockRetries + 1} times.`;
  return (
    `${describeWait(wait, limits)}${tries} ${LEFT_BEHIND[left]} Wait for these sessions or end them, and run it again; ` +
    "MIGRATE_LOCK_TIMEOUT_MS and MIGRATE_LOCK_RETRIES say for how long it is tried."
  );
}

const WEAK_MODES: readonly string[] = ["AccessShareLock", "RowShareLock", "RowExclusiveLock"];
const USES_ROWS = /^(select|insert|update|delete|merge|with|copy|table)\b/i;

/** The offset of the first statement that may have waited. Running the statements again to find it could take as long as the migration. */
export function findWaiting(sql: string, wait: LockWait | null): number {
  const statements = splitStatements(sql);
  const table = (wait?.table ?? wait?.tableOfRow)?.split(".").at(-1);
  const usesRows = !wait?.table || WEAK_MODES.includes(wait.mode);
  const waiting = statements.find(
    (statement) => table !== undefined && statement.sql.includes(table) && USES_ROWS.test(statement.sql) === usesRows,
  );
  return (waiting ?? statements[0])?.start ?? 0;
}

export function explainHeldReads(
  table: string,
  { maxHoldMs }: LockLimits,
  left = "Nothing of it was applied.",
): string {
  return (
    `It was cancelled, because reads of ${table} waited for it longer than ${maxHoldMs} ms (MIGRATE_MAX_HOLD_MS). ${left} ` +
    "`migrate rehearse` says which statement holds them, and its safe form."
  );
}
