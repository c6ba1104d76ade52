import type { CountedInterval, ProcessState, RunningState } from "#operations/admin-types";
import type { ChartPoint } from "../components/chart.ts";

/** The values of one response of the service, without requests. */
export type RunningSample = {
  readonly at: number;
  readonly connections: number;
  readonly active: number;
  readonly waiting: number;
  readonly memoryBytes: number;
  /** The processor cores in use since the previous response. */
  readonly processor: number;
  readonly sockets: number;
  readonly channels: number;
  readonly subscriptions: number;
  readonly queued: number;
  readonly running: number;
};

/** The last minutes, as far as the page has seen them; the requests come from the service. */
export type RunningHistory = {
  readonly intervals: readonly CountedInterval[];
  readonly samples: readonly RunningSample[];
  readonly latest: RunningState | null;
};

export const NO_HISTORY: RunningHistory = { intervals: [], samples: [], latest: null };
export const SPAN_MS = 5 * 60_000;

export function addState(history: RunningHistory, state: RunningState): RunningHistory {
  const now = Date.parse(state.at);
  const intervals = [...history.intervals, ...state.requests.intervals];
  const samples = [...history.samples, toSample(state, history.latest)];
  return {
    intervals: intervals.filter(({ at }) => Date.parse(at) > now - SPAN_MS),
    samples: samples.filter(({ at }) => at > now - SPAN_MS),
    latest: state,
  };
}

function toSample(state: RunningState, previous: RunningState | null): RunningSample {
  const { database, processes, realtime, graphql, tasks, pools } = state;
  const sumOf = (numbers: readonly number[]) => numbers.reduce((sum, each) => sum + each, 0);
  return {
    at: Date.parse(state.at),
    connections: sumOf(database.connections.map(({ count }) => count)),
    active: sumOf(database.connections.filter((each) => each.state === "active").map(({ count }) => count)),
    waiting: sumOf(pools.map(({ waiting }) => waiting)),
    memoryBytes: sumOf(processes.map(({ memory_bytes }) => memory_bytes)),
    processor: processorUse(state, previous),
    sockets: realtime.sockets + graphql.sockets,
    channels: realtime.channels,
    subscriptions: realtime.subscriptions + graphql.subscriptions,
    queued: tasks?.queued ?? 0,
    running: tasks?.running ?? 0,
  };
}

/** Adds up the use of processes in both responses. Processes that replaced others begin at zero. */
function processorUse(state: RunningState, previous: RunningState | null): number {
  const seconds = previous ? (Date.parse(state.at) - Date.parse(previous.at)) / 1000 : 0;
  const before = new Map(previous?.processes.map((each) => [each.pid, each.processor_seconds]));
  const usedBy = ({ pid, processor_seconds: used, uptime_seconds: uptime }: ProcessState) =>
    seconds > 0 && before.has(pid) ? (used - before.get(pid)!) / seconds : used / Math.max(1, uptime);
  return state.processes.reduce((sum, each) => sum + Math.max(0, usedBy(each)), 0);
}

type RequestSeries = {
  readonly rate: readonly ChartPoint[];
  readonly failures: readonly ChartPoint[];
  readonly p50: readonly ChartPoint[];
  readonly p99: readonly ChartPoint[];
};

/** Returns a point for each interval; the service omits those without requests. */
export function requestSeries({ intervals, latest }: RunningHistory): RequestSeries {
  const step = (latest?.requests.interval_seconds ?? 5) * 1000;
  const end = Math.floor(Date.parse(latest?.at ?? "") / step) * step;
  const byTime = new Map(intervals.map((interval) => [Date.parse(interval.at), interval]));
  const times = Array.from({ length: SPAN_MS / step }, (_, index) => end - (SPAN_MS / step - 1 - index) * step);
  const seriesOf = (measure: (interval: CountedInterval) => number): ChartPoint[] =>
    times.map((at) => ({ at, value: byTime.has(at) ? measure(byTime.get(at)!) : 0 }));
  return {
    rate: seriesOf(({ count }) => (count * 1000) / step),
    failures: seriesOf((interval) => (failuresOf(interval) * 1000) / step),
    p50: seriesOf(({ p50_ms }) => p50_ms),
    p99: seriesOf(({ p99_ms }) => p99_ms),
  };
}

function failuresOf({ interfaces }: CountedInterval): number {
  const statuses = Object.values(interfaces).flatMap((each) => Object.entries(each.statuses));
  return statuses.reduce((sum, [status, count]) => sum + (Number(status) >= 500 ? count : 0), 0);
}

export type InterfaceSummary = {
  readonly name: string;
  readonly perSecond: number;
  readonly statuses: Readonly<Record<string, number>>;
  readonly p50: number;
  readonly p99: number;
};

const SUMMARY_MS = 60_000;

/** Returns the requests of the last minute by interface; a percentile is the worst of its intervals. */
export function summarizeInterfaces({ intervals, latest }: RunningHistory): readonly InterfaceSummary[] {
  const since = Date.parse(latest?.at ?? "") - SUMMARY_MS;
  const entries = intervals
    .filter(({ at }) => Date.parse(at) > since)
    .flatMap(({ interfaces }) => Object.entries(interfaces));
  const names = [...new Set(entries.map(([name]) => name))].sort();
  return names.map((name) => {
    const own = entries.flatMap(([each, interval]) => (each === name ? [interval] : []));
    const statuses: Record<string, number> = {};
    for (const [status, count] of own.flatMap((each) => Object.entries(each.statuses))) {
      statuses[status] = (statuses[status] ?? 0) + count;
    }
    const total = Object.values(statuses).reduce((sum, count) => sum + count, 0);
    return {
      name,
      statuses,
      perSecond: (total * 1000) / SUMMARY_MS,
      p50: Math.max(...own.map(({ p50_ms }) => p50_ms)),
      p99: Math.max(...own.map(({ p99_ms }) => p99_ms)),
    };
  });
}
