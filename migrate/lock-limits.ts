import { setTimeout as sleep } from "node:timers/promises";
import { lockModeName } from "./lock-modes.ts";
import { type LockHolder, type LockWait, type MigrationSession, type SeenLocks, withLockWatch } from "./lock-watch.ts";

/** How long a migration waits for locks, and others for the migration. */
export type LockLimits = {
  /** For each lock; 0: any time. */
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

export const LOCK_NOT_AVAILABLE = "55P03";
const FIRST_PAUSE_MS = 250;
const MAX_PAUSE_MS = 10_000;

type MigrationAttempt<T> = (session: MigrationSession) => Promise<(T & { readonly error: { code?: unknown } }) | null>;

/** Runs the attempt again, after a pause that grows, while it fails because a lock is not available. Null if it succeeds. */
export async function retryForLocks<T>(
  url: string,
  limits: LockLimits,
  report: (line: string) => void,
  attempt: MigrationAttempt<T>,
): Promise<{ readonly fault: T; readonly seen: SeenLocks } | null> {
  for (let retries = 0; ; retries++) {
    const { result: fault, ...seen } = await withLockWatch(url, limits.maxHoldMs, attempt);
    if (fault === null) return null;
    if (fault.error.code !== LOCK_NOT_AVAILABLE || retries >= limits.lockRetries) return { fault, seen };
    const pause = Math.min(FIRST_PAUSE_MS * 2 ** retries, MAX_PAUSE_MS);
    report(`${describeWait(seen.wait, limits)} It is tried again in ${pause / 1000} s.`);
    await sleep(pause);
  }
}

/** Who holds the lock, without the statements of others. */
export function describeWait(wait: LockWait | null, { lockTimeoutMs }: LockLimits): string {
  const lock = wait?.table ? `The ${lockModeName(wait.mode)} lock on ${wait.table}` : "A lock";
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

export function explainTimeout(wait: LockWait | null, limits: LockLimits): string {
  const tries = limits.lockRetries === 0 ? "" : ` It was tried ${limits.lockRetries + 1} times.`;
  return (
    `${describeWait(wait, limits)}${tries} Nothing of this migration was applied. Wait for these sessions or end them, and run it again; ` +
    "MIGRATE_LOCK_TIMEOUT_MS and MIGRATE_LOCK_RETRIES say for how long it is tried."
  );
}

export function explainHeldReads(table: string, { maxHoldMs }: LockLimits): string {
  return (
    `It was cancelled, because reads of ${table} waited for it longer than ${maxHoldMs} ms (MIGRATE_MAX_HOLD_MS). Nothing of it was applied. ` +
    "`migrate rehearse` says which statement holds them, and its safe form."
  );
}
