import { setTimeout as sleep } from "node:timers/promises";
import { claimantOf } from "./claim.ts";
import { type Cluster, type ClusterOptions, startCluster } from "./cluster.ts";
import { foldersOf } from "./folders.ts";

/** A server that has lived this long had started well: its end is a new story. */
const SETTLED_AFTER_MS = 60_000;
const LONGEST_PAUSE_MS = 10_000;

export type Supervised = Pick<Cluster, "url" | "stop">;

/**
 * Starts the cluster, and starts it again whenever it dies, for as long as it takes: a full disk is emptied some day.
 * Gives up when the folder is another process's by then.
 */
export async function superviseCluster(options: ClusterOptions, giveUp: (reason: Error) => void): Promise<Supervised> {
  const { tell, dataDir } = options;
  let cluster = await startCluster(options);
  const stopping = new AbortController();
  const isStopping = () => stopping.signal.aborted;
  const pause = (attempt: number) =>
    sleep(Math.min(attempt * 500, LONGEST_PAUSE_MS), undefined, { signal: stopping.signal }).catch(() => {});

  const restart = async (attempt: number): Promise<Cluster | null> => {
    await pause(attempt);
    if (isStopping()) return null;
    try {
      return await startCluster(options);
    } catch (error) {
      const reason = error as Error;
      const claimant = await claimantOf(foldersOf(dataDir).ownerFile);
      if (claimant !== null && claimant !== process.pid) throw reason;
      tell(`the embedded Postgres cannot be started (${lastWord(reason.message)}); trying again`);
      return null;
    }
  };

  const keep = async () => {
    let attempts = 0;
    while (!isStopping()) {
      const startedAt = performance.now();
      const how = await cluster.ended;
      if (isStopping()) return;
      tell(`the embedded Postgres ended unasked (${lastWord(how)}); starting it again`);
      if (performance.now() - startedAt > SETTLED_AFTER_MS) attempts = 0;
      let restarted: Cluster | null = null;
      while (!restarted && !isStopping()) restarted = await restart(attempts++);
      cluster = restarted ?? cluster;
    }
  };
  const kept = keep().catch((error: Error) => giveUp(error));

  return {
    url: (...place) => cluster.url(...place),
    async stop() {
      stopping.abort();
      await cluster.stop();
      await kept;
      // Another one may have been about to start.
      await cluster.stop();
    },
  };
}

/** Of what the server said at its end, the line that tells why; how it ended where none does. */
function lastWord(words: string): string {
  const lines = words.split("\n");
  return lines.findLast((line) => /\b(PANIC|FATAL):/.test(line)) ?? lines[0]!;
}
