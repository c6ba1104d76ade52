import type { CatalogKeeper } from "#catalog/loading";
import type { BackupState, ScheduledBackup } from "#cluster/archive";
import type { WalArchiveState } from "#cluster/wal-archive";
import type { GraphqlInterface } from "#graphql";
import {
  counter,
  gauge,
  labelled,
  type Metric,
  type MetricSample,
  type MetricSource,
  metricsOfCounters,
  type ServiceCounters,
} from "#http/observability";
import type { HttpTraffic, RequestMetrics } from "#http/serving";
import { countTasks, type Schedules, type SchedulesState } from "#jobs/queue";
import type { WebhookBacklog } from "#jobs/webhook-store";
import type { WebhookCounters, WebhookDispatcher } from "#jobs/webhooks";
import type { LiveQueries, ShapeRegistry } from "#live";
import type { ReplicationStream } from "#live/stream";
import type {
  AsOwner,
  ConnectionCounters,
  ConnectionPoolState,
  ConnectionPoolsState,
  Database,
} from "#postgres/database";
import type { Realtime } from "#realtime";
import type { Supervisor } from "#runtime/concurrency";
import { droppedLogLines } from "#runtime/log";

export type MetricsDependencies = {
  readonly asOwner: AsOwner;
  readonly database: Database;
  readonly catalog: CatalogKeeper;
  readonly changes: ReplicationStream;
  readonly graphql: GraphqlInterface;
  readonly realtime: Realtime;
  readonly live: Pick<LiveQueries, "statistics">;
  readonly shapes: Pick<ShapeRegistry, "statistics">;
  /** False if the database has no queue for tasks. */
  readonly hasTasks: boolean;
  readonly schedules: Schedules | null;
  readonly backups: ScheduledBackup | null;
  /** Null if the WAL is not archived. */
  readonly walArchive: () => WalArchiveState | null;
  readonly webhooks: WebhookDispatcher | null;
  readonly supervisor: Supervisor;
  readonly counts: ServiceCounters;
  readonly requests: RequestMetrics;
  readonly traffic: HttpTraffic;
};

/** The metrics of the service. Their labels contain no names of tables, no values of rows but names of schedules, and no secrets. */
export function serviceMetrics(dependencies: MetricsDependencies): MetricSource[] {
  const { asOwner, database, catalog, changes, graphql, realtime, hasTasks, schedules, backups, webhooks } =
    dependencies;
  const { counts, requests, traffic } = dependencies;
  return [
    () => requests.metrics(),
    () => traffic.metrics(),
    () => metricsOfCounters(counts),
    () => [counter("log_lines_dropped_total", "Log lines that could not be written.", droppedLogLines())],
    () => databaseMetrics(database.state()),
    () => preparedStatementMetrics(database.state()),
    () => replicaMetrics(database.replicas()),
    () => catalogMetrics(catalog.state()),
    () => graphqlMetrics(graphql.state()),
    () => realtimeMetrics(realtime.statistics()),
    () => liveMetrics(dependencies.live.statistics(), dependencies.shapes.statistics()),
    async () => replicationMetrics(await changes.statistics()),
    () => supervisorMetrics(dependencies.supervisor),
    () => (backups ? backupMetrics(backups.state) : []),
    () => walArchiveMetrics(dependencies.walArchive()),
    async () => (schedules ? scheduleMetrics(await schedules.readState().catch(() => null)) : []),
    async () => (webhooks ? webhookMetrics(webhooks.counters, await webhooks.readBacklog().catch(() => null)) : []),
    async () => (hasTasks ? taskMetrics(await countTasks(asOwner).catch(() => null)) : []),
  ];
}

type SamplePools = (numberOf: (pool: ConnectionPoolState) => number) => readonly MetricSample[];

function samplePools({ pools }: ConnectionPoolsState): SamplePools {
  return (numberOf) => Object.entries(pools).map(([pool, state]) => ({ labels: { pool }, value: numberOf(state) }));
}

