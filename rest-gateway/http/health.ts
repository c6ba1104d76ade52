import { setTimeout as sleep } from "node:timers/promises";
import type { Database } from "../../engine/database/database.ts";
import { type GatewayResponse, jsonResponse } from "./response.ts";
import type { GatewayRoutes } from "./router.ts";

/** How long the database may take to say that it is well. */
const DATABASE_TIMEOUT_MS = 2_000;

export type HealthState = {
  /** Why the database is known to be away, without asking it; null when it is not. */
  databaseFault(): string | null;
  /** Asks the database; rejects when it cannot answer. */
  pingDatabase(): Promise<void>;
  /** Those that reads go to, in the order of their addresses; the service is well without them. */
  replicas(): readonly object[];
  /** Why the schema that is served may be out of date; null when it is not. */
  schemaFault(): string | null;
  /** GraphQL's first schema is still being built. */
  isSchemaAwaited(): boolean;
  /** What GraphQL's schema cannot be built with, and is therefore served without. */
  leftOut(): readonly string[];
  /** Why fewer processes serve than should; null when all do. */
  workerShortage(): string | null;
  /** False from the moment the service was told to stop. */
  acceptsWork(): boolean;
};

/** Of what is left out; the log and `npm run doctor` have all. */
const MOST_LEFT_OUT_NAMED = 20;
/** Long enough that a crowd of probes costs one question, short enough that the answer is true. */
const CACHE_MS = 250;

/** `/health` for people and clients, `/health/live` and `/health/ready` for whoever restarts and routes. */
export function healthRoutes(state: HealthState): GatewayRoutes {
  const { databaseFault, pingDatabase, replicas, workerShortage, acceptsWork } = state;
  const pingOnce = cacheFor(CACHE_MS, async () => {
    try {
      await pingDatabase();
      return true;
    } catch {
      return false;
    }
  });
  // What is known costs nothing, so only the question is remembered: an outage shows at once, however short.
  const databaseAnswers = async () => databaseFault() === null && (await pingOnce());

  return {
    "/health": {
      GET: async () => {
        if (!(await databaseAnswers())) return unavailable("The database does not answer.");
        const leftOut = state.leftOut();
        const reason = schemaReason(state) ?? workerShortage() ?? leftOutReason(leftOut);
        const details = {
          ...(leftOut.length > 0 && { leftOut: leftOut.slice(0, MOST_LEFT_OUT_NAMED) }),
          ...(replicas().length > 0 && { replicas: replicas() }),
        };
        return reason === null ? ok(details) : degraded(reason, details);
      },
    },
    "/health/live": { GET: () => ok() },
    "/health/ready": {
      GET: async () => {
        if (!acceptsWork()) return unavailable("The service is stopping.");
        return (await databaseAnswers()) ? ok() : unavailable("The database does not answer.");
      },
    },
  };
}

function schemaReason({ schemaFault, isSchemaAwaited }: HealthState): string | null {
  if (schemaFault() !== null) return "The schema may be out of date.";
  return isSchemaAwaited() ? "The GraphQL schema is still being built." : null;
}

function leftOutReason({ length }: readonly string[]): string | null {
  if (length === 0) return null;
  const objects = length === 1 ? "an object of the database" : `${length} objects of the database`;
  return `GraphQL is served without ${objects} that its schema cannot be built with.`;
}

/** Whether requests may be sent here. */
export async function isReady({ acceptsWork, databaseFault, pingDatabase }: HealthState): Promise<boolean> {
  if (!acceptsWork() || databaseFault() !== null) return false;
  return pingDatabase().then(
    () => true,
    () => false,
  );
}

function ok(details: object = {}): GatewayResponse {
  return jsonResponse(200, { status: "ok", ...details }, { "Cache-Control": "no-store" });
}

/** Requests are served, by the schema as it was read last, or by all but GraphQL; the log says more. */
function degraded(reason: string, details: object): GatewayResponse {
  return jsonResponse(200, { status: "degraded", reason, ...details }, { "Cache-Control": "no-store" });
}

function unavailable(reason: string): GatewayResponse {
  return jsonResponse(503, { status: "unavailable", reason }, { "Cache-Control": "no-store", "Retry-After": "1" });
}

/** Whoever asks meanwhile is told what the one before was told. */
function cacheFor<T>(milliseconds: number, run: () => Promise<T>): () => Promise<T> {
  let answer: Promise<T> | null = null;
  let askedAt = 0;
  return () => {
    // Not by the clock on the wall: set back, it would let one answer stand for as long.
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
  "schemaFault" | "isSchemaAwaited" | "leftOut" | "workerShortage" | "acceptsWork"
> & {
  readonly database: Database;
};

/** How the service is, as the database knows it, and whoever wires the rest. */
export function makeHealthState({ database, ...others }: HealthDependencies): HealthState {
  return {
    databaseFault() {
      const { status, reason } = database.state();
      return status === "up" ? null : (reason ?? "not connected yet");
    },
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
