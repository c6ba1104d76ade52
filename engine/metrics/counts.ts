import type { Hits } from "../recent-map.ts";
import { counter, type Metric, type Sample } from "./metric.ts";
import { Occurrences } from "./occurrences.ts";

/** What is counted where it happens, whoever makes it happen. */
export type Counts = {
  /** Refusals, by their codes. */
  readonly errors: Occurrences;
  /** Answers that were told again to who repeated a request. */
  replays: number;
  /** What need not be worked out again: tokens, requests of a known form, plans, operations of GraphQL. */
  readonly tokens: Hits;
  readonly forms: Hits;
  readonly plans: Hits;
  readonly operations: Hits;
};

const CACHES = ["tokens", "forms", "plans", "operations"] as const;

export function makeCounts(): Counts {
  const none = (): Hits => ({ found: 0, missed: 0 });
  return { errors: new Occurrences(), replays: 0, tokens: none(), forms: none(), plans: none(), operations: none() };
}

export function metricsOfCounts(counts: Counts): readonly Metric[] {
  const errors = Object.entries(counts.errors.counts());
  return [
    counter("errors_total", "Refusals and failures, by the code that was told.", errors.map(toSample)),
    counter("idempotency_replays_total", "Answers that were told again to who repeated a change.", counts.replays),
    counter(
      "cache_requests_total",
      "What was looked for in memory.",
      CACHES.flatMap((cache) => hitsOf(cache, counts)),
    ),
  ];
}

function toSample([code, value]: [string, number]): Sample {
  return { labels: { code }, value };
}

function hitsOf(cache: (typeof CACHES)[number], { [cache]: { found, missed } }: Counts): Sample[] {
  return [
    { labels: { cache, result: "hit" }, value: found },
    { labels: { cache, result: "miss" }, value: missed },
  ];
}
