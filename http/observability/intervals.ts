export const INTERVAL_SECONDS = 10;
export const INTERVAL_MS = INTERVAL_SECONDS * 1_000;
/** The number of intervals that are kept: half an hour. */
export const MAX_INTERVALS = 180;

/**
 * Calls `record` at the end of each interval. The end is a multiple of the interval's length, so that intervals of several
 * processes can be added. Returns the function that stops it.
 */
export function atEachInterval(record: (at: number) => void): () => void {
  const lastEnd = () => Math.floor(Date.now() / INTERVAL_MS) * INTERVAL_MS;
  let timer: NodeJS.Timeout;
  const schedule = (at: number) => {
    timer = setTimeout(() => {
      // A timer may fire a moment early, or much later after the machine was suspended.
      const end = Math.max(at, lastEnd());
      record(end);
      schedule(end + INTERVAL_MS);
    }, at - Date.now()).unref();
  };
  schedule(lastEnd() + INTERVAL_MS);
  return () => clearTimeout(timer);
}
