import type { CatalogKeeper } from "./engine/catalog/catalog-keeper.ts";
import type { ConnectionPoolState } from "./engine/database/connection-pools.ts";
import type { Database, DatabaseState } from "./engine/database/database.ts";
import type { AsOwner } from "./engine/database/owner-pool.ts";
import type { ConnectionCounters } from "./engine/database/prepared-statements.ts";
import { metricsOfCounters, type ServiceCounters } from "./engine/observability/counters.ts";
import {
  counter,
  gauge,
  labelled,
  type Metric,
  type MetricSample,
  type MetricSource,
} from "./engine/observability/metrics.ts";
import { droppedLogLines } from "./engine/output/log.ts";
import type { ReplicationStream } from "./engine/replication/changes.ts";
import { countTasks } from "./engine/tasks/job-runner.ts";
import type { GraphqlInterface } from "./plugins/server/graphql.ts";
import type { Realtime } from "./realtime/realtime.ts";
import type { HttpTraffic, RequestMetrics } from "./rest-gateway/http/request-metrics.ts";

type MetricsDependencies = {
  readonly asOwner: AsOwner;
  readonly database: Database;
  readonly catalog: CatalogKeeper;
  readonly changes: ReplicationStream;
  readonly graphql: GraphqlInterface;
  readonly realtime: Realtime;
  readonly hasTasks: boolean;
  readonly counts: ServiceCounters;
  readonly requests: RequestMetrics;
  readonly traffic: HttpTraffic;
};

/** What the service tells of itself, and what each number is called. Nothing here names a table, a row or a secret. */
export function serviceMetrics(dependencies: MetricsDependencies): MetricSource[] {
  const { asOwner, database, catalog, changes, graphql, realtime, hasTasks, counts, requests, traffic } = dependencies;
  return [
    () => requests.metrics(),
    () => traffic.metrics(),
    () => metricsOfCounters(counts),
    () => [counter("log_lines_dropped_total", "Lines of the log that could not be written.", droppedLogLines())],
    () => databaseMetrics(database.state()),
    () => replicaMetrics(database.replicas()),
    () => catalogMetrics(catalog.state()),
    () => graphqlMetrics(graphql.state()),
    () => realtimeMetrics(realtime.statistics()),
    async () => replicationMetrics(await changes.statistics()),
    async () => (hasTasks ? taskMetrics(await countTasks(asOwner).catch(() => null)) : []),
  ];
}

function databaseMetrics({ status, lanes }: DatabaseState): Metric[] {
  const perPool = (numberOf: (pool: ConnectionPoolState) => number): readonly MetricSample[] =>
    Object.entries(lanes).map(([pool, state]) => ({ labels: { lane: pool }, value: numberOf(state) }));
  const sumOf = (key: keyof ConnectionCounters): number =>
    Object.values(lanes).reduce((sum, { tally }) => sum + tally[key], 0);
  return [
    gauge("database_up", "Whether Postgres answers.", status === "up" ? 1 : 0, "max"),
    gauge(
      "database_connections",
      "Open connections to Postgres.",
      perPool(({ links }) => links),
    ),
    gauge(
      "database_connections_max",
      "How many there may be.",
      perPool(({ most }) => most),
    ),
    gauge(
      "database_exchanges_in_flight",
      "What Postgres has been sent and not answered.",
      perPool(({ inFlight }) => inFlight),
    ),
    gauge(
      "database_waiting",
      "Requests that wait for a connection.",
      perPool(({ waiting }) => waiting),
    ),
    counter(
      "database_turned_away_total",
      "Requests that waited for a connection too long.",
      perPool(({ tally }) => tally.turnedAway),
    ),
    counter(
      "database_interrupted_total",
      "Reads that were cancelled since others waited, and ran again.",
      perPool(({ tally }) => tally.interrupted),
    ),
    counter(
      "database_exchanges_total",
      "Exchanges with Postgres: one write and what came back.",
      perPool(({ tally }) => tally.exchanges),
    ),
    counter(
      "database_seconds_total",
      "Time that Postgres took for them.",
      perPool(({ tally }) => tally.milliseconds / 1_000),
    ),
    counter(
      "database_connects_total",
      "Connections that were opened.",
      perPool(({ tally }) => tally.opened),
    ),
    counter(
      "database_lost_total",
      "Connections that were lost.",
      perPool(({ tally }) => tally.lost),
    ),
    gauge(
      "prepared_statements",
      "Statements that are prepared on open connections.",
      perPool(({ preparedStatements }) => preparedStatements),
    ),
    counter("prepared_statement_uses_total", "Statements that were sent.", [
      { labels: { result: "hit" }, value: sumOf("prepared") },
      { labels: { result: "miss" }, value: sumOf("parsed") },
    ]),
    counter("prepared_statement_evictions_total", "Statements that were given up for others.", sumOf("evicted")),
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
    gauge("replica_lag_seconds", "How far behind it is.", lags, "max"),
  ];
}

