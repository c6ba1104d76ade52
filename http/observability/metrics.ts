import { AggregatorRegistry, collectDefaultMetrics, Registry } from "prom-client";
import type { CacheHits } from "#runtime";
import { RequestRecorder } from "./request-recorder.ts";

/** The upper bounds of the buckets, in milliseconds. */
const BUCKET_BOUNDS_MS = [0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000] as const;

export const BUCKET_COUNT = BUCKET_BOUNDS_MS.length + 1;

export const EXPOSITION_TYPE = Registry.PROMETHEUS_CONTENT_TYPE;

type Labels = Readonly<Record<string, string | number>>;

export type MetricSample = {
  readonly labels: Labels;
  readonly value: number;
  /** The name of the sample, which differs from the metric's for a histogram. */
  readonly metricName?: string;
};

/** The function that combines the values of several processes. */
type Aggregation = "sum" | "max";

/** A metric and its current values, in prom-client's JSON format. */
export type Metric = {
  readonly name: string;
  readonly help: string;
  readonly type: "counter" | "gauge" | "histogram";
  readonly aggregator: Aggregation;
  readonly values: readonly MetricSample[];
};

/** Returns the current metrics of one component. */
export type MetricSource = () => readonly Metric[] | Promise<readonly Metric[]>;

/** Null if the value is unknown. */
type MetricValue = number | null | readonly MetricSample[];

const PREFIX = "content_service";

/** Makes a metric of a value that only increases; its name ends in `_total`. */
export function counter(name: string, help: string, value: MetricValue): Metric {
  return { name: `${PREFIX}_${name}`, help, type: "counter", aggregator: "sum", values: samplesOf(value) };
}

export function gauge(name: string, help: string, value: MetricValue, aggregator: Aggregation = "sum"): Metric {
  return { name: `${PREFIX}_${name}`, help, type: "gauge", aggregator, values: samplesOf(value) };
}

export function histogram(name: string, help: string, samples: (name: string) => readonly MetricSample[]): Metric {
  const whole = `${PREFIX}_${name}`;
  return { name: whole, help, type: "histogram", aggregator: "sum", values: samples(whole) };
}

/** Returns one sample per entry, with the key as the label's value. */
export function labelled(label: string, values: Readonly<Record<string, number>>): readonly MetricSample[] {
  return Object.entries(values).map(([key, value]) => ({ labels: { [label]: key }, value }));
}

function samplesOf(value: MetricValue): readonly MetricSample[] {
  if (value === null) return [];
  return typeof value === "number" ? [{ labels: {}, value }] : value;
}

/** Counts durations in buckets, for a Prometheus histogram. */
export class DurationHistogram {
  readonly #counts = new Float64Array(BUCKET_COUNT);
  #milliseconds = 0;

  add(milliseconds: number): void {
    let bucket = 0;
    while (milliseconds > BUCKET_BOUNDS_MS[bucket]!) bucket++;
    this.#counts[bucket]!++;
    this.#milliseconds += milliseconds;
  }

