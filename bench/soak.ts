// All interfaces for as long as one likes, to see whether anything grows.

import type { Bench } from "./bench.ts";
import { openSoak, type Sample } from "./soak/soak.ts";

export const bench: Bench = async ({ minutes, print }) => {
  print(`soak: mixed load on all interfaces for ${minutes} min; the heap is what a full collection leaves`);
  await using soak = await openSoak();
  const course = await soak.run(minutes * 60);
  const { samples, done, failures, mebibytesPerHour, bytesPerActivity, bytesPerActivityError } = course;
  const told = Math.max(1, Math.floor(samples.length / 10));
  for (const [index, sample] of samples.entries()) if (index % told === 0) print(describe(sample));
  print(describe(samples.at(-1)!));
  print(`  ${done} activities, ${Object.values(failures).reduce((sum, times) => sum + times, 0)} of them failed`);
  for (const [failure, times] of Object.entries(failures)) print(`    ${times} x ${failure}`);
  print(
    `  heap, without the first third: ${mebibytesPerHour.toFixed(1)} MiB/h, ${bytesPerActivity.toFixed(1)} ± ${bytesPerActivityError.toFixed(1)} bytes per activity`,
  );
  return course;
};

function describe({ seconds, done, heapBytes, residentMebibytes, openFiles, sessions }: Sample): string {
  const heap = (heapBytes / 2 ** 20).toFixed(2);
  return `  ${seconds.toFixed(0).padStart(6)} s ${String(done).padStart(8)} done, heap ${heap} MiB, resident ${residentMebibytes?.toFixed(0)} MiB, ${openFiles} files, ${sessions} sessions`;
}
