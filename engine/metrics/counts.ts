import type { Hits } from "../recent-map.ts";
import { KeyedCounter } from "./keyed-counter.ts";
import { counter, type Metric, type MetricSample } from "./metric.ts";

/** Counters that several parts of the service increment. */
export type Counts = {
  /** Error responses, by code. */
  readonly errors: KeyedCounter;
  /** Stored responses that were returned for a repeated Idempotency-Key. */
  replays: number;
  /** Cache hits: verified tokens, request shapes, plans, GraphQL operations. */
  readonly tokens: Hits;
  readonly forms: Hits;
  readonly plans: Hits;
  readonly operations: Hits;
};

const CACHES = ["tokens", "forms", "plans", "operations"] as const;

export function makeCounts(): Counts {
  const none = (): Hits => ({ found: 0, missed: 0 });
  return { errors: new KeyedCounter(), replays: 0, tokens: none(), forms: none(), plans: none(), operations: none() };
}

export function metricsOfCounts(counts: Counts): readonly Metric[] {
  const errors = Object.entries(counts.errors.counts());
  return [
    counter("errors_total", "Error responses, by error code.", errors.map(toSample)),
    counter("idempotency_replays_total", "Stored responses returned for a repeated Idempotency-Key.", counts.replays),
    counter(
      "cache_requests_total",
      "Lookups in in-memory caches, by result.",
      CACHES.flatMap((cache) => hitsOf(cache, counts)),
    ),
  ];
}

function toSample([code, value]: [string, number]): MetricSample {
  return { labels: { code }, value };
}

function hitsOf(cache: (typeof CACHES)[number], { [cache]: { found, missed } }: Counts): MetricSample[] {
  return [
    { labels: { cache, result: "hit" }, value: found },
    { labels: { cache, result: "miss" }, value: missed },
  ];
}
