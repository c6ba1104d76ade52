import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { addInterval, atEachInterval } from "../../../http/observability/intervals.ts";

describe("intervals", () => {
  beforeEach(() => void vi.useFakeTimers({ now: 1_700_000_001_000 }));
  afterEach(() => void vi.useRealTimers());

  test("end at multiples of ten seconds, each once, also after the clock was moved", () => {
    const ends: number[] = [];
    const stop = atEachInterval((at) => ends.push(at - 1_700_000_000_000));
    vi.advanceTimersByTime(29_000);
    expect(ends).toEqual([10_000, 20_000, 30_000]);
    vi.setSystemTime(1_700_000_095_000);
    vi.advanceTimersByTime(20_000);
    expect(ends.slice(3)).toEqual([100_000, 110_000]);
    vi.setSystemTime(1_700_000_012_000);
    vi.advanceTimersByTime(20_000);
    expect(ends.slice(5)).toEqual([10_000, 20_000, 30_000]);
    stop();
    vi.advanceTimersByTime(60_000);
    expect(ends).toHaveLength(8);
  });

  test("that the clock has passed before are replaced", () => {
    const intervals: { readonly at: number }[] = [];
    for (const at of [10, 20, 30, 20, 30]) addInterval(intervals, { at });
    expect(intervals).toEqual([{ at: 10 }, { at: 20 }, { at: 30 }]);
  });
});
