import { readFile } from "node:fs/promises";

/** Returns the resident memory of a process; null without /proc. */
export async function residentMebibytes(pid: number): Promise<number | null> {
  const status = await readFile(`/proc/${pid}/status`, "utf8").catch(() => "");
  const kibibytes = /^VmRSS:\s+(\d+)/m.exec(status)?.[1];
  return kibibytes === undefined ? null : Number(kibibytes) / 1024;
}

/** Returns the memory of a process with its part of shared memory; null without /proc. */
export async function proportionalMebibytes(pid: number): Promise<number | null> {
  const smaps = await readFile(`/proc/${pid}/smaps_rollup`, "utf8").catch(() => "");
  const kibibytes = /^Pss:\s+(\d+)/m.exec(smaps)?.[1];
  return kibibytes === undefined ? null : Number(kibibytes) / 1024;
}
