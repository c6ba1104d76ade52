import { describe, expect, test } from "vitest";
import type { RunningState } from "#operations/admin-types";
import {
  addState,
  chartSpan,
  lastInterval,
  NO_HISTORY,
  requestSeries,
  summarizeInterfaces,
} from "../../../studio/running/running-history.ts";

const START = Date.parse("2026-11-22T12:00:00.000Z");
const at = (seconds: number) => new Date(START + seconds * 1000).toISOString();

function stateAt(seconds: number, parts: Partial<RunningState> = {}): RunningState {
  return {
    at: at(seconds),
    processes: [],
    requests: { interval_seconds: 5, intervals: [] },
    samples: [],
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

const sample = (seconds: number, memory_bytes = 1) => ({
  at: at(seconds),
  memory_bytes,
  processor_cores: 0,
  connections: 0,
  in_flight: 0,
  waiting: 0,
  sockets: 0,
  channels: 0,
  subscriptions: 0,
});
const interval = (seconds: number, statuses: Record<string, number>) => ({
  at: at(seconds),
  count: Object.values(statuses).reduce((sum, each) => sum + each, 0),
  p50_ms: 1,
  p99_ms: seconds,
  interfaces: { table: { statuses, p50_ms: 1, p99_ms: seconds } },
});

describe("the history of the page of what is running", () => {
  test("has what the service recorded before the page was opened, and asks for what follows", () => {
    expect(lastInterval(NO_HISTORY)).toBe(null);
    const first = addState(NO_HISTORY, stateAt(62, { samples: [sample(50, 5), sample(60, 6)] }));
    const second = addState(first, stateAt(72, { samples: [sample(70, 7)] }));
    expect(second.samples.map(({ memory_bytes }) => memory_bytes)).toEqual([5, 6, 7]);
    expect(lastInterval(second)).toBe(at(70));
  });

  test("spans the time that the service has recorded: a minute at least, half an hour at most", () => {
    const spanAt = (seconds: number, samples: RunningState["samples"]) => {
      const { from, to } = chartSpan(addState(NO_HISTORY, stateAt(seconds, { samples })));
      return [from - START, to - START].map((each) => each / 1000);
    };
    expect(spanAt(100, [])).toEqual([40, 100]);
    expect(spanAt(1_000, [sample(200), sample(990)])).toEqual([200, 1_000]);
    expect(spanAt(4_000, [sample(2_300), sample(3_990)])).toEqual([2_300, 4_000]);
    const older = addState(NO_HISTORY, stateAt(100, { samples: [sample(50), sample(100)] }));
    const { from } = chartSpan(addState(older, stateAt(1_895, { samples: [sample(1_890)] })));
    expect((from - START) / 1000).toBe(100);
  });

  test("counts tasks from the first answer on", () => {
    const tasks = { queued: 3, running: 1, failed: 0, tasks: [] };
    const history = addState(addState(NO_HISTORY, stateAt(0, { tasks })), stateAt(2));
    expect(history.tasks.map(({ queued, running }) => [queued, running])).toEqual([
      [3, 1],
      [0, 0],
    ]);
  });

  test("keeps half an hour", () => {
    const requests = { interval_seconds: 5, intervals: [interval(0, { 200: 1 })] };
    const old = addState(NO_HISTORY, stateAt(0, { requests, samples: [sample(0)] }));
    const sizesAt = (seconds: number) => {
      const { intervals, samples, tasks } = addState(old, stateAt(seconds));
      return [intervals.length, samples.length, tasks.length];
    };
    expect(sizesAt(1_799)).toEqual([1, 1, 2]);
    expect(sizesAt(1_801)).toEqual([0, 0, 1]);
  });

  test("has a rate for each interval, zero where there were no requests", () => {
    const intervals = [interval(5, { 200: 8, 503: 2 }), interval(15, { 200: 5 })];
    const { rate, failures } = requestSeries(
      addState(NO_HISTORY, stateAt(17, { requests: { interval_seconds: 5, intervals } })),
    );
    expect(rate).toHaveLength(360);
    expect(rate.slice(-4).map(({ value }) => value)).toEqual([0, 2, 0, 1]);
    expect(failures.slice(-4).map(({ value }) => value)).toEqual([0, 0.4, 0, 0]);
  });

  test("has rates up to the last interval that the service tells of", () => {
    const intervals = [interval(5, { 200: 8 }), interval(10, { 200: 5 })];
    const samples = [{ at: at(10) }] as unknown as RunningState["samples"];
    const state = stateAt(15.5, { requests: { interval_seconds: 5, intervals }, samples });
    const { rate } = requestSeries(addState(NO_HISTORY, state));
    expect(rate.slice(-2)).toEqual([
      { at: START + 5_000, value: 1.6 },
      { at: START + 10_000, value: 1 },
    ]);
  });

  test("sums the last minute by interface, with the worst percentiles", () => {
    const intervals = [interval(0, { 200: 9 }), interval(65, { 200: 8 }), interval(70, { 200: 2, 404: 2 })];
    const history = addState(NO_HISTORY, stateAt(72, { requests: { interval_seconds: 5, intervals } }));
    expect(summarizeInterfaces(history)).toEqual([
      { name: "table", statuses: { 200: 10, 404: 2 }, perSecond: 0.2, p50: 1, p99: 70 },
    ]);
  });
});