function catalogMetrics({ status, version, confirmedAt, timings }: ReturnType<CatalogKeeper["state"]>): Metric[] {
  return [
    gauge("catalogue_version", "Grows by one with each change of the schema.", version, "max"),
    gauge("catalogue_degraded", "Whether it could not be read again.", status === "degraded" ? 1 : 0, "max"),
    gauge(
      "catalogue_confirmed_timestamp_seconds",
      "When the database was last seen to agree with it.",
      confirmedAt.getTime() / 1_000,
      "max",
    ),
    gauge("catalogue_load_seconds", "How long its last reading took.", (timings.total ?? 0) / 1_000, "max"),
  ];
}

function graphqlMetrics(state: ReturnType<GraphqlInterface["state"]>): Metric[] {
  const { fault, isBuildingFirst, sockets, operations, subscriptions, topics } = state;
  return [
    gauge(
      "graphql_degraded",
      "Whether its schema could not be made, or is still being built.",
      fault === null && !isBuildingFirst ? 0 : 1,
      "max",
    ),
    gauge("graphql_sockets", "Open WebSockets.", sockets),
    gauge("graphql_operations", "Operations that are open on them.", operations),
    gauge("graphql_subscriptions", "Subscriptions that wait for events.", subscriptions),
    gauge("graphql_topics", "What they wait for.", topics),
  ];
}

function realtimeMetrics(statistics: ReturnType<Realtime["statistics"]>): Metric[] {
  return [
    gauge("realtime_sockets", "Open WebSockets.", statistics.sockets),
    gauge("realtime_channels", "Channels that are joined.", statistics.channels),
    gauge("realtime_subscriptions", "Those of them that follow tables.", statistics.subscriptions),
    counter(
      "realtime_messages_total",
      "Messages.",
      labelled("direction", { in: statistics.messagesIn, out: statistics.messagesOut }),
    ),
    counter(
      "realtime_bytes_total",
      "Bytes of messages.",
      labelled("direction", { in: statistics.bytesIn, out: statistics.bytesOut }),
    ),
    counter(
      "realtime_overwhelmed_total",
      "Sockets that were closed since their clients read too slowly.",
      statistics.overwhelmed,
    ),
    counter("realtime_gaps_total", "Channels that were told that they may have missed something.", statistics.gaps),
    counter("realtime_refusals_total", "Joins that were refused.", statistics.refusals),
    counter("realtime_limited_total", "What was ended or passed over as a limit was reached.", statistics.limited),
  ];
}

function replicationMetrics(statistics: Awaited<ReturnType<ReplicationStream["statistics"]>>): Metric[] {
  return [
    gauge("changes_streaming", "Whether the log of row changes is read.", statistics.status === "streaming" ? 1 : 0),
    gauge("changes_followers", "Who follows it.", statistics.followers),
    counter("changes_transactions_total", "Transactions that were read.", statistics.transactions),
    counter("changes_rows_total", "Changes of rows that were told.", statistics.changes),
    counter("changes_gaps_total", "How often something was missed.", statistics.gaps),
    gauge("changes_lag_bytes", "How far reading is behind writing.", statistics.lag?.bytes ?? null, "max"),
    gauge("changes_lag_seconds", "Age of the transaction that is being read.", statistics.lag?.seconds ?? null, "max"),
    gauge("changes_retained_bytes", "Log that slots keep from being removed.", statistics.retainedBytes, "max"),
  ];
}

function taskMetrics(counts: Awaited<ReturnType<typeof countTasks>> | null): Metric[] {
  const tasks = counts && labelled("status", { queued: counts.queued, running: counts.running });
  return [gauge("tasks", "Work that was left for later, of all gateways.", tasks, "max")];
}
