import { readdir, readFile, readlink } from "node:fs/promises";

/** The unit of /proc; its length is fixed for user space. */
const TICK_MICROSECONDS = 10_000;

/** Returns a process and its children that run the same program: the workers of a service. */
export async function processesOf(pid: number): Promise<number[]> {
  const children = await readFile(`/proc/${pid}/task/${pid}/children`, "utf8").catch(() => "");
  const program = await readlink(`/proc/${pid}/exe`).catch(() => null);
  const pids = children.split(" ").filter(Boolean).map(Number);
  const programs = await Promise.all(pids.map((child) => readlink(`/proc/${child}/exe`).catch(() => "")));
  return [pid, ...pids.filter((_, index) => programs[index] === program)];
}

/** Returns the processor time of a process and its workers so far, in microseconds; null without /proc. */
export async function processorTimeOf(pid: number): Promise<number | null> {
  const times = await Promise.all((await processesOf(pid)).map(processorTimeOfOne));
  return times.includes(null) ? null : times.reduce<number>((sum, time) => sum + time!, 0);
}

async function processorTimeOfOne(pid: number): Promise<number | null> {
  const stat = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => null);
  if (stat === null) return null;
  // The fields after the name: utime and stime of the process, then of its children that have ended.
  const fields = stat
    .slice(stat.lastIndexOf(")") + 2)
    .split(" ")
    .map(Number);
  return (fields[11]! + fields[12]! + fields[13]! + fields[14]!) * TICK_MICROSECONDS;
}

/** Measures the part of the processors' time that other virtual machines take from now on, in percent. */
export async function watchStolenTime(): Promise<() => Promise<string>> {
  const before = await processorStates();
  return async () => {
    const after = await processorStates();
    if (before === null || after === null) return "an unknown part";
    const passed = after.map((ticks, index) => ticks - before[index]!);
    // The fields are user, nice, system, idle, iowait, irq, softirq, steal; the first two include the others.
    const all = passed.slice(0, 8).reduce((sum, ticks) => sum + ticks, 0);
    return `${((100 * passed[7]!) / all).toFixed(1)} %`;
  };
}

async function processorStates(): Promise<number[] | null> {
  const stat = await readFile("/proc/stat", "utf8").catch(() => null);
  return stat === null ? null : stat.split("\n", 1)[0]!.split(/ +/).slice(1).map(Number);
}

/** Returns the processor time of all processes that work in a folder, as those of a Postgres cluster do in its data folder. */
export async function processorTimeIn(folder: string): Promise<number | null> {
  const pids = (await readdir("/proc").catch(() => [])).filter((name) => /^\d+$/.test(name));
  const times = await Promise.all(
    pids.map(async (pid) => {
      const works = (await readlink(`/proc/${pid}/cwd`).catch(() => null)) === folder;
      return works ? await processorTimeOfOne(Number(pid)) : null;
    }),
  );
  const known = times.filter((time) => time !== null);
  return known.length > 0 ? known.reduce((sum, time) => sum + time, 0) : null;
}
