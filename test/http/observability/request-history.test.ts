import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { BUCKET_COUNT, DurationHistogram, percentile } from "../../../http/observability/metrics.ts";
import {
  addUp,
  RequestHistory,
  type RequestTotals,
  summarizeIntervals,
} from "../../../http/observability/request-history.ts";

/** The counts of these durations, in milliseconds. */
function bucketsOf(...milliseconds: number[]): Float64Array {
  const histogram = new DurationHistogram();
  for (const each of milliseconds) histogram.add(each);
  const buckets = new Float64Array(BUCKET_COUNT);
  histogram.addTo(buckets);
  return buckets;
}

describe("a percentile", () => {
  const of = (fraction: number, ...milliseconds: number[]) => percentile([...bucketsOf(...milliseconds)], fraction);

  test("is within the bucket of its rank", () => {
    const durations = Array.from({ length: 100 }, (_, index) => (index < 90 ? 3 : 200));
    expect(of(0.5, ...durations)).toBeGreaterThan(2.5);
    expect(of(0.5, ...durations)).toBeLessThanOrEqual(5);
    expect(of(0.99, ...durations)).toBeGreaterThan(100);
    expect(of(0.99, ...durations)).toBeLessThanOrEqual(250);
  });

  test("is at most the last bound, and grows with the fraction", () => {
    expect(of(0.99, 1e6)).toBe(30_000);
    expect(of(0.99, 1, 1, 1, 1)).toBeGreaterThanOrEqual(of(0.5, 1, 1, 1, 1));
  });
});

describe("the requests of the last half hour", () => {
  beforeEach(() => void vi.useFakeTimers({ now: 1_700_000_001_000 }));
  afterEach(() => void vi.useRealTimers());

  const totals = (counts: Record<number, number>, buckets: Float64Array): Map<string, RequestTotals> =>
    new Map([["table", { statuses: new Map(Object.entries(counts).map(([code, n]) => [Number(code), n])), buckets }]]);

  test("are what was counted in each interval, which ends at a multiple of ten seconds", () => {
    let current = totals({ 200: 7 }, bucketsOf(1, 1, 1, 1, 1, 1, 1));
    const history = new RequestHistory(() => current);
    vi.advanceTimersByTime(10_000);
    expect(history.intervals).toEqual([]);
    current = totals({ 200: 8, 404: 1 }, bucketsOf(1, 1, 1, 1, 1, 1, 1, 1, 20));
    vi.advanceTimersByTime(10_000);
    expect(history.intervals).toMatchObject([
      { at: 1_700_000_020_000, interfaces: { table: { statuses: { 200: 1, 404: 1 } } } },
    ]);
    expect(history.intervals[0]!.interfaces.table!.buckets.reduce((sum, count) => sum + count, 0)).toBe(2);
    vi.advanceTimersByTime(29 * 60_000);
    expect(history.intervals).toHaveLength(1);
    vi.advanceTimersByTime(60_000);
    expect(history.intervals).toEqual([]);
    history.close();
  });

  test("of several processes are added by interval, and only those after the last one that is known", () => {
    const interval = (at: number, code: number, ...milliseconds: number[]) => ({
      at,
      interfaces: { table: { statuses: { [code]: milliseconds.length }, buckets: [...bucketsOf(...milliseconds)] } },
    });
    const all = [interval(10_000, 200, 1, 1), interval(5_000, 200, 1), interval(10_000, 500, 300)];
    const [first, second, ...others] = summarizeIntervals(all, 0);
    expect(others).toEqual([]);
    expect(first).toMatchObject({ at: "1970-01-01T00:00:05.000Z", count: 1 });
    expect(second).toMatchObject({ count: 3, interfaces: { table: { statuses: { 200: 2, 500: 1 } } } });
    expect(second!.p99_ms).toBeGreaterThan(250);
    expect(summarizeIntervals(all, 5_000).map(({ count }) => count)).toEqual([3]);
  });

  test("are added by key, whatever the key is called", () => {
    expect(addUp([{ constructor: 1, a: 1 }, { a: 2 }])).toEqual({ constructor: 1, a: 3 });
  });
});
