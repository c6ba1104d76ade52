import type { CountedInterval, RunningState, SampledInterval } from "#operations/admin-types";
import type { ChartPoint } from "../components/chart.ts";

/** The tasks of one response. */
type TaskCounts = { readonly at: number; readonly queued: number; readonly running: number };

/** The last half hour as the service has recorded it; the tasks are those of the page's own responses. */
export type RunningHistory = {
  readonly intervals: readonly CountedInterval[];
  readonly samples: readonly SampledInterval[];
  readonly tasks: readonly TaskCounts[];
  readonly latest: RunningState | null;
};

export const NO_HISTORY: RunningHistory = { intervals: [], samples: [], tasks: [], latest: null };
const SPAN_MS = 30 * 60_000;
/** The shortest span of a chart. */
const MIN_SPAN_MS = 60_000;

export function addState(history: RunningHistory, state: RunningState): RunningHistory {
  const now = Date.parse(state.at);
  const isKept = ({ at }: { readonly at: string }) => Date.parse(at) > now - SPAN_MS;
  const { queued = 0, running = 0 } = state.tasks ?? {};
  return {
    intervals: [...history.intervals, ...state.requests.intervals].filter(isKept),
    samples: [...history.samples, ...state.samples].filter(isKept),
    tasks: [...history.tasks, { at: now, queued, running }].filter(({ at }) => at > now - SPAN_MS),
    latest: state,
  };
}

/** Returns the end of the last interval, after which the service is asked for more. */
export function lastInterval({ samples }: RunningHistory): string | null {
  return samples.at(-1)?.at ?? null;
}

/** Returns the last half hour, or the time since the service began to record. */
export function chartSpan({ samples, latest }: RunningHistory): { readonly from: number; readonly to: number } {
  const to = Date.parse(latest?.at ?? "");
  const first = Date.parse(samples[0]?.at ?? latest?.at ?? "");
  return { from: Math.min(first, to - MIN_SPAN_MS), to };
}

type RequestSeries = {
  readonly rate: readonly ChartPoint[];
  readonly failures: readonly ChartPoint[];
  readonly p50: readonly ChartPoint[];
  readonly p99: readonly ChartPoint[];
};

/** Returns a point for each interval; the service omits those without requests. */
export function requestSeries(history: RunningHistory): RequestSeries {
  const { intervals, latest } = history;
  const step = (latest?.requests.interval_seconds ?? 10) * 1000;
  // The service tells of an interval when all its processes have recorded it.
  const end = Math.floor(Date.parse(lastInterval(history) ?? latest?.at ?? "") / step) * step;
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
