import { setTimeout as sleep } from "node:timers/promises";
import type { Database } from "#postgres/database";
import type { GatewayRoutes } from "./request.ts";
import { type GatewayResponse, jsonResponse } from "./response.ts";

/** The time limit for the database to answer a ping. */
const DATABASE_TIMEOUT_MS = 2_000;

/** The number of processes that serve, and the reason why there are fewer than configured; null if all serve. */
export type WorkersState = { readonly serving: number; readonly fault: string | null };

export type HealthState = {
  /** Returns the known reason why the database is unreachable, without a query; null if it is reachable. */
  databaseFault(): string | null;
  /** True if requests wait for connections that the database refuses. */
  lacksConnections(): boolean;
  /** True if database servers answer, and all of them are standbys. */
  lacksPrimary(): boolean;
  /** Runs a query; rejects if the database does not answer. */
  pingDatabase(): Promise<void>;
  /** Returns the read replicas in the order of the setting; the service is healthy without them. */
  replicas(): readonly object[];
  /** Returns the reason why the served schema may be outdated; null if it is current. */
  schemaFault(): string | null;
  /** True if the first GraphQL schema is still being built. */
  isSchemaAwaited(): boolean;
  /** Returns the milliseconds since the service began to serve. */
  uptimeMs(): number;
  /**
   * Returns the database objects that the GraphQL schema leaves out because it cannot be built with them. Only public ones
   * are named, since anybody may read `/health`.
   */
  leftOut(): readonly { readonly object: string; readonly isPublic: boolean }[];
  /** Returns the state of scheduled backups; null if there is no schedule. */
  backups(): {
    readonly lastSuccess: Date | null;
    /** Undefined if backups are not checked. */
    readonly lastCheck: Date | null | undefined;
    readonly isFailing: boolean;
    readonly isRejected: boolean;
  } | null;
  /** Returns the recoverable range of the WAL archive and its fault; null if the WAL is not archived. */
  walArchive(): {
    readonly range: { readonly from: Date; readonly to: Date } | null;
    readonly fault: string | null;
  } | null;
  /** Returns the number of serving processes, and the reason why there are fewer than configured; null in a single process. */
  workers(): WorkersState | null;
  /** Returns the names of background work that has ended and is being started again. */
  stoppedWork(): readonly string[];
  /** Returns false as soon as the service is asked to stop. */
  acceptsWork(): boolean;
};

/** The most objects to list; the log and `npm run doctor` list all. */
const MAX_LEFT_OUT_NAMED = 20;
/** The time is long enough that many probes cost one query, and short enough that the result is current. */
const CACHE_MS = 250;

/** A service is ready without its first GraphQL schema after this time. */
const MAX_SCHEMA_WAIT_MS = 60_000;
const SCHEMA_AWAITED = "The GraphQL schema is still being built.";
const CONNECTIONS_LACK = "Requests wait for connections, because the database accepts no more.";
const BACKUP_FAILED = "The last scheduled backup failed.";
const BACKUP_REJECTED = "The last scheduled backup could not be restored.";

/** `/health` for people and clients, `/health/live` and `/health/ready` for supervisors and load balancers. */
export function healthRoutes(state: HealthState): GatewayRoutes {
  const { databaseFault, pingDatabase, replicas } = state;
  const pingOnce = cacheFor(CACHE_MS, async () => {
    try {
      await pingDatabase();
      return true;
    } catch {
      return false;
    }
  });
  // Only the query is cached: reading the known state is free, so an outage shows at once.
  const databaseAnswers = async () => databaseFault() === null && (await pingOnce());

  return {
    "/health": {
      GET: async () => {
        if (!(await databaseAnswers())) return unavailable(databaseReason(state));
        const leftOut = state.leftOut();
        const named = leftOut.filter(({ isPublic }) => isPublic).slice(0, MAX_LEFT_OUT_NAMED);
        const backups = state.backups();
        const walArchive = state.walArchive();
        const workers = state.workers();
        const reason =
          schemaReason(state) ??
          workers?.fault ??
          (state.lacksConnections() ? CONNECTIONS_LACK : null) ??
          stoppedReason(state.stoppedWork()) ??
          leftOutReason(leftOut.length) ??
          walArchive?.fault ??
          (backups?.isRejected ? BACKUP_REJECTED : backups?.isFailing ? BACKUP_FAILED : null);
        const details = {
          ...(workers && { workers: workers.serving }),
          ...(named.length > 0 && { leftOut: named.map(({ object }) => object) }),
          ...(backups && { lastBackup: backups.lastSuccess }),
          ...(backups?.lastCheck !== undefined && { lastBackupCheck: backups.lastCheck }),
          ...(walArchive && { recoverable: walArchive.range }),
          ...(replicas().length > 0 && { replicas: replicas() }),
        };
        return reason === null ? ok(details) : degraded(reason, details);
      },
    },
    "/health/live": { GET: () => ok() },
    "/health/ready": {
      GET: async () => {
        const reason = unreadyReason(state);
        if (reason !== null) return unavailable(reason);
        return (await databaseAnswers()) ? ok() : unavailable(databaseReason(state));
      },
    },
  };
}

