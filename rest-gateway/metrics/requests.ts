import { Durations } from "../../engine/metrics/durations.ts";
import { counter, histogram, type Metric, type Sample } from "../../engine/metrics/metric.ts";
import type { Route } from "./route.ts";

const METHODS: ReadonlySet<string> = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]);

type Tally = { readonly route: Route; readonly method: string; durations: Durations; statuses: Map<number, number> };

/** What was asked for and how it went, by a few labels: addresses as they were written would be without end. */
export class RequestCounts {
  readonly #tallies = new Map<Route, Map<string, Tally>>();

  count(route: Route, method: string, status: number, milliseconds: number): void {
    const tally = this.#tallies.get(route)?.get(method) ?? this.#open(route, method);
    tally.statuses.set(status, (tally.statuses.get(status) ?? 0) + 1);
    tally.durations.add(milliseconds);
  }

  metrics(): readonly Metric[] {
    const tallies = [...this.#tallies.values()].flatMap((methods) => [...new Set(methods.values())]);
    return [
      counter("http_requests_total", "Requests that were answered.", tallies.flatMap(statusesOf)),
      histogram("http_request_duration_seconds", "From a request's head to the end of its answer.", (name) =>
        tallies.flatMap((tally) => tally.durations.samples(name, labelsOf(tally))),
      ),
    ];
  }

  #open(route: Route, method: string): Tally {
    const methods = this.#tallies.get(route) ?? new Map<string, Tally>();
    this.#tallies.set(route, methods);
    const counted = METHODS.has(method) ? method : "other";
    const tally = methods.get(counted) ?? { route, method: counted, durations: new Durations(), statuses: new Map() };
    methods.set(counted, tally).set(method, tally);
    return tally;
  }
}

function labelsOf({ route, method }: Tally) {
  return { interface: route.interface, route: route.template, method };
}

function statusesOf(tally: Tally): Sample[] {
  return [...tally.statuses].map(([status, value]) => ({ labels: { ...labelsOf(tally), status }, value }));
}
