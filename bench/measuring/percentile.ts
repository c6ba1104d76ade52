/** Returns the nearest rank; infinite without values, so that a missing measurement meets no target. */
export function percentile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.floor(share * (sorted.length - 1))] ?? Number.POSITIVE_INFINITY;
}
