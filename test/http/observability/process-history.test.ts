import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { ProcessHistory, type ProcessReadings, sumSamples } from "../../../http/observability/process-history.ts";

function readings(parts: { readonly processorSeconds: number; readonly memoryBytes: number }): ProcessReadings {
  const pool = { connections: 3, max: 10, inFlight: 2, waiting: 1 };
  return {
    ...parts,
    pools: { read: pool, write: pool, slow: pool, identity: pool } as unknown as ProcessReadings["pools"],
    realtime: { sockets: 5, channels: 4, subscriptions: 3 },
    graphql: { sockets: 1, operations: 9, subscriptions: 2 },
  };
}

describe("the values of a process in the last half hour", () => {
  beforeEach(() => void vi.useFakeTimers({ now: 1_700_000_001_000 }));
  afterEach(() => void vi.useRealTimers());

  test("are those at the end of each interval, and the processor time within it", () => {
    let current = readings({ processorSeconds: 100, memoryBytes: 7 });
    const history = new ProcessHistory(() => current);
    expect(history.samples).toEqual([]);
    vi.advanceTimersByTime(9_000);
    current = readings({ processorSeconds: 105, memoryBytes: 8 });
    vi.advanceTimersByTime(10_000);
    expect(history.samples).toEqual([
      expect.objectContaining({ at: 1_700_000_010_000, processorCores: 0, memoryBytes: 7 }),
      {
        ...{ at: 1_700_000_020_000, processorCores: 0.5, memoryBytes: 8 },
        ...{ connections: 12, inFlight: 8, waiting: 4, sockets: 6, channels: 4, subscriptions: 5 },
      },
    ]);
    vi.advanceTimersByTime(60 * 60_000);
    expect(history.samples).toHaveLength(180);
    history.close();
    vi.advanceTimersByTime(60_000);
    expect(history.samples.at(-1)!.at).toBe(1_700_003_620_000);
  });

  test("are added by interval over all processes", () => {
    const sample = (at: number, memoryBytes: number, connections: number) => ({
      ...{ at, memoryBytes, connections, processorCores: 0.25 },
      ...{ inFlight: 1, waiting: 1, sockets: 1, channels: 1, subscriptions: 1 },
    });
    const sums = sumSamples([sample(20_000, 1, 2), sample(10_000, 3, 4), sample(20_000, 10, 20)]);
    expect(sums).toEqual([
      sample(10_000, 3, 4),
      {
        ...{ at: 20_000, memoryBytes: 11, connections: 22, processorCores: 0.5 },
        ...{ inFlight: 2, waiting: 2, sockets: 2, channels: 2, subscriptions: 2 },
      },
    ]);
  });
});
