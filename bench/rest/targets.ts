import { EXPRESS, LITE, POSTGREST } from "./contestants.ts";
import type { Export } from "./export.ts";
import type { Outcome } from "./report.ts";
import { COPY, PGBENCH } from "./runners.ts";

export type Target = { readonly than: string; readonly least: number };

const OF_READS: readonly Target[] = [
  { than: PGBENCH, least: 0.6 },
  { than: POSTGREST, least: 5 },
  { than: LITE, least: 12 },
  { than: EXPRESS, least: 6 },
];

/** By the work's name. */
export type Targets = Readonly<Record<string, readonly Target[]>>;

const TARGETS: Targets = {
  "one row by key": OF_READS,
  "20 rows with a many-to-one embed": OF_READS,
  "insert one row": [{ than: PGBENCH, least: 0.55 }],
  "insert 10,000 rows": [{ than: COPY, least: 0.5 }],
};

/** Each target with what was reached, and whether that is enough. Nothing is said of who was not there. */
export function judge(outcomes: readonly Outcome[], targets: Targets = TARGETS): string[] {
  return outcomes.flatMap(({ work, ratios }) =>
    (targets[work] ?? []).flatMap(({ than, least }) => {
      const reached = ratios[than];
      if (reached === undefined) return [];
      return [verdict(`${work}: ${reached.toFixed(2)} times ${than}`, reached >= least, String(least))];
    }),
  );
}

export function judgeExport({ firstByteMilliseconds, grownMebibytes }: Export): string[] {
  const milliseconds = firstByteMilliseconds.toFixed(0);
  const first = verdict(`export: first byte after ${milliseconds} ms`, firstByteMilliseconds < 100, "100 ms");
  if (grownMebibytes === null) return [first];
  return [first, verdict(`export: memory +${grownMebibytes.toFixed(0)} MiB`, grownMebibytes < 64, "64 MiB")];
}

function verdict(what: string, isMet: boolean, target: string): string {
  return `    ${isMet ? "met   " : "MISSED"} ${what} (target ${target})`;
}
