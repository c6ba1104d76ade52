import { jsonResponse } from "#http";
import {
  addUp,
  INTERVAL_SECONDS,
  MAX_RECENT_REQUESTS,
  type ProcessActivity,
  type ProcessSample,
  type RequestSearch,
  requestLogFolder,
  searchRequestLog,
  searchRequests,
  summarizeIntervals,
  sumSamples,
} from "#http/observability";
import { readScheduleActivity, readTaskActivity } from "#jobs/queue";
import { hasWebhooks, readWebhookStates } from "#jobs/webhook-store";
import type {
  Cancellation,
  DatabaseActivity,
  DatabaseSession,
  FoundRequests,
  FunctionLines,
  ListedWebhook,
  NoticedStatement,
  PoolState,
  RunningSession,
  RunningState,
  SampledInterval,
  ScheduleState,
} from "#operations/admin-types";
import type { AsOwner, RunningStatement, SlowStatement } from "#postgres/database";
import { type BodyField, INTEGER, OPTIONAL_TEXT, readFields } from "#rest-gateway/sign-in";
import { cancelStatement, readDatabaseActivity, readStatementStatistics } from "../inspect/database-activity.ts";
import { withoutSecrets } from "../script/without-secrets.ts";
import { invalidRequest } from "./admin-errors.ts";
import { type AdminRoutes, type AdminServices, limitRunning } from "./admin-request.ts";

/** The time after which all processes have recorded an interval. */
const SETTLING_MS = 1_000;
/** The minimum interval between reads of the statistics of statements, tasks, schedules and webhooks, for any number of pages. */
const STATISTICS_MS = 5_000;
const MAX_LISTED = 200;
/** The maximum number of searches of the log of requests at a time: each reads all of its files. */
const MAX_SEARCHES = 2;
/** The maximum number of counted changes per webhook; counting more would take long. */
const MAX_COUNTED_CHANGES = 100_000;

const isStartTime = (value: unknown): value is string =>
  OPTIONAL_TEXT.accepts(value) && !Number.isNaN(new Date(String(value)).getTime());
const CANCEL_FIELDS = {
  pid: INTEGER,
  started_at: {
    isRequired: false,
    accepts: isStartTime,
    message: "Send the started_at of the statement.",
  } satisfies BodyField<string | null>,
};

/** The activity of all processes of the service and of the database, now and in the last half hour. */
export function runningRoutes(services: AdminServices): AdminRoutes {
  const { asOwner, everywhere, config } = services;
  const limited = limitRunning(MAX_SEARCHES, "searches of the log");
  const readStatistics = cacheFor(STATISTICS_MS, async () => {
    const [statements, tasks, schedules, webhooks] = await Promise.all([
      readStatementStatistics(asOwner),
      readTaskActivity(asOwner),
      readSchedules(asOwner),
      readWebhooks(asOwner),
    ]);
    return { statements, tasks, schedules, webhooks };
  });
  return {
    "GET /running": async ({ request }) => {
      const since = readSince(request.query);
      // All processes answer later than this.
      const until = Date.now() - SETTLING_MS;
      const [processes, database, { statements, tasks, schedules, webhooks }] = await Promise.all([
        everywhere.activity(),
        readDatabaseActivity(asOwner),
        readStatistics(),
      ]);
      const own = new Map(processes.flatMap((each) => each.statements).map((statement) => [statement.pid, statement]));
      const state: RunningState = {
        at: new Date().toISOString(),
        ...describeProcesses(processes, { since, until }),
        database: { ...database, sessions: describeSessions(database, own) },
        slow_statements: statements
          ? { source: "pg_stat_statements", statements: statements.map(hideSecrets) }
          : {
              source: "service",
              least_ms: config.slowQueryMs,
              statements: mergeSlowStatements(processes.flatMap(({ slowStatements }) => slowStatements)),
            },
        tasks,
        schedules,
        webhooks,
      };
      return jsonResponse(200, state);
    },
    "GET /requests": async ({ request: { query, signal } }) => {
      const requests = await everywhere.recentRequests();
      const search: RequestSearch = {
        words: (query.get("search") ?? "").split(/\s+/).filter(Boolean),
        status: readWholeNumber(query, "status"),
        interface: query.get("interface") || null,
        leastMilliseconds: readWholeNumber(query, "least_ms") ?? 0,
        limit: MAX_LISTED,
      };
      const searchLog = () => searchRequestLog(requestLogFolder(config), search, signal);
      const logged = config.requestLogMb === 0 ? null : await limited(searchLog);
      // The log has a request half a second after it ended; the last requests of each process are merged with it.
      const both = new Map([...requests, ...(logged?.requests ?? [])].map((each) => [`${each.id} ${each.at}`, each]));
      const list: FoundRequests = {
        requests: searchRequests([...both.values()], search).map(({ at, milliseconds, ...each }) => ({
          at: new Date(at).toISOString(),
          ...each,
          milliseconds: Math.round(milliseconds * 10) / 10,
        })),
        searched: Math.max(requests.length, logged?.searched ?? 0),
        kept_per_process: MAX_RECENT_REQUESTS,
        log_megabytes: config.requestLogMb,
      };
      return jsonResponse(200, list);
    },
    "GET /functions/log": async () => {
      const lines = (await everywhere.functionLines()).toSorted((one, other) => (one.at < other.at ? 1 : -1));
      const log: FunctionLines = { lines: lines.slice(0, MAX_LISTED) };
      return jsonResponse(200, log);
    },
    "POST /running/cancel": async ({ request, logEvent }) => {
      const { pid, started_at: startedAt } = await readFields(request, CANCEL_FIELDS);
      const statement = await cancelStatement(asOwner, { pid, startedAt }, ({ application, role, milliseconds }) =>
        logEvent("studio.statement_cancelled", { pid, application, role, milliseconds: milliseconds ?? 0 }),
      );
      const message = "Postgres was asked to cancel the statement.";
      const cancellation: Cancellation = { ...hideSecrets(statement), message };
      return jsonResponse(200, cancellation);
    },
  };
}