function databaseMetrics(state: ConnectionPoolsState): Metric[] {
  const perPool = samplePools(state);
  return [
    gauge("database_up", "Whether Postgres answers.", state.status === "up" ? 1 : 0, "max"),
    gauge(
      "database_connections",
      "Open connections to Postgres.",
      perPool(({ connections }) => connections),
    ),
    gauge(
      "database_connections_max",
      "Maximum number of connections.",
      perPool(({ max }) => max),
    ),
    gauge(
      "database_exchanges_in_flight",
      "Pipelined batches in flight.",
      perPool(({ inFlight }) => inFlight),
    ),
    gauge(
      "database_waiting",
      "Requests that are waiting for a connection.",
      perPool(({ waiting }) => waiting),
    ),
    counter(
      "database_turned_away_total",
      "Requests that timed out while waiting for a connection.",
      perPool(({ counters }) => counters.turnedAway),
    ),
    counter(
      "database_interrupted_total",
      "Reads that were cancelled in favour of waiting requests and repeated.",
      perPool(({ counters }) => counters.interrupted),
    ),
    counter(
      "database_exchanges_total",
      "Pipelined batches that were completed.",
      perPool(({ counters }) => counters.batches),
    ),
    counter(
      "database_seconds_total",
      "Time from sending a batch to its completion, summed.",
      perPool(({ counters }) => counters.milliseconds / 1_000),
    ),
    counter(
      "database_connects_total",
      "Connections opened.",
      perPool(({ counters }) => counters.opened),
    ),
    counter(
      "database_lost_total",
      "Connections lost.",
      perPool(({ counters }) => counters.lost),
    ),
  ];
}

function preparedStatementMetrics(state: ConnectionPoolsState): Metric[] {
  const perPool = samplePools(state);
  const sumOf = (key: keyof ConnectionCounters): number =>
    Object.values(state.pools).reduce((sum, { counters }) => sum + counters[key], 0);
  return [
    gauge(
      "prepared_statements",
      "Prepared statements on open connections.",
      perPool(({ preparedStatements }) => preparedStatements),
    ),
    counter("prepared_statement_uses_total", "Statements sent, by whether they were prepared already.", [
      { labels: { result: "hit" }, value: sumOf("prepared") },
      { labels: { result: "miss" }, value: sumOf("parsed") },
    ]),
    counter("prepared_statement_evictions_total", "Prepared statements that were evicted.", sumOf("evicted")),
  ];
}

function replicaMetrics(replicas: ReturnType<Database["replicas"]>): Metric[] {
  const numbered = replicas.map(({ status, lagSeconds }, index) => ({
    labels: { replica: index + 1 },
    status,
    lagSeconds,
  }));
  const serving = numbered.map(({ labels, status }) => ({ labels, value: status === "serving" ? 1 : 0 }));
  const lags = numbered.flatMap(({ labels, lagSeconds: value }) => (value === null ? [] : [{ labels, value }]));
  return [
    gauge("replica_serving", "Whether reads go to this replica, by its place in READ_DATABASE_URLS.", serving, "max"),
    gauge("replica_lag_seconds", "Replication lag.", lags, "max"),
  ];
}

function catalogMetrics({ status, version, confirmedAt, timings }: ReturnType<CatalogKeeper["state"]>): Metric[] {
  return [
    gauge("catalogue_version", "Version of the schema catalogue; increases with each schema change.", version, "max"),
    gauge(
      "catalogue_degraded",
      "Whether the last reload of the catalogue failed.",
      status === "degraded" ? 1 : 0,
      "max",
    ),
    gauge(
      "catalogue_confirmed_timestamp_seconds",
      "When the catalogue was last known to match the database.",
      confirmedAt.getTime() / 1_000,
      "max",
    ),
    gauge("catalogue_load_seconds", "Duration of the last load of the catalogue.", (timings.total ?? 0) / 1_000, "max"),
  ];
}

function graphqlMetrics(state: ReturnType<GraphqlInterface["state"]>): Metric[] {
  const { fault, isBuildingFirst, sockets, operations, subscriptions, topics } = state;
  return [
    gauge(
      "graphql_degraded",
      "Whether the GraphQL schema failed to build or is still being built.",
      fault === null && !isBuildingFirst ? 0 : 1,
      "max",
    ),
    gauge("graphql_sockets", "Open GraphQL WebSockets.", sockets),
    gauge("graphql_operations", "Active operations on WebSockets.", operations),
    gauge("graphql_subscriptions", "Active subscriptions.", subscriptions),
    gauge("graphql_topics", "Topics that subscriptions listen to.", topics),
  ];
}

