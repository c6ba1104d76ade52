import type { AsOwner } from "../database/as-owner.ts";
import type { Logger } from "../log.ts";
import { ownerQuestion } from "../owner-question.ts";

/** How a caller stands after a request of theirs. */
export type Standing = {
  readonly isAdmitted: boolean;
  readonly limit: number;
  readonly remaining: number;
  /** When nothing is counted any more, in milliseconds since 1970. */
  readonly endsAt: number;
};

export type RequestLimit = {
  count(caller: string): Standing;
  /** Counts no longer together with the other gateways. */
  close(): void;
};

type Options = {
  /** Requests of one caller in a window of time. */
  readonly limit: number;
  readonly asOwner: AsOwner;
  readonly log: Pick<Logger, "warn">;
  readonly windowSeconds?: number;
};

/** What one caller has asked for since the window opened: here and, as far as is known, elsewhere. */
type Window = { points: number; endsAt: number; untold: number };
type Count = { readonly key: string; readonly points: number; readonly milliseconds: number };

const ONE_MINUTE = 60;
const SETTLE_EVERY_MS = 1_000;
/** A caller in a hurry is told of sooner: when this part of the limit was used here since the last time. */
const HURRY = 1 / 20;

const COUNT_REQUESTS = "select key, points, milliseconds from private.count_requests($1, $2, $3)";

/**
 * Counts in memory and settles with Postgres in the background: one statement a second for all callers, by which each
 * gateway hears what the others have counted. So all of them together may admit more than the limit by what each has
 * admitted since the last time: a twentieth of the limit, and what comes during one statement.
 */
export function makeRequestLimit({ limit, asOwner, log, windowSeconds = ONE_MINUTE }: Options): RequestLimit {
  const askOwner = ownerQuestion<Count>({
    asOwner,
    text: COUNT_REQUESTS,
    log,
    warning: "each gateway counts requests by itself: only the owner (OWNER_DATABASE_URL) can count them together",
  });
  const windows = new Map<string, Window>();
  /** Whose windows the others do not know all of. */
  const untold = new Set<string>();
  let timer: NodeJS.Timeout | undefined;
  let isSettling = false;
  /** A database that is not ours has nothing to count with. */
  let isShared = true;

  const settle = async (): Promise<void> => {
    clearTimeout(timer);
    timer = undefined;
    isSettling = true;
    const told = takeUntold();
    try {
      if (isShared && told.size > 0) hear(await askOwner([[...told.keys()], [...told.values()], windowSeconds]));
    } catch {
      // Without the database each gateway counts by itself.
    } finally {
      isSettling = false;
      forgetEnded();
      if (windows.size > 0) settleLater();
    }
  };

  const settleLater = (): void => {
    timer ??= setTimeout(settle, SETTLE_EVERY_MS).unref();
  };

  const takeUntold = (): ReadonlyMap<string, number> => {
    const counts = new Map<string, number>();
    for (const caller of untold) {
      const window = windows.get(caller)!;
      counts.set(caller, window.untold);
      window.untold = 0;
    }
    untold.clear();
    return counts;
  };

  const hear = (counts: readonly Count[]): void => {
    isShared &&= counts.length > 0;
    for (const { key, points, milliseconds } of counts) {
      const window = windows.get(key);
      if (!window) continue;
      window.points = points + window.untold;
      window.endsAt = Date.now() + milliseconds;
    }
  };

  /** Where the clock was set back, a window would seem to last for as long. */
  const isOpen = ({ endsAt }: Window, now: number): boolean => endsAt > now && endsAt - now < 2 * windowSeconds * 1000;

  /** The oldest come first. One that the others opened earlier ends earlier, and stays until its turn comes. */
  const forgetEnded = (): void => {
    const now = Date.now();
    for (const [caller, window] of windows) {
      if (isOpen(window, now)) return;
      if (!untold.has(caller)) windows.delete(caller);
    }
  };

  const openWindow = (caller: string, now: number): Window => {
    const window = { points: 0, endsAt: now + windowSeconds * 1000, untold: 0 };
    windows.delete(caller);
    windows.set(caller, window);
    untold.delete(caller);
    return window;
  };

  const tell = (caller: string, window: Window): void => {
    if (window.untold++ === 0) untold.add(caller);
    if (!isSettling && window.untold >= limit * HURRY) void settle();
    else settleLater();
  };

  return {
    count(caller) {
      const now = Date.now();
      const known = windows.get(caller);
      const window = known && isOpen(known, now) ? known : openWindow(caller, now);
      const isAdmitted = window.points < limit;
      if (isAdmitted) {
        window.points++;
        tell(caller, window);
      }
      return { isAdmitted, limit, remaining: Math.max(0, limit - window.points), endsAt: window.endsAt };
    },
    close() {
      isShared = false;
      clearTimeout(timer);
    },
  };
}
