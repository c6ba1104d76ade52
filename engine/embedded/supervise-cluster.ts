import { setTimeout as sleep } from "node:timers/promises";
import { retryDelay } from "../concurrency/retry-delay.ts";
import { type Cluster, type ClusterOptions, startCluster } from "./cluster.ts";
import { clusterFolders } from "./cluster-folders.ts";
import { findClaimant } from "./file-claim.ts";

/** A server that exits sooner than this counts as a failed start, for example because the disk is full. */
const MIN_UPTIME_MS = 1_000;
/** Repeated start failures are reported at most this often. */
const REPORT_INTERVAL_MS = 30_000;

export type SupervisedCluster = Pick<Cluster, "url" | "stop">;

/**
 * Starts the cluster and restarts it whenever it exits: immediately, because requests wait, and with growing delays while
 * starts fail (a full disk may be cleared). Gives up if another process has claimed the folder.
 */
export async function superviseCluster(
  options: ClusterOptions,
  giveUp: (reason: Error) => void,
): Promise<SupervisedCluster> {
  const { tell } = options;
  const failures = new StartFailures(options);
  let cluster = await startCluster(options);
  const stopping = new AbortController();
  const isStopping = () => stopping.signal.aborted;

  const restart = async (): Promise<Cluster | null> => {
    await failures.pause(stopping.signal);
    if (isStopping()) return null;
    return startCluster(options).catch((reason: Error) => failures.add(reason));
  };

  const superviseUntilStopped = async () => {
    while (!isStopping()) {
      const readyAt = performance.now();
      const how = await cluster.ended;
      if (isStopping()) return;
      tell(`the embedded Postgres exited unexpectedly (${reasonIn(how)}); restarting it`);
      failures.countExit(performance.now() - readyAt);
      let restarted: Cluster | null = null;
      while (!restarted && !isStopping()) restarted = await restart();
      cluster = restarted ?? cluster;
    }
  };
  const supervision = superviseUntilStopped().catch((error: Error) => giveUp(error));

  return {
    url: (...place) => cluster.url(...place),
    async stop() {
      stopping.abort();
      await cluster.stop();
      await supervision;
      // A restart may have completed in the meantime.
      await cluster.stop();
    },
  };
}

/** The failed starts since the server last ran for a while. */
class StartFailures {
  readonly #options: Pick<ClusterOptions, "tell" | "dataDir">;
  #count = 0;
  #reportedAt = Number.NEGATIVE_INFINITY;

  constructor(options: Pick<ClusterOptions, "tell" | "dataDir">) {
    this.#options = options;
  }

  async pause(signal: AbortSignal): Promise<void> {
    if (this.#count > 0) await sleep(retryDelay(this.#count), undefined, { signal }).catch(() => {});
  }

  countExit(uptimeMs: number): void {
    if (uptimeMs < MIN_UPTIME_MS) {
      this.#count++;
      return;
    }
    this.#count = 0;
    this.#reportedAt = Number.NEGATIVE_INFINITY;
  }

  /** Throws the reason if another process has claimed the folder. */
  async add(reason: Error): Promise<null> {
    const { tell, dataDir } = this.#options;
    this.#count++;
    const claimant = await findClaimant(clusterFolders(dataDir).ownerFile);
    if (claimant !== null && claimant !== process.pid) throw reason;
    if (performance.now() - this.#reportedAt > REPORT_INTERVAL_MS) {
      this.#reportedAt = performance.now();
      tell(`the embedded Postgres could not be started (${reasonIn(reason.message)}); retrying`);
    }
    return null;
  }
}

/** The line of the server's last output that gives the reason; otherwise the exit status. */
function reasonIn(words: string): string {
  const lines = words.split("\n");
  return lines.findLast((line) => /\b(PANIC|FATAL):/.test(line)) ?? lines[0]!;
}