async function readSchedules(asOwner: AsOwner): Promise<readonly ScheduleState[] | null> {
  const schedules = await readScheduleActivity(asOwner, MAX_LISTED);
  return (
    schedules?.map(({ next_run_at: nextRunAt, ...schedule }) => ({
      ...schedule,
      next_run_at: nextRunAt?.toISOString() ?? null,
    })) ?? null
  );
}

/** Null if the database has no webhooks that this login may process. */
async function readWebhooks(asOwner: AsOwner): Promise<readonly ListedWebhook[] | null> {
  if (!(await hasWebhooks(asOwner))) return null;
  const states = await asOwner((client) => readWebhookStates(client, MAX_COUNTED_CHANGES));
  return states.slice(0, MAX_LISTED).map(({ url, disabledBecause, oldestAt, deliveredAt, lastError, ...state }) => ({
    ...state,
    origin: originOf(url),
    disabled_because: disabledBecause,
    oldest_at: oldestAt?.toISOString() ?? null,
    delivered_at: deliveredAt?.toISOString() ?? null,
    last_error: lastError,
  }));
}

/** Returns the origin only: paths and queries of webhooks often contain secrets. */
function originOf(url: string): string {
  return url.replace(/^(https?:\/\/[^/?]*).*$/i, "$1");
}

type Period = { readonly since: number; readonly until: number };

function describeProcesses(processes: readonly ProcessActivity[], { since, until }: Period) {
  const sumOf = (numberOf: (each: ProcessActivity) => number) =>
    processes.reduce((sum, each) => sum + numberOf(each), 0);
  const isSettled = ({ at }: { readonly at: number }) => at <= until;
  return {
    processes: processes.map((each) => ({
      pid: each.pid,
      uptime_seconds: each.uptimeSeconds,
      processor_seconds: each.processorSeconds,
      memory_bytes: each.memoryBytes,
      heap_bytes: each.heapBytes,
    })),
    requests: {
      interval_seconds: INTERVAL_SECONDS,
      intervals: summarizeIntervals(
        processes.flatMap(({ requests }) => requests.filter(isSettled)),
        since,
      ),
    },
    samples: describeSamples(processes, (sample) => isSettled(sample) && sample.at > since),
    errors: addUp(processes.map(({ errors }) => errors)),
    pools: sumPools(processes),
    replicas: (processes[0]?.replicas ?? []).map(({ status, lagSeconds }) => ({ status, lag_seconds: lagSeconds })),
    realtime: {
      sockets: sumOf(({ realtime }) => realtime.sockets),
      channels: sumOf(({ realtime }) => realtime.channels),
      subscriptions: sumOf(({ realtime }) => realtime.subscriptions),
    },
    graphql: {
      sockets: sumOf(({ graphql }) => graphql.sockets),
      operations: sumOf(({ graphql }) => graphql.operations),
      subscriptions: sumOf(({ graphql }) => graphql.subscriptions),
    },
  };
}

