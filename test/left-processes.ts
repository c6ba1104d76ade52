import { readdir, readFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { signal } from "../cluster/embedded/processes.ts";

const LOOK_MS = 2_000;
const TEST_RUNNER = /\bvitest\b/;

type SystemProcess = { readonly pid: number; readonly parent: number; readonly startedAt: string };

export type LeftProcesses = {
  look(): Promise<void>;
  /** Ends the processes that the tests have started and not stopped. Returns their command lines. */
  end(): Promise<string[]>;
};

/** Remembers the processes that this process and its children start, because one whose parent has ended cannot be assigned any more. */
export function watchLeftProcesses(): LeftProcesses {
  const known = new Map<number, SystemProcess>();
  let running: ReadonlyMap<number, SystemProcess> = new Map();
  const look = async () => {
    running = await runningProcesses(running);
    for (const [pid, each] of known) if (running.get(pid)?.startedAt !== each.startedAt) known.delete(pid);
    for (const each of running.values()) if (isOurs(each, known)) known.set(each.pid, each);
  };
  const lookAtAll = () => {
    running = new Map();
    return look();
  };
  const timer = setInterval(() => void look(), LOOK_MS);
  timer.unref();
  return {
    look,
    async end() {
      clearInterval(timer);
      await lookAtAll();
      const commands = await Promise.all(
        [...known.keys()].map(async (pid) => ({ pid, command: await commandOf(pid) })),
      );
      const left = commands.filter(({ command }) => command !== "" && !TEST_RUNNER.test(command));
      for (const { pid } of left) signal(pid, "SIGKILL");
      while (left.some(({ pid }) => known.has(pid))) {
        await sleep(20);
        await lookAtAll();
      }
      return left.map(({ command }) => command);
    },
  };
}

function isOurs({ parent }: SystemProcess, known: ReadonlyMap<number, SystemProcess>): boolean {
  return parent === process.pid || known.has(parent);
}

/**
 * Returns the processes in the order of their ids, so that most parents come before their children; none without /proc. Known ones are not read again: to read all
 * takes 60 ms of a processor.
 */
async function runningProcesses(
  before: ReadonlyMap<number, SystemProcess>,
): Promise<ReadonlyMap<number, SystemProcess>> {
  const pids = (await readdir("/proc").catch(() => [])).filter((name) => /^\d+$/.test(name)).map(Number);
  const all = await Promise.all(pids.toSorted((a, b) => a - b).map((pid) => before.get(pid) ?? readProcess(pid)));
  return new Map(all.filter((each) => each !== null).map((each) => [each.pid, each]));
}

/** Null if it has ended. */
async function readProcess(pid: number): Promise<SystemProcess | null> {
  const text = await readFile(`/proc/${pid}/stat`, "utf8").catch(() => "");
  // The program's name is in parentheses and may contain both; behind it are the state, the parent, and the start as the 20th.
  const [state, parent, ...fields] = text.slice(text.lastIndexOf(")") + 2).split(" ");
  return !state || state === "Z" || state === "X" ? null : { pid, parent: Number(parent), startedAt: fields[17]! };
}

async function commandOf(pid: number): Promise<string> {
  const line = await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "");
  return line.replaceAll("\0", " ").trim();
}
