type EditDistanceOptions = {
  /** True if a transposition of neighbours counts as one edit instead of two. */
  readonly swaps: boolean;
};

/** Returns the number of inserted, deleted or replaced letters between two words. */
export function editDistance(left: string, right: string, { swaps }: EditDistanceOptions): number {
  let beforeLast: number[] = [];
  let last = Array.from({ length: right.length + 1 }, (_, index) => index);
  for (let i = 1; i <= left.length; i++) {
    const row = [i];
    for (let j = 1; j <= right.length; j++) {
      const change = left[i - 1] === right[j - 1] ? 0 : 1;
      row[j] = Math.min(last[j]! + 1, row[j - 1]! + 1, last[j - 1]! + change);
      const swapped = swaps && i > 1 && j > 1 && left[i - 1] === right[j - 2] && left[i - 2] === right[j - 1];
      if (swapped) row[j] = Math.min(row[j]!, beforeLast[j - 2]! + 1);
    }
    beforeLast = last;
    last = row;
  }
  return last[right.length]!;
}

/** Returns the known name within a small edit distance; null if there is none. */
export function findClosestName(name: string, known: readonly string[]): string | null {
  const maxDistance = name.length < 8 ? 1 : 2;
  return known.find((candidate) => isWithinDistance(maxDistance, name, candidate)) ?? null;
}

/** Returns the end of a message that names an unknown word; empty if no known name is close to it. */
export function didYouMean(name: string, known: readonly string[]): string {
  const closest = findClosestName(name, known);
  return closest === null ? "" : `; did you mean ${closest}?`;
}

function isWithinDistance(maxDistance: number, name: string, candidate: string): boolean {
  return (
    Math.abs(name.length - candidate.length) <= maxDistance &&
    editDistance(name, candidate, { swaps: true }) <= maxDistance
  );
}
