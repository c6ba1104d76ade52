export const INTERVAL_SECONDS = 10;
const INTERVAL_MS = INTERVAL_SECONDS * 1_000;
/** The number of intervals that are kept: half an hour. */
const MAX_INTERVALS = 180;

/** A timer may fire a moment early. */
const TOLERANCE_MS = 1_000;

/**
 * Calls `record` at the end of each interval. The end is a multiple of the interval's length, so that intervals of several
 * processes can be added. Intervals are left out, or come again, if the clock was set. Returns the function that stops it.
 */
export function atEachInterval(record: (at: number) => void): () => void {
  const lastEnd = (at: number) => Math.floor(at / INTERVAL_MS) * INTERVAL_MS;
  let timer: NodeJS.Timeout;
  const schedule = (at: number) => {
    timer = setTimeout(() => {
      const end = lastEnd(Date.now() + TOLERANCE_MS);
      record(end);
      schedule(end + INTERVAL_MS);
    }, at - Date.now()).unref();
  };
  schedule(lastEnd(Date.now()) + INTERVAL_MS);
  return () => clearTimeout(timer);
}

/** Adds the last interval. Those that have the same end or a later one are from before the clock was set back. */
export function addInterval<T extends { readonly at: number }>(intervals: T[], added: T): void {
  while (intervals.length > 0 && intervals.at(-1)!.at >= added.at) intervals.pop();
  intervals.push(added);
  if (intervals.length > MAX_INTERVALS) intervals.shift();
}

/** Leaves out those that are older, because no later one followed. */
export function lastHalfHour<T extends { readonly at: number }>(intervals: readonly T[]): readonly T[] {
  const oldest = Date.now() - MAX_INTERVALS * INTERVAL_MS;
  return intervals.filter(({ at }) => at > oldest);
}
