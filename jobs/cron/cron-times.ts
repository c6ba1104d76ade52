import { Cron } from "croner";

type CronText = { readonly cron: string; readonly timeZone: string };

type DueTimes = {
  /** The last times up to `until`, the oldest first. */
  readonly due: readonly Date[];
  /** The first time after `until`; null if there is none. */
  readonly next: Date | null;
};

/** The number of times of a long period that are returned. */
export const MAX_DUE_TIMES = 100;
const MINUTE_MS = 60_000;
/** Croner reads `sun` (0) as 7 at the end of a range, so that `sun-sun` would be the whole week. */
const SUNDAY_ONLY = /\b(0|sun)-sun\b/gi;

/**
 * Finds the times after one minute and up to another. A fixed time that daylight saving skips is the first minute after the
 * gap, and one that it repeats counts once. Texts with `*` or steps in the minute or the hour are intervals: they match in
 * both of the repeated hours, and not in the gap.
 */
export function findDueTimes({ cron, timeZone }: CronText, after: Date, until: Date): DueTimes {
  const times = new Cron(cron.trim().replace(SUNDAY_ONLY, "0-0"), {
    timezone: timeZone,
    paused: true,
    mode: "5-part",
    fixedTimeRule: "no-wildcard",
  });
  const first = times.nextRun(after);
  if (first === null || first > until) return { due: [], next: first };
  const second = times.nextRun(first);
  if (second === null || second > until) return { due: [first], next: second };
  const latest = times.previousRuns(MAX_DUE_TIMES, new Date(until.getTime() + MINUTE_MS));
  return { due: latest.filter((time) => time > after && time <= until).reverse(), next: times.nextRun(until) };
}
