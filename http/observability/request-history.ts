import { addInterval, atEachInterval, lastHalfHour } from "./intervals.ts";
import { BUCKET_COUNT, percentile } from "./metrics.ts";

/** The counts of one interface since the start. */
export type RequestTotals = {
  readonly statuses: ReadonlyMap<number, number>;
  /** The durations by bucket, not cumulative. */
  readonly buckets: Float64Array;
};

/** Returns the counts by interface. */
type RequestTotalsReader = () => ReadonlyMap<string, RequestTotals>;

type IntervalCounts = { readonly statuses: Readonly<Record<string, number>>; readonly buckets: readonly number[] };

/** The counts of one interval; interfaces without requests are left out. */
export type RequestInterval = {
  /** The end of the interval, in milliseconds since 1970. */
  readonly at: number;
  readonly interfaces: Readonly<Record<string, IntervalCounts>>;
};

/** The requests of the last half hour. They cost nothing per request: the counters are read once per interval. */
export class RequestHistory {
  readonly #readTotals: RequestTotalsReader;
  readonly #stop: () => void;
  #previous: ReadonlyMap<string, RequestTotals>;
  readonly #intervals: RequestInterval[] = [];

  constructor(readTotals: RequestTotalsReader) {
    this.#readTotals = readTotals;
    this.#previous = readTotals();
    this.#stop = atEachInterval((at) => this.#record(at));
  }

  /** Returns the intervals of the last half hour; those without requests are left out. */
  get intervals(): readonly RequestInterval[] {
    return lastHalfHour(this.#intervals);
  }

  close(): void {
    this.#stop();
  }

  #record(at: number): void {
    const totals = this.#readTotals();
    const counted = [...totals].flatMap(([name, total]) => {
      const counts = difference(total, this.#previous.get(name));
      return counts ? [[name, counts] as const] : [];
    });
    this.#previous = totals;
    if (counted.length === 0) return;
    addInterval(this.#intervals, { at, interfaces: Object.fromEntries(counted) });
  }
}

/** Returns null if there were no requests. */
function difference(total: RequestTotals, previous: RequestTotals | undefined): IntervalCounts | null {
  const statuses = [...total.statuses].flatMap(([status, count]) => {
    const more = count - (previous?.statuses.get(status) ?? 0);
    return more > 0 ? [[status, more] as const] : [];
  });
  if (statuses.length === 0) return null;
  const buckets = Array.from(total.buckets, (count, index) => count - (previous?.buckets[index] ?? 0));
  return { statuses: Object.fromEntries(statuses), buckets };
}

type IntervalSummary = {
  /** The end of the interval. */
  readonly at: string;
  readonly count: number;
  readonly p50_ms: number;
  readonly p99_ms: number;
  readonly interfaces: Readonly<Record<string, InterfaceSummary>>;
};

type InterfaceSummary = {
  readonly statuses: Readonly<Record<string, number>>;
  readonly p50_ms: number;
  readonly p99_ms: number;
};

/** Returns the intervals of all processes after `since` (in milliseconds since 1970), added up, the oldest first. */
export function summarizeIntervals(intervals: readonly RequestInterval[], since: number): IntervalSummary[] {
  const byTime = Map.groupBy(
    intervals.filter(({ at }) => at > since),
    ({ at }) => at,
  );
  return [...byTime].sort(([a], [b]) => a - b).map(([at, same]) => summarizeInterval(at, same));
}

function summarizeInterval(at: number, intervals: readonly RequestInterval[]): IntervalSummary {
  const counts = intervals.flatMap(({ interfaces }) => Object.entries(interfaces));
  const byInterface = Map.groupBy(counts, ([name]) => name);
  const interfaces = [...byInterface].map(([name, same]) => {
    const statuses = addUp(same.map(([, each]) => each.statuses));
    return [name, { statuses, ...percentilesOf(same.map(([, each]) => each.buckets)) }] as const;
  });
  const count = counts.reduce((sum, [, { buckets }]) => sum + buckets.reduce((total, each) => total + each, 0), 0);
  const whole = percentilesOf(counts.map(([, { buckets }]) => buckets));
  return { at: new Date(at).toISOString(), count, ...whole, interfaces: Object.fromEntries(interfaces) };
}

function percentilesOf(histograms: readonly (readonly number[])[]): { p50_ms: number; p99_ms: number } {
  const buckets = Array.from({ length: BUCKET_COUNT }, (_, index) =>
    histograms.reduce((sum, histogram) => sum + histogram[index]!, 0),
  );
  return { p50_ms: percentile(buckets, 0.5), p99_ms: percentile(buckets, 0.99) };
}

/** Returns the sums of several counters by key. */
export function addUp(counters: readonly Readonly<Record<string, number>>[]): Record<string, number> {
  const sums = new Map<string, number>();
  for (const [key, count] of counters.flatMap((each) => Object.entries(each))) {
    sums.set(key, (sums.get(key) ?? 0) + count);
  }
  return Object.fromEntries(sums);
}
