import type { Outcome } from "./report.ts";

export type Target = {
  readonly than: string;
  readonly least: number;
  /** The measure; requests per second by default. */
  readonly by?: "processor time";
};

/** The targets by the name of the work. */
export type Targets = Readonly<Record<string, readonly Target[]>>;

/** Returns each target with the reached value and a verdict. Skips servers that did not take part. */
export function judge(outcomes: readonly Outcome[], targets: Targets): string[] {
  return outcomes.flatMap(({ work, ratios, timeRatios }) =>
    (targets[work] ?? []).flatMap(({ than, least, by }) => {
      const reached = (by === undefined ? ratios : timeRatios)[than];
      if (reached === undefined) return [];
      const what = `${work}: ${reached.toFixed(2)} times ${than}${by === undefined ? "" : `, by ${by}`}`;
      return [verdict(what, reached >= least, String(least))];
    }),
  );
}

export function verdict(what: string, isMet: boolean, target: string): string {
  return `    ${isMet ? "met   " : "MISSED"} ${what} (target ${target})`;
}
