import fc from "fast-check";

/** The share of the runs of property tests that is made: a fifth, or what `PROPERTY_RUNS` says. CI makes all. */
const SHARE = Number(process.env.PROPERTY_RUNS ?? 0.2);

export function propertyRuns(full: number): number {
  return Math.max(1, Math.round(full * SHARE));
}

fc.configureGlobal({ numRuns: propertyRuns(100) });
