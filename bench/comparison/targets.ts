import type { Outcome } from "./report.ts";

export type Target = { readonly than: string; readonly least: number };

/** By the work's name. */
export type Targets = Readonly<Record<string, readonly Target[]>>;

/** Each target with what was reached, and whether that is enough. Nothing is said of who was not there. */
export function judge(outcomes: readonly Outcome[], targets: Targets): string[] {
  return outcomes.flatMap(({ work, ratios }) =>
    (targets[work] ?? []).flatMap(({ than, least }) => {
      const reached = ratios[than];
      if (reached === undefined) return [];
      return [verdict(`${work}: ${reached.toFixed(2)} times ${than}`, reached >= least, String(least))];
    }),
  );
}

export function verdict(what: string, isMet: boolean, target: string): string {
  return `    ${isMet ? "met   " : "MISSED"} ${what} (target ${target})`;
}