function realtimeMetrics(statistics: ReturnType<Realtime["statistics"]>): Metric[] {
  return [
    gauge("realtime_sockets", "Open Realtime WebSockets.", statistics.sockets),
    gauge("realtime_channels", "Joined channels.", statistics.channels),
    gauge("realtime_subscriptions", "Channels with subscriptions to row changes.", statistics.subscriptions),
    counter(
      "realtime_messages_total",
      "Realtime messages.",
      labelled("direction", { in: statistics.messagesIn, out: statistics.messagesOut }),
    ),
    counter(
      "realtime_bytes_total",
      "Bytes of Realtime messages.",
      labelled("direction", { in: statistics.bytesIn, out: statistics.bytesOut }),
    ),
    counter(
      "realtime_overwhelmed_total",
      "WebSockets closed because the client read too slowly.",
      statistics.overwhelmed,
    ),
    counter(
      "realtime_gaps_total",
      "Channels that were sent a notice that they may have missed changes.",
      statistics.gaps,
    ),
    counter("realtime_refusals_total", "Rejected joins.", statistics.refusals),
    counter("realtime_limited_total", "Channels closed and messages rejected because of a limit.", statistics.limited),
  ];
}

function liveMetrics(
  live: ReturnType<LiveQueries["statistics"]>,
  shapes: ReturnType<ShapeRegistry["statistics"]>,
): Metric[] {
  return [
    gauge("live_queries", "Open live queries, those of shapes included.", live.queries),
    gauge("live_results", "Results of live queries: one for all callers who read the same.", live.results),
    gauge("live_result_bytes", "Bytes of these results.", live.bytes),
    counter("live_runs_total", "Runs of live queries after commits that may affect them.", live.runs),
    gauge("shapes", "Shapes whose log is kept.", shapes.shapes),
    gauge("shape_bytes", "Memory of these shapes, estimated.", shapes.bytes),
    gauge("shape_requests_waiting", "Requests that wait for changes of a shape.", shapes.waiting),
  ];
}

function replicationMetrics(statistics: Awaited<ReturnType<ReplicationStream["statistics"]>>): Metric[] {
  return [
    gauge("changes_streaming", "Whether logical replication is streaming.", statistics.status === "streaming" ? 1 : 0),
    gauge("changes_followers", "Followers of the replication stream.", statistics.followers),
    counter("changes_transactions_total", "Transactions received.", statistics.transactions),
    counter("changes_rows_total", "Row changes passed to followers.", statistics.changes),
    counter("changes_gaps_total", "Gaps in the replication stream.", statistics.gaps),
    gauge(
      "changes_lag_bytes",
      "WAL between the server's position and the position of the stream.",
      statistics.lag?.bytes ?? null,
      "max",
    ),
    gauge(
      "changes_lag_seconds",
      "Age of the transaction that is being received.",
      statistics.lag?.seconds ?? null,
      "max",
    ),
    gauge("changes_retained_bytes", "WAL retained by replication slots.", statistics.retainedBytes, "max"),
  ];
}

function taskMetrics(counts: Awaited<ReturnType<typeof countTasks>> | null): Metric[] {
  const tasks = counts && labelled("status", { ...counts });
  return [
    gauge(
      "tasks",
      "Tasks of all gateways: due, scheduled for later, running, and failed in the last day.",
      tasks,
      "max",
    ),
  ];
}

/** Returns the seconds since 1970. */
function seconds(at: Date | null | undefined): number | null {
  return at ? at.getTime() / 1_000 : null;
}

