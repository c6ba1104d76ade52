import { setTimeout as sleep } from "node:timers/promises";
import { type Cluster, type ClusterOptions, startCluster } from "./cluster.ts";

const RESTARTS_IN_A_ROW = 5;
/** A server that has lived this long had started well: its end is a new story. */
const SETTLED_AFTER_MS = 60_000;

export type Supervised = Pick<Cluster, "url" | "stop">;

/** Starts the cluster and starts it again when it dies; tells when it must give up. */
export async function superviseCluster(options: ClusterOptions, giveUp: (reason: Error) => void): Promise<Supervised> {
  let cluster = await startCluster(options);
  let stopping = false;

  const keep = async () => {
    for (let restarts = 1; restarts <= RESTARTS_IN_A_ROW; restarts++) {
      const startedAt = Date.now();
      const how = await cluster.ended;
      if (stopping) return;
      if (Date.now() - startedAt > SETTLED_AFTER_MS) restarts = 1;
      options.tell(`the embedded Postgres ended unasked (${how.split("\n")[0]}); starting it again`);
      await sleep((restarts - 1) * 500);
      if (stopping) return;
      cluster = await startCluster(options);
    }
    throw new Error(`The embedded Postgres ended ${RESTARTS_IN_A_ROW} times in a row: ${await cluster.ended}`);
  };
  const kept = keep().catch((error: Error) => giveUp(error));

  return {
    url: (...place) => cluster.url(...place),
    async stop() {
      stopping = true;
      await cluster.stop();
      await kept;
      await cluster.stop();
    },
  };
}
