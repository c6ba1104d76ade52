import type { Labels, MetricSample } from "./metric.ts";

/** In milliseconds. */
const BUCKET_BOUNDS_MS = [0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000] as const;

/** Counts durations in buckets, for a Prometheus histogram. */
export class DurationHistogram {
  readonly #counts = new Float64Array(BUCKET_BOUNDS_MS.length + 1);
  #milliseconds = 0;

  add(milliseconds: number): void {
    let bucket = 0;
    while (milliseconds > BUCKET_BOUNDS_MS[bucket]!) bucket++;
    this.#counts[bucket]!++;
    this.#milliseconds += milliseconds;
  }

  /** In seconds, with cumulative buckets. */
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
