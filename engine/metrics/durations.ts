import type { Labels, Sample } from "./metric.ts";

/** Milliseconds, from what is read in memory to what somebody has given up waiting for. */
const BOUNDS = [0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000] as const;

/** How long something took, each time that it was done: counted in buckets, for Prometheus's histograms. */
export class Durations {
  readonly #counts = new Float64Array(BOUNDS.length + 1);
  #milliseconds = 0;

  add(milliseconds: number): void {
    let bucket = 0;
    while (milliseconds > BOUNDS[bucket]!) bucket++;
    this.#counts[bucket]!++;
    this.#milliseconds += milliseconds;
  }

  /** In seconds; each bucket holds all that was shorter, too. */
  samples(name: string, labels: Labels): Sample[] {
    let count = 0;
    const buckets = [...this.#counts].map((here, index) => {
      count += here;
      const bound = BOUNDS[index];
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
