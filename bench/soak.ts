// Runs all interfaces for any length of time, to see if memory grows.

import type { Bench } from "./measuring/kind.ts";
import { type GrownObjects, openSoak, type Sample } from "./soak/soak.ts";

export const bench: Bench = async ({ minutes, only, print }) => {
  const load = only.includes("half") ? 0.5 : 1;
  const hasSnapshots = only.includes("snapshots");
  print(
    `soak: mixed load on all interfaces for ${minutes} min, clients busy ${load * 100} % of the time; the heap is what a full collection leaves`,
  );
  await using soak = await openSoak();
  const course = await soak.run(minutes * 60, { load, hasSnapshots });
  const { samples, done, failures, mebibytesPerHour, bytesPerActivity, bytesPerActivityError, grown } = course;
  for (const sample of perMinute(samples)) print(describe(sample));
  print(`  ${done} activities, ${Object.values(failures).reduce((sum, times) => sum + times, 0)} of them failed`);
  for (const [failure, times] of Object.entries(failures)) print(`    ${times} x ${failure}`);
  print(
    `  heap, without the first third: ${mebibytesPerHour.toFixed(1)} MiB/h, ${bytesPerActivity.toFixed(1)} ± ${bytesPerActivityError.toFixed(1)} bytes per activity`,
  );
  if (hasSnapshots) print("  more at the end than after the first third:");
  for (const each of grown) print(describeGrown(each));
  return course;
};

/** Returns the last sample of each minute. */
function perMinute(samples: readonly Sample[]): Sample[] {
  return samples.filter(
    ({ seconds }, index) => Math.floor(seconds / 60) !== Math.floor((samples[index + 1]?.seconds ?? 0) / 60),
  );
}

const mebibytes = (bytes: number) => (bytes / 2 ** 20).toFixed(1);

function describe({ seconds, done, heapBytes, memory, openFiles, sessions }: Sample): string {
  const { rss, heapTotal, external, arrayBuffers } = memory;
  return `  ${seconds.toFixed(0).padStart(6)} s ${String(done).padStart(8)} done, heap ${mebibytes(heapBytes)} MiB of ${mebibytes(heapTotal)}, external ${mebibytes(external)}, buffers ${mebibytes(arrayBuffers)}, resident ${mebibytes(rss)}, ${openFiles} files, ${sessions} sessions`;
}

function describeGrown({ name, count, bytes }: GrownObjects): string {
  return `    ${(bytes / 1024).toFixed(0).padStart(6)} KiB in ${count} x ${name}`;
}