  /** Adds the counts to those of other histograms. */
  addTo(sums: Float64Array): void {
    for (const [bucket, count] of this.#counts.entries()) sums[bucket]! += count;
  }

  /** Returns the samples in seconds, with cumulative buckets. */
  samples(name: string, labels: Labels): MetricSample[] {
    let count = 0;
    const buckets = [...this.#counts].map((here, index) => {
      count += here;
      const bound = BUCKET_BOUNDS_MS[index];
      const le = bound === undefined ? "+Inf" : bound / 1_000;
      return { metricName: `${name}_bucket`, labels: { ...labels, le }, value: count };
    });
    return [
      ...buckets,
      { metricName: `${name}_sum`, labels, value: this.#milliseconds / 1_000 },
      { metricName: `${name}_count`, labels, value: count },
    ];
  }
}

/** Returns the percentile in milliseconds, estimated like in Prometheus: linear within the bucket, and at most the last bound. */
export function percentile(buckets: readonly number[], fraction: number): number {
  const rank = buckets.reduce((sum, count) => sum + count, 0) * fraction;
  let below = 0;
  for (const [bucket, bound] of BUCKET_BOUNDS_MS.entries()) {
    const here = buckets[bucket]!;
    if (here > 0 && below + here >= rank) {
      const lower = BUCKET_BOUNDS_MS[bucket - 1] ?? 0;
      return Math.round((lower + ((bound - lower) * (rank - below)) / here) * 100) / 100;
    }
    below += here;
  }
  return BUCKET_BOUNDS_MS.at(-1)!;
}

/** The metrics of one process, as prom-client's JSON. */
export type ProcessMetrics = readonly object[];

/** Reads the metrics of all sources and Node's default metrics (memory, event loop, garbage collection). */
export function makeMetricsReader(sources: readonly MetricSource[]): () => Promise<ProcessMetrics> {
  const nodeRegistry = new Registry();
  collectDefaultMetrics({ register: nodeRegistry });
  return async () => {
    const [defaults, ...metrics] = await Promise.all([
      nodeRegistry.getMetricsAsJSON(),
      ...sources.map((source) => source()),
    ]);
    return [...defaults.map(toWorstLag), ...metrics.flat()];
  };
}

/** Uses the lag of the worst process: the average of several would hide one that is blocked. */
function toWorstLag<M extends { readonly name: string; readonly aggregator: unknown }>(metric: M): M {
  return /^nodejs_eventloop_lag_(?!min)/.test(metric.name) ? { ...metric, aggregator: "max" } : metric;
}

/**
 * Adds the counters and histograms of several processes. Those of processes that have ended are kept in this form: without
 * them the sums would fall, and Prometheus treats a falling counter as one that has restarted at zero.
 */
export function sumCounters(processes: readonly ProcessMetrics[]): ProcessMetrics {
  const byName = new Map<string, Metric>();
  for (const metric of processes.flat() as readonly Metric[]) {
    if (metric.type === "gauge") continue;
    const values = [...(byName.get(metric.name)?.values ?? []), ...metric.values];
    byName.set(metric.name, { ...metric, values: sumSamples(values) });
  }
  return [...byName.values()];
}

function sumSamples(samples: readonly MetricSample[]): readonly MetricSample[] {
  const bySeries = Map.groupBy(samples, ({ metricName, labels }) => JSON.stringify([metricName, labels]));
  return [...bySeries.values()].map((same) => ({
    ...same[0]!,
    value: same.reduce((sum, { value }) => sum + value, 0),
  }));
}

/** Returns Prometheus's text format, aggregated over all processes. */
export function formatExposition(processes: readonly ProcessMetrics[]): Promise<string> {
  return AggregatorRegistry.aggregate([...processes]).metrics();
}

/** Further keys are counted as "other": SQL can raise any error code. */
const MAX_KEYS = 200;
const OTHER = "other";

/** Counters that several parts of the service increment. */
export type ServiceCounters = {
  /** Error responses, by code. */
  readonly errors: KeyedCounter;
  /** GraphQL operations: `compiled` to one statement, or the reason why not. */
  readonly operationOutcomes: KeyedCounter;
  /** Stored responses that were returned for a repeated Idempotency-Key. */
  replays: number;
  /** Cache hits: verified tokens, request shapes, plans, GraphQL operations. */
  readonly tokens: CacheHits;
  readonly forms: CacheHits;
  readonly plans: CacheHits;
  readonly operations: CacheHits;
  /** The recorder of request shapes, for migrations. */
  readonly recorder: RequestRecorder;
};

const CACHES = ["tokens", "forms", "plans", "operations"] as const;

export function makeServiceCounters(): ServiceCounters {
  const none = (): CacheHits => ({ found: 0, missed: 0 });
  const caches = { tokens: none(), forms: none(), plans: none(), operations: none() };
  const recorder = new RequestRecorder();
  return { errors: new KeyedCounter(), operationOutcomes: new KeyedCounter(), replays: 0, recorder, ...caches };
}

export function metricsOfCounters(counts: ServiceCounters): readonly Metric[] {
  const errors = Object.entries(counts.errors.counts());
  const outcomes = Object.entries(counts.operationOutcomes.counts());
  return [
    counter("errors_total", "Error responses, by error code.", errors.map(toErrorSample)),
    counter(
      "graphql_operations_total",
      "GraphQL operations, by way: `compiled` to one statement, or why its fields ran by themselves.",
      outcomes.map(([way, value]) => ({ labels: { way }, value })),
    ),
    counter("idempotency_replays_total", "Stored responses returned for a repeated Idempotency-Key.", counts.replays),
    counter(
      "cache_requests_total",
      "Lookups in in-memory caches, by result.",
      CACHES.flatMap((cache) => cacheSamples(cache, counts)),
    ),
  ];
}

function toErrorSample([code, value]: [string, number]): MetricSample {
  return { labels: { code }, value };
}

function cacheSamples(cache: (typeof CACHES)[number], { [cache]: { found, missed } }: ServiceCounters): MetricSample[] {
  return [
    { labels: { cache, result: "hit" }, value: found },
    { labels: { cache, result: "miss" }, value: missed },
  ];
}

/** Counts occurrences by key. */
export class KeyedCounter {
  readonly #counts = new Map<string, number>();

  add(key: string): void {
    const counted = this.#counts.has(key) || this.#counts.size < MAX_KEYS ? key : OTHER;
    this.#counts.set(counted, (this.#counts.get(counted) ?? 0) + 1);
  }

  counts(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.#counts);
  }
}
