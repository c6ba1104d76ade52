import { type Config, isEmbedded } from "../engine/config/config.ts";
import { bringUpToDate } from "../engine/migrate/bring-up-to-date.ts";
import { startPostgres } from "../engine/postgres.ts";
import { checkAddress } from "../rest-gateway/listen.ts";
import type { Running, Surroundings } from "../service.ts";
import { WorkerCluster } from "./worker-cluster.ts";

/** Each worker needs at least one connection per pool. */
const MIN_POOL_SIZE = 4;

/**
 * Runs the service in several processes at one address. The primary starts Postgres, migrates it and supervises the
 * workers, but serves no requests. All shared state is in Postgres.
 */
export async function startWorkerCluster(config: Config, { log, tell, giveUp }: Surroundings): Promise<Running> {
  await checkAddress(config);
  await using opened = new AsyncDisposableStack();
  const { close, ...postgres } = await startPostgres(config, tell, giveUp);
  opened.defer(close);
  await bringUpToDate({ settings: postgres.migrate, requestUrl: postgres.requestUrl, ours: isEmbedded(config), tell });

  const size = config.workers;
  const poolSize = Math.max(MIN_POOL_SIZE, Math.floor(config.poolSize / size));
  const cluster = new WorkerCluster({ size, config: { ...config, poolSize }, postgres, log });
  opened.defer(() => cluster.stop());
  tell(`starting ${size} processes`);
  const url = await cluster.start();

  const running = opened.move();
  return {
    url,
    postgres: { ...postgres, close },
    operable: {
      isReady: async () => (await cluster.query("isReady")).includes(true),
      measure: async () => (await cluster.query("measure")).flat(),
      underWay: async () => (await cluster.query("underWay")).flat(),
    },
    renew: () => cluster.replaceAll(),
    stop: () => running.disposeAsync(),
  };
}
