import { readFile } from "node:fs/promises";

/** What a process holds; null without /proc. */
export async function residentMebibytes(pid: number): Promise<number | null> {
  const status = await readFile(`/proc/${pid}/status`, "utf8").catch(() => "");
  const kibibytes = /^VmRSS:\s+(\d+)/m.exec(status)?.[1];
  return kibibytes === undefined ? null : Number(kibibytes) / 1024;
}

/** What a process holds, of memory that it shares with others only its part; null without /proc. */
export async function proportionalMebibytes(pid: number): Promise<number | null> {
  const smaps = await readFile(`/proc/${pid}/smaps_rollup`, "utf8").catch(() => "");
  const kibibytes = /^Pss:\s+(\d+)/m.exec(smaps)?.[1];
  return kibibytes === undefined ? null : Number(kibibytes) / 1024;
}
