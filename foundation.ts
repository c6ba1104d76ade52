import type { CatalogOptions } from "./engine/catalog/content.ts";
import { type CatalogKeeper, keepCatalog } from "./engine/catalog/keep.ts";
import { type Config, isEmbedded } from "./engine/config/config.ts";
import { type ConfigKeeper, keepConfig } from "./engine/config/keep.ts";
import { asPgReads } from "./engine/connection-string.ts";
import type { AsOwner } from "./engine/database/as-owner.ts";
import { type Database, openDatabase } from "./engine/database/database.ts";
import { observeAll } from "./engine/database/observe.ts";
import { logSlowStatements } from "./engine/database/slow-statements.ts";
import { type Listener, openListener } from "./engine/listen.ts";
import type { Logger } from "./engine/log.ts";
import { bringUpToDate } from "./engine/migrate/bring-up-to-date.ts";
import { type ServedPostgres, startPostgres } from "./engine/postgres.ts";
import { openTracing, type Tracing } from "./engine/tracing/tracing.ts";
import type { Surroundings } from "./service.ts";

/** What every interface stands on. */
export type Foundation = {
  readonly postgres: ServedPostgres;
  /** As they are at the start, with what the database says of them. */
  readonly config: Config;
  readonly settings: ConfigKeeper;
  readonly database: Database;
  readonly asOwner: AsOwner;
  readonly catalog: CatalogKeeper;
  readonly listener: Listener;
  readonly tracing: Tracing | null;
  readonly log: Logger;
};

/** Starts Postgres or reaches it, up to date; reads the settings that it holds, and what it has. */
export async function layFoundation(
  given: Config,
  surroundings: Surroundings,
  opened: AsyncDisposableStack,
): Promise<Foundation> {
  const { log, tell, giveUp } = surroundings;
  const postgres = surroundings.postgres ?? (await startPostgres(given, tell, giveUp));
  opened.defer(() => postgres.close());
  const { migrate, requestUrl, ownerUrl, loginRole } = postgres;
  await bringUpToDate({ settings: migrate, requestUrl, ours: isEmbedded(given), tell });

  const listener = openListener({ url: ownerUrl, log });
  opened.defer(() => listener.close());
  const reloads = given.channelEnabled ? listener : null;
  const settings = await keepConfig({ config: given, url: requestUrl, listener: reloads, log });
  const config = settings.current();

  const tracing = await openTracing(config, log);
  opened.defer(() => tracing?.close());
  const database = openRequests(config, postgres, { tracing, log });
  opened.defer(() => database.close());
  const asOwner: AsOwner = (work) => database.asOwner(work);

  const catalog = await keepCatalog({
    ...catalogOptions(config, loginRole),
    asOwner,
    listener: reloads,
    channel: config.channel,
    log,
  });
  opened.defer(() => catalog.close());
  catalog.onChange(() => database.forgetStatements());
  return { postgres, config, settings, database, asOwner, catalog, listener, tracing, log };
}

/** How the catalogue is read by those settings. */
export function catalogOptions(config: Config, loginRole: string): CatalogOptions {
  const { schemas, extraSearchPath, timezoneEnabled: timeZones } = config;
  return { schemas, extraSearchPath, timeZones, loginRole };
}

/** The way to Postgres that requests take. */
function openRequests(
  config: Config,
  { requestUrl, ownerUrl }: ServedPostgres,
  { tracing, log }: Pick<Foundation, "tracing" | "log">,
): Database {
  const slowStatements = config.slowQueryMs === 0 ? [] : [logSlowStatements({ log, milliseconds: config.slowQueryMs })];
  return openDatabase({
    url: requestUrl,
    ownerUrl,
    log,
    poolSize: config.poolSize,
    preparedStatements: config.preparedStatements,
    pipelineDepth: config.pipelineDepth,
    statementTimeout: config.statementTimeout * 1000,
    lockTimeout: config.lockTimeout * 1000,
    anonymous: { role: config.anonRole, statementTimeout: config.anonStatementTimeout * 1000 },
    acquireTimeout: config.acquireTimeout * 1000,
    maxAnswerBytes: config.maxAnswerBytes,
    observe: observeAll([...slowStatements, ...(tracing ? [tracing.observe] : [])]),
    replicaUrls: config.readDatabaseUrls?.map(asPgReads) ?? [],
    mostReplicaLag: config.maxReplicaLag,
  });
}
