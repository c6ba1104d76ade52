import { describe, expect, test } from "vitest";
import type { RunningState } from "#operations/admin-types";
import { addState, NO_HISTORY, requestSeries, summarizeInterfaces } from "../../../studio/running/running-history.ts";

const START = Date.parse("2026-11-22T12:00:00.000Z");
const at = (seconds: number) => new Date(START + seconds * 1000).toISOString();

function stateAt(seconds: number, parts: Partial<RunningState> = {}): RunningState {
  return {
    at: at(seconds),
    processes: [],
    requests: { interval_seconds: 5, intervals: [] },
    errors: {},
    pools: [],
    replicas: [],
    realtime: { sockets: 0, channels: 0, subscriptions: 0 },
    graphql: { sockets: 0, operations: 0, subscriptions: 0 },
    database: { max_connections: 100, sees_all: true, connections: [], sessions: [] },
    slow_statements: { source: "service", least_ms: 0, statements: [] },
    tasks: null,
    schedules: null,
    webhooks: null,
    ...parts,
  };
}

const process = (pid: number, processor_seconds: number, uptime_seconds = 100) => ({
  pid,
  processor_seconds,
  uptime_seconds,
  memory_bytes: 1,
  heap_bytes: 1,
});
const interval = (seconds: number, statuses: Record<string, number>) => ({
  at: at(seconds),
  count: Object.values(statuses).reduce((sum, each) => sum + each, 0),
  p50_ms: 1,
  p99_ms: seconds,
  interfaces: { table: { statuses, p50_ms: 1, p99_ms: seconds } },
});

describe("the history of the page of what is running", () => {
  test("has processor time from one answer to the next, and ignores processes that were replaced", () => {
    const first = addState(NO_HISTORY, stateAt(0, { processes: [process(1, 10), process(2, 20)] }));
    expect(first.samples[0]!.processor).toBeCloseTo(0.3);
    const second = addState(first, stateAt(2, { processes: [process(1, 11), process(3, 0.5, 1)] }));
    expect(second.samples[1]!.processor).toBeCloseTo(0.5 + 0.5);
  });

  test("keeps five minutes", () => {
    const old = addState(
      NO_HISTORY,
      stateAt(0, { requests: { interval_seconds: 5, intervals: [interval(0, { 200: 1 })] } }),
    );
    const history = addState(old, stateAt(301));
    expect([history.samples.length, history.intervals.length]).toEqual([1, 0]);
  });

  test("has a rate for each interval, zero where there were no requests", () => {
    const intervals = [interval(5, { 200: 8, 503: 2 }), interval(15, { 200: 5 })];
    const { rate, failures } = requestSeries(
      addState(NO_HISTORY, stateAt(17, { requests: { interval_seconds: 5, intervals } })),
    );
    expect(rate).toHaveLength(60);
    expect(rate.slice(-4).map(({ value }) => value)).toEqual([0, 2, 0, 1]);
    expect(failures.slice(-4).map(({ value }) => value)).toEqual([0, 0.4, 0, 0]);
  });

  test("sums the last minute by interface, with the worst percentiles", () => {
    const intervals = [interval(0, { 200: 9 }), interval(65, { 200: 8 }), interval(70, { 200: 2, 404: 2 })];
    const history = addState(NO_HISTORY, stateAt(72, { requests: { interval_seconds: 5, intervals } }));
    expect(summarizeInterfaces(history)).toEqual([
      { name: "table", statuses: { 200: 10, 404: 2 }, perSecond: 0.2, p50: 1, p99: 70 },
    ]);
  });
});