function describeSamples(
  processes: readonly ProcessActivity[],
  isWanted: (sample: ProcessSample) => boolean,
): readonly SampledInterval[] {
  const samples = processes.flatMap((each) => each.samples.filter(isWanted));
  return sumSamples(samples).map(({ at, memoryBytes, processorCores, inFlight, ...sums }) => ({
    ...sums,
    at: new Date(at).toISOString(),
    memory_bytes: memoryBytes,
    processor_cores: processorCores,
    in_flight: inFlight,
  }));
}

function sumPools(processes: readonly ProcessActivity[]): readonly PoolState[] {
  const names = Object.keys(processes[0]?.pools ?? {}) as (keyof ProcessActivity["pools"])[];
  return names.map((name) => {
    const sums = addUp(processes.map(({ pools }) => pools[name]));
    const { connections = 0, max = 0, inFlight = 0, waiting = 0 } = sums;
    return { name, connections, max, in_flight: inFlight, waiting };
  });
}

/**
 * Adds to each session the request that its statement belongs to. If the owner may not read the sessions of the login for
 * requests, the service adds the sessions that it knows.
 */
function describeSessions(
  { sessions, sees_all: seesAll }: DatabaseActivity,
  own: ReadonlyMap<number, RunningStatement>,
): readonly RunningSession[] {
  const seen = new Set(sessions.map(({ pid }) => pid));
  const unseen = seesAll ? [] : [...own.values()].filter(({ pid }) => !seen.has(pid));
  return [
    ...sessions.map((session) => ({ ...hideSecrets(session), request: requestOf(own.get(session.pid)) })),
    ...unseen.map((running) => ({ ...toSession(running), request: requestOf(running) })),
  ];
}

/** Hides passwords in a statement: administrators may see the statements of others, but not passwords that others set. */
function hideSecrets<T extends { readonly statement: string | null }>(running: T): T {
  return { ...running, statement: running.statement === null ? null : withoutSecrets(running.statement) };
}

function requestOf(running: RunningStatement | undefined): RunningSession["request"] {
  return running ? { id: running.request, interface: running.interface, role: running.role } : null;
}

function toSession({ pid, milliseconds, statement }: RunningStatement): DatabaseSession {
  const unknown = { role: null, wait: null, started_at: null, transaction_ms: null, waits_for: [], lock: null };
  return { ...unknown, pid, application: "content-service", state: "active", milliseconds, statement };
}

function mergeSlowStatements(statements: readonly SlowStatement[]): readonly NoticedStatement[] {
  const byText = Map.groupBy(statements, ({ statement }) => statement);
  const merged = [...byText].map(([statement, same]) => {
    const last = same.reduce((latest, each) => (each.at > latest.at ? each : latest));
    const sumOf = (key: "calls" | "totalMs") => same.reduce((sum, each) => sum + each[key], 0);
    const [calls, total] = [sumOf("calls"), sumOf("totalMs")];
    const max = Math.max(...same.map(({ maxMs }) => maxMs));
    const { at, role, interface: name } = last;
    return { statement, role, interface: name, at, calls, total_ms: total, mean_ms: total / calls, max_ms: max };
  });
  return merged.sort((a, b) => b.total_ms - a.total_ms);
}

/** Reads the end of the client's last interval, in milliseconds since 1970. */
function readSince(query: URLSearchParams): number {
  const text = query.get("since") || null;
  if (text === null) return 0;
  const time = new Date(text).getTime();
  if (!Number.isNaN(time)) return time;
  throw invalidRequest("The parameter since must be the at of an interval.");
}

function readWholeNumber(query: URLSearchParams, name: string): number | null {
  const text = query.get(name) || null;
  if (text === null) return null;
  if (/^\d{1,9}$/.test(text)) return Number(text);
  throw invalidRequest(`The parameter ${name} must be a whole number.`);
}

function cacheFor<T>(milliseconds: number, read: () => Promise<T>): () => Promise<T> {
  let cached: { readonly value: Promise<T>; readonly until: number } | null = null;
  return () => {
    if (!cached || performance.now() > cached.until) {
      const value = read();
      value.catch(() => {
        cached = null;
      });
      cached = { value, until: performance.now() + milliseconds };
    }
    return cached.value;
  };
}
