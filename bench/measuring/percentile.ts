/** Returns the nearest rank; infinite without values, so that a missing measurement meets no target. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor(share * (sorted.length - 1))] ?? Number.POSITIVE_INFINITY;
}

export function percentilesOf(values: readonly number[]): { readonly p50: number; readonly p99: number } {
  return { p50: percentile(values, 0.5), p99: percentile(values, 0.99) };
}
