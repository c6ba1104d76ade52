import type { RecentEmails } from "#accounts/mail";
import type { CatalogKeeper } from "#catalog/loading";
import type { ScheduledBackup } from "#cluster/archive";
import type { WalArchiveState } from "#cluster/wal-archive";
import type { Config } from "#config";
import type { GraphqlInterface } from "#graphql";
import type { ServiceOperations } from "#http/admin";
import {
  type MetricSource,
  makeMetricsReader,
  type ProcessActivity,
  ProcessHistory,
  type ProcessReadings,
  RequestHistory,
  type ServiceCounters,
} from "#http/observability";
import { type HealthState, isReady, makeHealthState, type RequestMetrics, type WorkersState } from "#http/serving";
import type { Database, SlowStatements } from "#postgres/database";
import type { Realtime } from "#realtime";
import type { Functions } from "#rest-gateway";
import type { Supervisor } from "#runtime/concurrency";

type ServiceHealthOptions = {
  readonly database: Database;
  readonly catalog: CatalogKeeper;
  readonly graphql: GraphqlInterface;
  readonly backups: ScheduledBackup | null;
  /** Null if the WAL is not archived. */
  readonly walArchive: () => WalArchiveState | null;
  readonly supervisor: Supervisor;
  /** Undefined in a single process. */
  readonly workers: (() => WorkersState) | undefined;
  readonly acceptsWork: () => boolean;
};

/**
 * The delay after which a catalogue is late. A schema change is usually served sooner, unless Postgres or the process is busy.
 * GraphQL follows when its schema is built.
 */
const LATE_CATALOG_MS = 10_000;

function lateCatalog({ lateMs }: ReturnType<ServiceHealthOptions["catalog"]["state"]>): string | null {
  return lateMs > LATE_CATALOG_MS ? `the database was changed ${Math.round(lateMs / 1_000)} s ago` : null;
}

export function makeServiceHealth(dependencies: ServiceHealthOptions): HealthState {
  const { database, catalog, graphql, backups, walArchive, workers, acceptsWork, supervisor } = dependencies;
  return makeHealthState({
    database,
    schemaFault: () => catalog.state().reason ?? graphql.state().fault ?? lateCatalog(catalog.state()),
    isSchemaAwaited: () => graphql.state().isBuildingFirst,
    leftOut: () => graphql.state().leftOut,
    backups: () => backups?.state ?? null,
    walArchive,
    workers: () => workers?.() ?? null,
    acceptsWork,
    stoppedWork: () => supervisor.stopped(),
  });
}

type ServiceOperationsOptions = {
  readonly database: Database;
  readonly realtime: Realtime;
  readonly graphql: GraphqlInterface;
  readonly counts: ServiceCounters;
  readonly requests: RequestMetrics;
  readonly config: Pick<Config, "adminPort">;
  readonly health: HealthState;
  readonly metrics: readonly MetricSource[];
  readonly slowStatements: SlowStatements;
  /** Null if e-mails are not kept. */
  readonly emails: RecentEmails | null;
  /** Null if functions are switched off. */
  readonly functions: Functions | null;
  readonly opened: AsyncDisposableStack;
};

/** Makes the operations that operators request of this process. */
export function openOperations(dependencies: ServiceOperationsOptions): ServiceOperations {
  const { config, database, health, metrics, requests, emails, functions, opened } = dependencies;
  const readMetrics = config.adminPort === null ? null : makeMetricsReader(metrics);
  const requestHistory = new RequestHistory(() => requests.totals());
  opened.defer(() => requestHistory.close());
  const processHistory = new ProcessHistory(() => readProcess(dependencies));
  opened.defer(() => processHistory.close());
  return {
    isReady: () => isReady(health),
    measure: async () => (readMetrics ? [await readMetrics()] : []),
    underWay: async () => database.runningStatements(),
    activity: async () => {
      requests.watch();
      return [{ ...readActivity(dependencies), requests: requestHistory.intervals, samples: processHistory.samples }];
    },
    recentEmails: async () => emails?.list() ?? [],
    recentRequests: async () => requests.recent.list(),
    functionLines: async () => functions?.lines() ?? [],
  };
}

function readActivity(dependencies: ServiceOperationsOptions): Omit<ProcessActivity, "requests" | "samples"> {
  const { database, counts, slowStatements } = dependencies;
  return {
    ...readProcess(dependencies),
    pid: process.pid,
    uptimeSeconds: Math.round(process.uptime()),
    heapBytes: process.memoryUsage().heapUsed,
    errors: counts.errors.counts(),
    statements: database.runningStatements(),
    slowStatements: slowStatements.list(),
    replicas: database.replicas(),
  };
}

/** Reads what is kept of each interval. */
function readProcess({ database, realtime, graphql }: ServiceOperationsOptions): ProcessReadings {
  const { user, system } = process.cpuUsage();
  const pools = Object.entries(database.state().pools).map(([name, { connections, max, inFlight, waiting }]) => [
    name,
    { connections, max, inFlight, waiting },
  ]);
  const { sockets, channels, subscriptions } = realtime.statistics();
  const graphqlState = graphql.state();
  return {
    processorSeconds: (user + system) / 1e6,
    memoryBytes: process.memoryUsage.rss(),
    pools: Object.fromEntries(pools),
    realtime: { sockets, channels, subscriptions },
    graphql: {
      sockets: graphqlState.sockets,
      operations: graphqlState.operations,
      subscriptions: graphqlState.subscriptions,
    },
  };
}
