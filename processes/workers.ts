import { type Config, isEmbedded } from "../engine/config/config.ts";
import { bringUpToDate } from "../engine/migrate/bring-up-to-date.ts";
import { startPostgres } from "../engine/postgres.ts";
import { checkAddress } from "../rest-gateway/listen.ts";
import type { Running, Surroundings } from "../service.ts";
import { Crew } from "./crew.ts";

/** Fewer would leave a worker without one for each kind of work. */
const LEAST_CONNECTIONS = 4;

/**
 * The service in several processes at one address. This one starts Postgres, brings it up to date and looks after the
 * workers; it serves nothing itself. What the workers have in common is in Postgres.
 */
export async function startWorkers(given: Config, { log, tell, giveUp }: Surroundings): Promise<Running> {
  await checkAddress(given);
  await using opened = new AsyncDisposableStack();
  const { close, ...postgres } = await startPostgres(given, tell, giveUp);
  opened.defer(close);
  await bringUpToDate({ settings: postgres.migrate, requestUrl: postgres.requestUrl, ours: isEmbedded(given), tell });

  const size = given.workers;
  const poolSize = Math.max(LEAST_CONNECTIONS, Math.floor(given.poolSize / size));
  const crew = new Crew({ size, config: { ...given, poolSize }, postgres, log });
  opened.defer(() => crew.stop());
  tell(`starting ${size} processes`);
  const url = await crew.start();

  const running = opened.move();
  return {
    url,
    postgres: { ...postgres, close },
    operable: {
      isReady: async () => (await crew.ask("isReady")).includes(true),
      measure: async () => (await crew.ask("measure")).flat(),
      underWay: async () => (await crew.ask("underWay")).flat(),
    },
    renew: () => crew.replaceAll(),
    stop: () => running.disposeAsync(),
  };
}
