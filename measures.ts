import type { CatalogKeeper } from "./engine/catalog/keep.ts";
import type { Changes } from "./engine/changes/changes.ts";
import type { AsOwner } from "./engine/database/as-owner.ts";
import type { Database, DatabaseState } from "./engine/database/database.ts";
import type { LaneState } from "./engine/database/pool.ts";
import type { Tally } from "./engine/database/tally.ts";
import { countTasks } from "./engine/jobs/count-tasks.ts";
import { droppedLogLines } from "./engine/log.ts";
import { type Counts, metricsOfCounts } from "./engine/metrics/counts.ts";
import {
  counter,
  gauge,
  labelled,
  type Metric,
  type MetricSample,
  type MetricSource,
} from "./engine/metrics/metric.ts";
import type { GraphQL } from "./plugins/serve/graphql.ts";
import type { Realtime } from "./realtime/realtime.ts";
import type { HttpTraffic } from "./rest-gateway/metrics/http-traffic.ts";
import type { RequestMetrics } from "./rest-gateway/metrics/request-metrics.ts";

type Measurable = {
  readonly asOwner: AsOwner;
  readonly database: Database;
  readonly catalog: CatalogKeeper;
  readonly changes: Changes;
  readonly graphql: GraphQL;
  readonly realtime: Realtime;
  readonly hasTasks: boolean;
  readonly counts: Counts;
  readonly requests: RequestMetrics;
  readonly traffic: HttpTraffic;
};

/** What the service tells of itself, and what each number is called. Nothing here names a table, a row or a secret. */
export function measuresOf(measurable: Measurable): MetricSource[] {
  const { asOwner, database, catalog, changes, graphql, realtime, hasTasks, counts, requests, traffic } = measurable;
  return [
    () => requests.metrics(),
    () => traffic.metrics(),
    () => metricsOfCounts(counts),
    () => [counter("log_lines_dropped_total", "Lines of the log that could not be written.", droppedLogLines())],
    () => ofDatabase(database.state()),
    () => ofReplicas(database.replicas()),
    () => ofCatalog(catalog.state()),
    () => ofGraphQL(graphql.state()),
    () => ofRealtime(realtime.statistics()),
    async () => ofChanges(await changes.statistics()),
    async () => (hasTasks ? ofTasks(await countTasks(asOwner).catch(() => null)) : []),
  ];
}

function ofDatabase({ status, lanes }: DatabaseState): Metric[] {
  const eachLane = (numberOf: (lane: LaneState) => number): readonly MetricSample[] =>
    Object.entries(lanes).map(([lane, state]) => ({ labels: { lane }, value: numberOf(state) }));
  const sumOf = (key: keyof Tally): number => Object.values(lanes).reduce((sum, { tally }) => sum + tally[key], 0);
  return [
    gauge("database_up", "Whether Postgres answers.", status === "up" ? 1 : 0, "max"),
    gauge(
      "database_connections",
      "Open connections to Postgres.",
      eachLane(({ links }) => links),
    ),
    gauge(
      "database_connections_max",
      "How many there may be.",
      eachLane(({ most }) => most),
    ),
    gauge(
      "database_exchanges_in_flight",
      "What Postgres has been sent and not answered.",
      eachLane(({ inFlight }) => inFlight),
    ),
    gauge(
      "database_waiting",
      "Requests that wait for a connection.",
      eachLane(({ waiting }) => waiting),
    ),
    counter(
      "database_turned_away_total",
      "Requests that waited for a connection too long.",
      eachLane(({ tally }) => tally.turnedAway),
    ),
    counter(
      "database_interrupted_total",
      "Reads that were cancelled since others waited, and ran again.",
      eachLane(({ tally }) => tally.interrupted),
    ),
    counter(
      "database_exchanges_total",
      "Exchanges with Postgres: one write and what came back.",
      eachLane(({ tally }) => tally.exchanges),
    ),
    counter(
      "database_seconds_total",
      "Time that Postgres took for them.",
      eachLane(({ tally }) => tally.milliseconds / 1_000),
    ),
    counter(
      "database_connects_total",
      "Connections that were opened.",
      eachLane(({ tally }) => tally.opened),
    ),
    counter(
      "database_lost_total",
      "Connections that were lost.",
      eachLane(({ tally }) => tally.lost),
    ),
    gauge(
      "prepared_statements",
      "Statements that are prepared on open connections.",
      eachLane(({ preparedStatements }) => preparedStatements),
    ),
    counter("prepared_statement_uses_total", "Statements that were sent.", [
      { labels: { result: "hit" }, value: sumOf("prepared") },
      { labels: { result: "miss" }, value: sumOf("parsed") },
    ]),
    counter("prepared_statement_evictions_total", "Statements that were given up for others.", sumOf("evicted")),
  ];
}

