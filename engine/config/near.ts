import { editDistance } from "../edit-distance.ts";

/** The known name that differs from this one by a slip of the hand, if there is one. */
export function near(name: string, known: readonly string[]): string | null {
  const slips = name.length < 8 ? 1 : 2;
  return known.find((candidate) => isWithin(slips, name, candidate)) ?? null;
}

function isWithin(slips: number, name: string, candidate: string): boolean {
  return Math.abs(name.length - candidate.length) <= slips && editDistance(name, candidate, { swaps: true }) <= slips;
}
