import { readdir, readFile, readlink } from "node:fs/promises";

/** The unit of /proc; its length is fixed for user space. */
const TICK_MICROSECONDS = 10_000;

/** What a process has used so far, in microseconds; null without /proc. */
export async function processorTimeOf(pid: number): Promise<number | null> {
  const stat = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => null);
  if (stat === null) return null;
  // Behind the name: utime and stime of the process, then of its children that have ended.
  const fields = stat
    .slice(stat.lastIndexOf(")") + 2)
    .split(" ")
    .map(Number);
  return (fields[11]! + fields[12]! + fields[13]! + fields[14]!) * TICK_MICROSECONDS;
}

/** The same of all processes that work in a folder, as those of a Postgres cluster do in its data folder. */
export async function processorTimeIn(folder: string): Promise<number | null> {
  const pids = (await readdir("/proc").catch(() => [])).filter((name) => /^\d+$/.test(name));
  const times = await Promise.all(
    pids.map(async (pid) => {
      const works = (await readlink(`/proc/${pid}/cwd`).catch(() => null)) === folder;
      return works ? await processorTimeOf(Number(pid)) : null;
    }),
  );
  const known = times.filter((time) => time !== null);
  return known.length > 0 ? known.reduce((sum, time) => sum + time, 0) : null;
}