function ofReplicas(replicas: ReturnType<Database["replicas"]>): Metric[] {
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

function ofCatalog({ status, version, confirmedAt, timings }: ReturnType<CatalogKeeper["state"]>): Metric[] {
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

function ofGraphQL(state: ReturnType<GraphQL["state"]>): Metric[] {
  const { fault, isAwaited, sockets, operations, subscriptions, topics } = state;
  return [
    gauge(
      "graphql_degraded",
      "Whether its schema could not be made, or is still being built.",
      fault === null && !isAwaited ? 0 : 1,
      "max",
    ),
    gauge("graphql_sockets", "Open WebSockets.", sockets),
    gauge("graphql_operations", "Operations that are open on them.", operations),
    gauge("graphql_subscriptions", "Subscriptions that wait for events.", subscriptions),
    gauge("graphql_topics", "What they wait for.", topics),
  ];
}

function ofRealtime(told: ReturnType<Realtime["statistics"]>): Metric[] {
  return [
    gauge("realtime_sockets", "Open WebSockets.", told.sockets),
    gauge("realtime_channels", "Channels that are joined.", told.channels),
    gauge("realtime_subscriptions", "Those of them that follow tables.", told.subscriptions),
    counter(
      "realtime_messages_total",
      "Messages.",
      labelled("direction", { in: told.messagesIn, out: told.messagesOut }),
    ),
    counter(
      "realtime_bytes_total",
      "Bytes of messages.",
      labelled("direction", { in: told.bytesIn, out: told.bytesOut }),
    ),
    counter(
      "realtime_overwhelmed_total",
      "Sockets that were closed since their clients read too slowly.",
      told.overwhelmed,
    ),
    counter("realtime_gaps_total", "Channels that were told that they may have missed something.", told.gaps),
    counter("realtime_refusals_total", "Joins that were refused.", told.refusals),
    counter("realtime_limited_total", "What was ended or passed over as a limit was reached.", told.limited),
  ];
}

function ofChanges(told: Awaited<ReturnType<Changes["statistics"]>>): Metric[] {
  return [
    gauge("changes_streaming", "Whether the log of row changes is read.", told.status === "streaming" ? 1 : 0),
    gauge("changes_followers", "Who follows it.", told.followers),
    counter("changes_transactions_total", "Transactions that were read.", told.transactions),
    counter("changes_rows_total", "Changes of rows that were told.", told.changes),
    counter("changes_gaps_total", "How often something was missed.", told.gaps),
    gauge("changes_lag_bytes", "How far reading is behind writing.", told.lag?.bytes ?? null, "max"),
    gauge("changes_lag_seconds", "Age of the transaction that is being read.", told.lag?.seconds ?? null, "max"),
    gauge("changes_retained_bytes", "Log that slots keep from being removed.", told.retainedBytes, "max"),
  ];
}

function ofTasks(told: Awaited<ReturnType<typeof countTasks>> | null): Metric[] {
  const tasks = told && labelled("status", { queued: told.queued, running: told.running });
  return [gauge("tasks", "Work that was left for later, of all gateways.", tasks, "max")];
}
