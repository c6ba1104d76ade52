import { availableParallelism } from "node:os";
import { type CatalogKeeper, type CatalogOptions, type ConfigKeeper, keepCatalog, keepConfig } from "#catalog/loading";
import { openWalArchive, type ServedPostgres, startPostgres } from "#cluster";
import type { WalArchiveState } from "#cluster/wal-archive";
import { type Config, isEmbedded } from "#config";
import { toPgConnectionString } from "#config/connection-string";
import { openTracing, type Tracing } from "#http/observability";
import { bringUpToDate, setAccountSettings, setUsersAccess } from "#migrate";
import { type Listener, openListener } from "#postgres/client";
import {
  type AsOwner,
  combineObservers,
  type Database,
  logSlowStatements,
  openDatabase,
  SlowStatements,
} from "#postgres/database";
import { NO_PEERS, type PeerWorkers, Supervisor } from "#runtime/concurrency";
import type { Logger } from "#runtime/log";

export type CoreOptions = {
  readonly log: Logger;
  /** Prints the progress of the start. */
  readonly report: (step: string) => void;
  /** Called when the service cannot continue. */
  readonly onFatalError: (reason: Error) => void;
  /** Called when the committed migrations are applied, before anything is read from the database. */
  readonly onMigrated?: (settings: ServedPostgres["migrate"]) => Promise<void>;
  /** The database, if another process has started it. */
  readonly postgres?: ServedPostgres;
  /** The database, if this process has begun to start it. */
  readonly startingPostgres?: Promise<ServedPostgres>;
  readonly peers?: PeerWorkers;
  /** The state of the WAL archive, if another process writes it. */
  readonly walArchive?: () => WalArchiveState | null;
};

/** The services that all interfaces use. */
export type ServiceCore = {
  readonly postgres: ServedPostgres;
  /** The settings at the start, including those in the database. */
  readonly config: Config;
  readonly settings: ConfigKeeper;
  readonly database: Database;
  readonly slowStatements: SlowStatements;
  readonly asOwner: AsOwner;
  readonly catalog: CatalogKeeper;
  readonly listener: Listener;
  readonly supervisor: Supervisor;
  readonly tracing: Tracing | null;
  /** Null if the WAL is not archived. */
  readonly walArchive: () => WalArchiveState | null;
  readonly peers: PeerWorkers;
  readonly log: Logger;
};

/** Starts or reaches Postgres and migrates it; reads the settings in the database and the catalogue. */
export async function openCore(
  environmentConfig: Config,
  options: CoreOptions,
  opened: AsyncDisposableStack,
): Promise<ServiceCore> {
  const { log, report, onFatalError, peers = NO_PEERS } = options;
  const postgres =
    options.postgres ?? (await (options.startingPostgres ?? startPostgres(environmentConfig, report, onFatalError)));
  let close = () => postgres.close();
  opened.defer(() => close());
  const { migrate, requestUrl, directUrl, loginRole } = postgres;
  await bringUpToDate({ settings: migrate, requestUrl, isOwnDatabase: isEmbedded(environmentConfig), report });
  await options.onMigrated?.(migrate);
  // If another process has started Postgres, that process archives its WAL, too.
  const archiver = options.postgres ? null : await openWalArchive({ config: environmentConfig, postgres, log });
  if (archiver) close = () => archiver.closeWith(() => postgres.close());
  const walArchive = options.walArchive ?? (() => archiver?.state ?? null);

  const supervisor = new Supervisor({ log });
  const listener = openListener({ url: directUrl, supervisor, log });
  opened.defer(() => listener.close());
  const reloads = environmentConfig.channelEnabled ? listener : null;
  const settings = await keepConfig({ config: environmentConfig, url: requestUrl, listener: reloads, supervisor, log });
  const config = settings.current();

  const tracing = await openTracing(config, log, supervisor);
  opened.defer(() => tracing?.close());
  const slowStatements = new SlowStatements();
  const database = openRequestDatabase(config, postgres, { tracing, slowStatements, peers, supervisor, log });
  opened.defer(() => database.close());
  const asOwner: AsOwner = (work) => database.asOwner(work);
  await asOwner((client) => setUsersAccess(client, config.usersAccess));
  await asOwner((client) => setAccountSettings(client, config));

  const catalog = await keepCatalog({
    ...catalogOptionsOf(config, loginRole),
    asOwner,
    listener: reloads,
    channel: config.channel,
    supervisor,
    log,
  });
  opened.defer(() => catalog.close());
  catalog.onChange(() => database.forgetStatements());
  // Postgres keeps plans when roles get or lose members, and these plans have the old policies.
  catalog.onDifference(() => database.forgetStatements());
  const parts = { postgres, config, settings, database, slowStatements, asOwner, catalog, listener, tracing };
  return { ...parts, supervisor, walArchive, peers, log };
}

/** Returns the part of the database that the catalogue describes, by the settings. */
export function catalogOptionsOf(config: Config, loginRole: string): CatalogOptions {
  const { schemas, extraSearchPath, timezoneEnabled: timeZones } = config;
  return { schemas, extraSearchPath, timeZones, loginRole };
}

/** The connection pools that requests use. */
function openRequestDatabase(
  config: Config,
  { requestUrl, ownerUrl }: ServedPostgres,
  {
    tracing,
    slowStatements,
    peers,
    supervisor,
    log,
  }: Pick<ServiceCore, "tracing" | "slowStatements" | "peers" | "supervisor" | "log">,
): Database {
  const milliseconds = config.slowQueryMs;
  const slow = milliseconds === 0 ? [] : [logSlowStatements({ log, milliseconds, kept: slowStatements })];
  return openDatabase({
    url: requestUrl,
    ownerUrl,
    log,
    poolSize: config.poolSize,
    preparedStatements: config.preparedStatements,
    transactionMode: config.transactionMode,
    settingMode: config.settingMode,
    pipelineDepth: config.pipelineDepth,
    ...(isEmbedded(config) && { sharedProcessors: availableParallelism() * config.workerShare }),
    statementTimeout: config.statementTimeout * 1000,
    lockTimeout: config.lockTimeout * 1000,
    anonymous: { role: config.anonRole, statementTimeout: config.anonStatementTimeout * 1000 },
    acquireTimeout: config.acquireTimeout * 1000,
    maxAnswerBytes: config.maxAnswerBytes,
    answerMemory: config.answerMemory,
    observe: combineObservers([...slow, ...(tracing ? [tracing.observe] : [])]),
    replicaUrls: config.readDatabaseUrls?.map(toPgConnectionString) ?? [],
    maxReplicaLag: config.maxReplicaLag,
    peers,
    supervisor,
  });
}