function scheduleMetrics(state: SchedulesState | null): Metric[] {
  const runs =
    state && labelled("status", { queued: 0, running: 0, done: 0, failed: 0, skipped: 0, missed: 0, ...state.runs });
  const successes = Object.entries(state?.lastSuccess ?? {}).flatMap(([schedule, value]) =>
    value === null ? [] : [{ labels: { schedule }, value }],
  );
  return [
    gauge("schedule_runs", "Runs of schedules planned in the last hour, by status, of all gateways.", runs, "max"),
    gauge(
      "schedule_last_success_timestamp_seconds",
      "The planned time of the last successful run, of the first hundred enabled schedules by name.",
      successes,
      "max",
    ),
    gauge(
      "schedules_processed_timestamp_seconds",
      "The last minute whose schedules were queued.",
      seconds(state?.processed),
      "max",
    ),
  ];
}

function supervisorMetrics(supervisor: Supervisor): Metric[] {
  const stopped = Object.fromEntries(supervisor.names().map((name) => [name, 0]));
  for (const name of supervisor.stopped()) stopped[name] = 1;
  return [
    gauge("background_work_stopped", "Whether background work does not run.", labelled("work", stopped), "max"),
    counter(
      "background_work_restarts_total",
      "How often background work ended, or failed, and was started again.",
      labelled("work", supervisor.restarts()),
    ),
    counter(
      "background_work_uncaught_errors_total",
      "Errors that nothing has handled, by the background work that was started again because of them.",
      labelled("work", supervisor.uncaughtErrors()),
    ),
  ];
}

function webhookMetrics(counters: WebhookCounters, backlog: WebhookBacklog | null): Metric[] {
  return [
    counter("webhook_deliveries_total", "Attempts to deliver changes, by result.", labelled("result", counters)),
    gauge(
      "webhook_deliveries",
      "Changes that wait, and that failed too often, of all gateways.",
      backlog && labelled("state", { pending: backlog.pending, dead: backlog.dead }),
      "max",
    ),
    gauge("webhook_oldest_seconds", "Age of the oldest change that waits.", backlog?.oldestSeconds ?? null, "max"),
  ];
}

function backupMetrics(state: BackupState): Metric[] {
  const { lastSuccess, lastBytes, lastCheck, isFailing, isRejected, succeeded, failed } = state;
  return [
    counter("backups_total", "Attempts at scheduled backups, by result.", [
      { labels: { result: "success" }, value: succeeded },
      { labels: { result: "failure" }, value: failed },
    ]),
    gauge("backup_failing", "Whether the last scheduled backup failed.", isFailing ? 1 : 0, "max"),
    gauge(
      "backup_check_failing",
      "Whether the last scheduled backup could not be restored.",
      isRejected ? 1 : 0,
      "max",
    ),
    gauge(
      "backup_check_last_success_timestamp_seconds",
      "When a scheduled backup was last restored and compared (BACKUP_CHECK).",
      seconds(lastCheck),
      "max",
    ),
    gauge(
      "backup_last_success_timestamp_seconds",
      "When the newest backup in BACKUP_DIR was completed.",
      lastSuccess && lastSuccess.getTime() / 1_000,
      "max",
    ),
    gauge("backup_last_size_bytes", "Size of the newest backup in BACKUP_DIR.", lastBytes, "max"),
  ];
}

function walArchiveMetrics(state: WalArchiveState | null): Metric[] {
  if (!state) return [];
  const { range, fault, lastBase, bytes, failures } = state;
  return [
    gauge(
      "wal_archive_failing",
      "Whether WAL archiving, a base backup or a check fails.",
      fault === null ? 0 : 1,
      "max",
    ),
    gauge(
      "wal_archive_failures",
      "Failures of WAL archiving, base backups and checks since the start.",
      failures,
      "max",
    ),
    gauge(
      "wal_archive_earliest_timestamp_seconds",
      "The earliest time that the WAL archive can restore.",
      seconds(range?.from),
      "max",
    ),
    gauge(
      "wal_archive_latest_timestamp_seconds",
      "The latest time that the WAL archive can restore.",
      seconds(range?.to),
      "max",
    ),
    gauge(
      "wal_archive_base_timestamp_seconds",
      "When the newest base backup of the WAL archive was completed.",
      seconds(lastBase),
      "max",
    ),
    gauge("wal_archive_size_bytes", "Size of the WAL archive after its newest base backup.", bytes, "max"),
  ];
}
