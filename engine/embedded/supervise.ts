import { setTimeout as sleep } from "node:timers/promises";
import { delayBefore } from "../delay-before.ts";
import { claimantOf } from "./claim.ts";
import { type Cluster, type ClusterOptions, startCluster } from "./cluster.ts";
import { foldersOf } from "./folders.ts";

/** A server that dies sooner after it was ready has not started well, as on a full disk, and may not do so again. */
const SHORT_LIFE_MS = 1_000;
/** That it still cannot be started is no news each second. */
const REMINDER_MS = 30_000;

export type Supervised = Pick<Cluster, "url" | "stop">;

/**
 * Starts the cluster, and starts it again whenever it dies, for as long as it takes: a full disk is emptied some day.
 * At once, since requests wait for it; with growing pauses only while starts fail. Gives up when the folder is another
 * process's by then.
 */
export async function superviseCluster(options: ClusterOptions, giveUp: (reason: Error) => void): Promise<Supervised> {
  const { tell, dataDir } = options;
  let cluster = await startCluster(options);
  const stopping = new AbortController();
  const isStopping = () => stopping.signal.aborted;
  let failures = 0;
  let toldAt = Number.NEGATIVE_INFINITY;

  const pause = async () => {
    if (failures > 0) await sleep(delayBefore(failures), undefined, { signal: stopping.signal }).catch(() => {});
  };

  const restart = async (): Promise<Cluster | null> => {
    await pause();
    if (isStopping()) return null;
    try {
      return await startCluster(options);
    } catch (error) {
      failures++;
      const reason = error as Error;
      const claimant = await claimantOf(foldersOf(dataDir).ownerFile);
      if (claimant !== null && claimant !== process.pid) throw reason;
      if (performance.now() - toldAt > REMINDER_MS) {
        toldAt = performance.now();
        tell(`the embedded Postgres cannot be started (${lastWord(reason.message)}); trying again`);
      }
      return null;
    }
  };

  const keep = async () => {
    while (!isStopping()) {
      const readyAt = performance.now();
      const how = await cluster.ended;
      if (isStopping()) return;
      tell(`the embedded Postgres ended unasked (${lastWord(how)}); starting it again`);
      if (performance.now() - readyAt < SHORT_LIFE_MS) failures++;
      else {
        failures = 0;
        toldAt = Number.NEGATIVE_INFINITY;
      }
      let restarted: Cluster | null = null;
      while (!restarted && !isStopping()) restarted = await restart();
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