/** The names of the servers are in the log. */
function databaseReason({ lacksPrimary }: HealthState): string {
  return lacksPrimary()
    ? "There is no primary: the database servers that answer are standbys."
    : "The database does not answer.";
}

function schemaReason({ schemaFault, isSchemaAwaited }: HealthState): string | null {
  if (schemaFault() !== null) return "The schema may be out of date.";
  return isSchemaAwaited() ? SCHEMA_AWAITED : null;
}

/** One interface is missing, so load balancers should send requests to other gateways, but only for a limited time: the others work. */
function isStarting({ isSchemaAwaited, uptimeMs }: HealthState): boolean {
  return isSchemaAwaited() && uptimeMs() < MAX_SCHEMA_WAIT_MS;
}

function stoppedReason(stopped: readonly string[]): string | null {
  return stopped.length === 0 ? null : `Not running at the moment, and being started again: ${stopped.join(", ")}.`;
}

function leftOutReason(leftOut: number): string | null {
  if (leftOut === 0) return null;
  const objects = leftOut === 1 ? "an object of the database" : `${leftOut} objects of the database`;
  return `GraphQL is served without ${objects} that its schema cannot be built with.`;
}

/** Returns the reason why load balancers should send no requests here, without querying the database. */
function unreadyReason(state: HealthState): string | null {
  if (!state.acceptsWork()) return "The service is stopping.";
  return isStarting(state) ? SCHEMA_AWAITED : null;
}

/** True if load balancers may send requests here. */
export async function isReady(state: HealthState): Promise<boolean> {
  if (unreadyReason(state) !== null || state.databaseFault() !== null) return false;
  return state.pingDatabase().then(
    () => true,
    () => false,
  );
}

function ok(details: object = {}): GatewayResponse {
  return jsonResponse(200, { status: "ok", ...details }, { "Cache-Control": "no-store" });
}

/** Requests are served with the last known schema, or without GraphQL; the log has the cause. */
function degraded(reason: string, details: object): GatewayResponse {
  return jsonResponse(200, { status: "degraded", reason, ...details }, { "Cache-Control": "no-store" });
}

function unavailable(reason: string): GatewayResponse {
  return jsonResponse(503, { status: "unavailable", reason }, { "Cache-Control": "no-store", "Retry-After": "1" });
}

/** Concurrent and following calls share one result. */
function cacheFor<T>(milliseconds: number, run: () => Promise<T>): () => Promise<T> {
  let answer: Promise<T> | null = null;
  let askedAt = 0;
  return () => {
    // The clock is monotonic: if a wall clock were set back, a result would be kept for that time.
    const now = performance.now();
    if (!answer || now - askedAt >= milliseconds) {
      askedAt = now;
      answer = run();
    }
    return answer;
  };
}

type HealthDependencies = Pick<
  HealthState,
  "schemaFault" | "isSchemaAwaited" | "leftOut" | "backups" | "walArchive" | "workers" | "stoppedWork" | "acceptsWork"
> & {
  readonly database: Database;
};

/** Returns the health state of the service that begins to serve now, from the database and the parts that the caller wires. */
export function makeHealthState({ database, ...others }: HealthDependencies): HealthState {
  const startedAt = performance.now();
  return {
    uptimeMs: () => performance.now() - startedAt,
    databaseFault() {
      const { status, reason } = database.state();
      return status === "up" ? null : (reason ?? "not connected yet");
    },
    lacksPrimary: () => database.state().lacksPrimary,
    lacksConnections: () => database.state().isShort,
    async pingDatabase() {
      const answer = database.asOwner((client) => client.query("select"));
      const timeout = sleep(DATABASE_TIMEOUT_MS, undefined, { ref: false }).then(() => {
        throw new Error(`no answer for ${DATABASE_TIMEOUT_MS} ms`);
      });
      await Promise.race([answer, timeout]);
    },
    replicas: () => database.replicas(),
    ...others,
  };
}
