import type { CacheHits } from "../cache/recent-map.ts";
import { counter, type Metric, type MetricSample } from "./metrics.ts";

/** Further keys are counted as "other": SQL can raise any error code. */
const MAX_KEYS = 200;
const OTHER = "other";

/** Counters that several parts of the service increment. */
export type ServiceCounters = {
  /** Error responses, by code. */
  readonly errors: KeyedCounter;
  /** GraphQL operations: `compiled` to one statement, or the reason why not. */
  readonly operationWays: KeyedCounter;
  /** Stored responses that were returned for a repeated Idempotency-Key. */
  replays: number;
  /** Cache hits: verified tokens, request shapes, plans, GraphQL operations. */
  readonly tokens: CacheHits;
  readonly forms: CacheHits;
  readonly plans: CacheHits;
  readonly operations: CacheHits;
};

const CACHES = ["tokens", "forms", "plans", "operations"] as const;

export function makeServiceCounters(): ServiceCounters {
  const none = (): CacheHits => ({ found: 0, missed: 0 });
  const caches = { tokens: none(), forms: none(), plans: none(), operations: none() };
  return { errors: new KeyedCounter(), operationWays: new KeyedCounter(), replays: 0, ...caches };
}

export function metricsOfCounters(counts: ServiceCounters): readonly Metric[] {
  const errors = Object.entries(counts.errors.counts());
  const ways = Object.entries(counts.operationWays.counts());
  return [
    counter("errors_total", "Error responses, by error code.", errors.map(toErrorSample)),
    counter(
      "graphql_operations_total",
      "GraphQL operations, by way: `compiled` to one statement, or why PostGraphile's planner ran them.",
      ways.map(([way, value]) => ({ labels: { way }, value })),
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
