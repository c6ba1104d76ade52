import { closeSync, openSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { setPriority, tmpdir } from "node:os";
import { join } from "node:path";
import { type OursOptions, startOurs } from "../comparison/ours.ts";
import { residentMebibytes } from "../measuring/resident-memory.ts";
import type { Scratch } from "../measuring/scratch.ts";
import { watchMemory } from "../measuring/watch-memory.ts";
import { LOWEST_PRIORITY, type Victim } from "./attack.ts";
import { writeFunctions } from "./functions-folder.ts";
import { LOOP_WATCH, longestHold } from "./loop-holds.ts";

/** The limit of `deploy/kubernetes.yaml`, beyond which a container is killed. */
const MEMORY_LIMIT_MEBIBYTES = 1024;
/** The limit that node sets by default in such a container. */
const HEAP_LIMIT = "--max-old-space-size=512";

type WatchedService = AsyncDisposable & {
  readonly url: string;
  /** The memory in mebibytes: now, and the maximum so far; null if the system does not say. */
  resident(): Promise<number | null>;
  peak(): number;
  /** The longest hold in milliseconds since then, by `Date.now()`. */
  longestHold(since: number): Promise<number>;
  /** Returns how the service ended; null while it runs. */
  ending(): string | null;
};

/** Starts the service for honest callers, and kills it if it takes too much memory, like a container. */
export async function startWatched(scratch: Scratch): Promise<WatchedService> {
  await using opened = new AsyncDisposableStack();
  const folder = opened.adopt(await mkdtemp(join(tmpdir(), "content-service-watch-")), (path) =>
    rm(path, { recursive: true }),
  );
  const file = join(folder, "holds");
  const functions = join(folder, "functions");
  await writeFunctions(functions);
  const service = await startOurs(scratch, scratch.url("authenticator"), {
    execArgv: [...LOOP_WATCH, HEAP_LIMIT],
    env: { LOOP_WATCH_FILE: file, LOAD_SHEDDING: "true", TRUST_PROXY: "loopback", FUNCTIONS_DIR: functions },
  });
  opened.adopt(service, () => service.stop("SIGKILL"));
  let wasKilled = false;
  const memory = watchMemory(service.pid, {
    mebibytes: MEMORY_LIMIT_MEBIBYTES,
    exceeded() {
      if (wasKilled || service.ending() !== null) return;
      wasKilled = true;
      process.kill(service.pid, "SIGKILL");
    },
  });
  opened.defer(() => void memory.stop());
  const everything = opened.move();
  return {
    url: service.base.origin,
    resident: () => residentMebibytes(service.pid),
    peak: () => memory.most(),
    longestHold: (since) => longestHold(file, since),
    ending: () => (wasKilled ? `killed: more than ${MEMORY_LIMIT_MEBIBYTES} MiB` : service.ending()),
    [Symbol.asyncDispose]: () => everything.disposeAsync(),
  };
}

export type VictimOptions = Pick<OursOptions, "env"> & { readonly stderr?: "full" | "unread" };

/** The time after which the victim is used even if it is not ready; the attack reports that. */
const READY_WITHIN_SECONDS = 20;

/** Starts a service that only one attack uses. */
export async function startVictim(
  scratch: Scratch,
  { env = {}, stderr }: VictimOptions,
): Promise<Victim & AsyncDisposable> {
  const device = stderr === "full" ? openSync("/dev/full", "w") : null;
  const sink = device ?? (stderr === "unread" ? "unread" : "read");
  try {
    const service = await startOurs(scratch, scratch.url("authenticator"), {
      env,
      stderr: sink,
      readyWithinSeconds: READY_WITHIN_SECONDS,
    });
    // In production this service has its own machine: here it gets the time that others leave, like attackers.
    setPriority(service.pid, LOWEST_PRIORITY);
    return { url: service.base.origin, pid: service.pid, [Symbol.asyncDispose]: () => service.stop("SIGKILL") };
  } finally {
    if (device !== null) closeSync(device);
  }
}
