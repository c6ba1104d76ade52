import { setTimeout as sleep } from "node:timers/promises";
import { makeCallers } from "./engine/caller/caller.ts";
import { deploymentKeys } from "./engine/caller/deployment-keys.ts";
import { keepCatalog } from "./engine/catalog/keep.ts";
import { type Config, isEmbedded } from "./engine/config/config.ts";
import { type Database, openDatabase } from "./engine/database/database.ts";
import { openListener } from "./engine/listen.ts";
import type { Logger } from "./engine/log.ts";
import { bringUpToDate } from "./engine/migrate/bring-up-to-date.ts";
import { type Postgres, startPostgres } from "./engine/postgres.ts";
import { answerWith } from "./rest-gateway/answer.ts";
import { makeApp } from "./rest-gateway/app.ts";
import { makeEntry } from "./rest-gateway/entry.ts";
import { makeGateway } from "./rest-gateway/gateway.ts";
import { healthRoutes } from "./rest-gateway/health.ts";
import { addressOf, checkAddress, drain, listen } from "./rest-gateway/listen.ts";
import { makeTableInterface, PREFIX } from "./rest-gateway/table/handle.ts";

export type Service = {
  /** Where clients reach it. */
  readonly url: string;
  readonly postgres: Postgres;
  /** Answers what is in flight, then lets go of everything. */
  stop(): Promise<void>;
};

export type Surroundings = {
  readonly log: Logger;
  /** Says what is being done, for the person who waits. */
  readonly tell: (step: string) => void;
  /** Called when the service cannot go on. */
  readonly giveUp: (reason: Error) => void;
};

/** How long the database may take to say that it is well. */
const HEALTH_PATIENCE_MS = 2_000;

/** Everything that runs, wired from the bottom up; what was opened last is closed first. */
export async function startService(config: Config, { log, tell, giveUp }: Surroundings): Promise<Service> {
  await checkAddress(config);
  await using opened = new AsyncDisposableStack();

  const postgres = await startPostgres(config, tell, giveUp);
  opened.defer(() => postgres.close());
  await bringUpToDate({ settings: postgres.migrate, ours: isEmbedded(config), tell });

  const database = openDatabase({
    url: postgres.requestUrl,
    ownerUrl: postgres.ownerUrl,
    log,
    poolSize: config.poolSize,
    preparedStatements: config.preparedStatements,
    statementTimeout: config.statementTimeout * 1000,
    acquireTimeout: config.acquireTimeout * 1000,
  });
  opened.defer(() => database.close());

  const listener = config.channelEnabled ? openListener({ url: postgres.ownerUrl, log }) : null;
  opened.defer(async () => listener?.close());

  const catalog = await keepCatalog({
    asOwner: (work) => database.asOwner(work),
    listener,
    channel: config.channel,
    schemas: config.schemas,
    extraSearchPath: config.extraSearchPath,
    loginRole: postgres.loginRole,
    log,
  });
  opened.defer(() => catalog.close());
  catalog.onChange(() => database.forgetStatements());

  let accepting = true;
  const routes = healthRoutes({
    databaseFault: () => databaseFault(database),
    askDatabase: () => askDatabase(database),
    schemaFault: () => catalog.state().reason,
    acceptsWork: () => accepting,
  });
  const callers = makeCallers({ ...config, keys: await deploymentKeys(config) });
  const table = makeTableInterface({ config, callers, database, catalog: () => catalog.current() });
  const gateway = makeGateway({ routes, folders: { [PREFIX]: table }, errorBody: config.errorBody, log });
  const answer = answerWith(gateway, config, log);
  const entry = makeEntry({ config, log, ahead: { folder: PREFIX, answer }, app: makeApp({ config, answer }) });
  const server = await listen(entry, config);
  opened.defer(async () => {
    accepting = false;
    await drain(server, config.drainTimeout * 1000);
  });

  const running = opened.move();
  return { url: addressOf(server, config.host), postgres, stop: () => running.disposeAsync() };
}

function databaseFault(database: Database): string | null {
  const { status, reason } = database.state();
  return status === "up" ? null : (reason ?? "not connected yet");
}

async function askDatabase(database: Database): Promise<void> {
  const answer = database.asOwner((client) => client.query("select"));
  const silence = sleep(HEALTH_PATIENCE_MS, undefined, { ref: false }).then(() => {
    throw new Error(`no answer for ${HEALTH_PATIENCE_MS} ms`);
  });
  await Promise.race([answer, silence]);
}
