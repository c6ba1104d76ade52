import fc from "fast-check";

/** The share of the runs of property tests, and of the tables of large schemas, that is tested: a fifth, or `PROPERTY_RUNS`. */
const SHARE = Number(process.env.PROPERTY_RUNS ?? 0.2);

export function propertyRuns(full: number): number {
  return Math.max(1, Math.round(full * SHARE));
}

/** Half of them where each run takes long, unless all runs are made. */
export function slowPropertyRuns(full: number): number {
  return propertyRuns(SHARE < 1 ? full / 2 : full);
}

/** Returns that share of a list, evenly spread, but not less than `least` of it. */
export function shareOf<T>(list: readonly T[], least = 0): readonly T[] {
  return evenly(Math.max(SHARE, least / list.length), list);
}

/** Returns so many of a list, evenly spread. */
export function atMost<T>(count: number, list: readonly T[]): readonly T[] {
  return evenly(count / list.length, list);
}

function evenly<T>(share: number, list: readonly T[]): readonly T[] {
  return share >= 1 ? list : list.filter((_, index) => Math.floor((index + 1) * share) > Math.floor(index * share));
}

fc.configureGlobal({ numRuns: propertyRuns(100) });
