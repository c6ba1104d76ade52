import { COPY, PGBENCH } from "../comparison/runners.ts";
import { type Target, type Targets, verdict } from "../comparison/targets.ts";
import type { Export } from "./export.ts";
import { EXPRESS, LITE, POSTGREST } from "./servers.ts";

const OF_READS: readonly Target[] = [
  { than: PGBENCH, least: 0.6 },
  { than: POSTGREST, least: 5 },
  { than: LITE, least: 12 },
  { than: EXPRESS, least: 6 },
];

export const TARGETS: Targets = {
  "one row by key": OF_READS,
  "20 rows with a many-to-one embed": OF_READS,
  "insert one row": [{ than: PGBENCH, least: 0.55 }],
  "insert 10,000 rows": [{ than: COPY, least: 0.5 }],
};

export function judgeExport({ firstByteMilliseconds, grownMebibytes }: Export): string[] {
  const milliseconds = firstByteMilliseconds.toFixed(0);
  const first = verdict(`export: first byte after ${milliseconds} ms`, firstByteMilliseconds < 100, "100 ms");
  if (grownMebibytes === null) return [first];
  return [first, verdict(`export: memory +${grownMebibytes.toFixed(0)} MiB`, grownMebibytes < 64, "64 MiB")];
}
