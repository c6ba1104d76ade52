import type { RecentEmails } from "#accounts/mail";
import type { Config } from "#config";
import type { ServiceOperations } from "#http/admin";
import { makeMetricsReader, type ProcessActivity, RequestHistory } from "#http/observability";
import { type HealthState, isReady, makeHealthState, type WorkersState } from "#http/serving";
import type { SlowStatements } from "#postgres/database";
import type { Functions } from "#rest-gateway";
import { type MetricsDependencies, serviceMetrics } from "./metrics.ts";

type ServiceHealthOptions = Pick<
  MetricsDependencies,
  "database" | "catalog" | "graphql" | "backups" | "walArchive" | "supervisor"
> & {
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

type ServiceOperationsOptions = MetricsDependencies & {
  readonly config: Pick<Config, "adminPort">;
  readonly health: HealthState;
  readonly slowStatements: SlowStatements;
  /** Null if e-mails are not kept. */
  readonly emails: RecentEmails | null;
  /** Null if functions are switched off. */
  readonly functions: Functions | null;
  readonly opened: AsyncDisposableStack;
};

/** Makes the operations that operators request of this process. */
export function openOperations(dependencies: ServiceOperationsOptions): ServiceOperations {
  const { config, database, health, requests, emails, functions, opened } = dependencies;
  const readMetrics = config.adminPort === null ? null : makeMetricsReader(serviceMetrics(dependencies));
  const history = new RequestHistory(() => requests.totals());
  opened.defer(() => history.close());
  return {
    isReady: () => isReady(health),
    measure: async () => (readMetrics ? [await readMetrics()] : []),
    underWay: async () => database.runningStatements(),
    activity: async () => {
      requests.watch();
      return [readActivity(dependencies, history)];
    },
    recentEmails: async () => emails?.list() ?? [],
    recentRequests: async () => requests.recent.list(),
    functionLines: async () => functions?.lines() ?? [],
  };
}

function readActivity(
  { database, counts, slowStatements, realtime, graphql }: ServiceOperationsOptions,
  history: RequestHistory,
): ProcessActivity {
  const { rss, heapUsed } = process.memoryUsage();
  const { user, system } = process.cpuUsage();
  const pools = Object.entries(database.state().pools).map(([name, { connections, max, inFlight, waiting }]) => [
    name,
    { connections, max, inFlight, waiting },
  ]);
  const { sockets, channels, subscriptions } = realtime.statistics();
  const graphqlState = graphql.state();
  return {
    pid: process.pid,
    uptimeSeconds: Math.round(process.uptime()),
    processorSeconds: (user + system) / 1e6,
    memoryBytes: rss,
    heapBytes: heapUsed,
    requests: history.intervals,
    errors: counts.errors.counts(),
    pools: Object.fromEntries(pools),
    statements: database.runningStatements(),
    slowStatements: slowStatements.list(),
    replicas: database.replicas(),
    realtime: { sockets, channels, subscriptions },
    graphql: {
      sockets: graphqlState.sockets,
      operations: graphqlState.operations,
      subscriptions: graphqlState.subscriptions,
    },
  };
}
