import { DurationHistogram } from "../../engine/metrics/duration-histogram.ts";
import { counter, histogram, type Metric, type MetricSample } from "../../engine/metrics/metric.ts";
import type { Route } from "./route.ts";

const METHODS: ReadonlySet<string> = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]);

type RequestCounter = {
  readonly route: Route;
  readonly method: string;
  durations: DurationHistogram;
  statuses: Map<number, number>;
};

/** Counts requests by route template, method and status. */
export class RequestMetrics {
  readonly #counters = new Map<Route, Map<string, RequestCounter>>();

  count(route: Route, method: string, status: number, milliseconds: number): void {
    const entry = this.#counters.get(route)?.get(method) ?? this.#open(route, method);
    entry.statuses.set(status, (entry.statuses.get(status) ?? 0) + 1);
    entry.durations.add(milliseconds);
  }

  metrics(): readonly Metric[] {
    const entries = [...this.#counters.values()].flatMap((methods) => [...new Set(methods.values())]);
    return [
      counter("http_requests_total", "Requests that were answered.", entries.flatMap(statusesOf)),
      histogram("http_request_duration_seconds", "Time from the request's head to the end of the response.", (name) =>
        entries.flatMap((entry) => entry.durations.samples(name, labelsOf(entry))),
      ),
    ];
  }

  #open(route: Route, method: string): RequestCounter {
    const methods = this.#counters.get(route) ?? new Map<string, RequestCounter>();
    this.#counters.set(route, methods);
    const counted = METHODS.has(method) ? method : "other";
    const entry = methods.get(counted) ?? {
      route,
      method: counted,
      durations: new DurationHistogram(),
      statuses: new Map(),
    };
    methods.set(counted, entry).set(method, entry);
    return entry;
  }
}

function labelsOf({ route, method }: RequestCounter) {
  return { interface: route.interface, route: route.template, method };
}

function statusesOf(entry: RequestCounter): MetricSample[] {
  return [...entry.statuses].map(([status, value]) => ({ labels: { ...labelsOf(entry), status }, value }));
}
