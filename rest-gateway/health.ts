import type { Routes } from "./gateway.ts";
import { type GatewayResponse, json } from "./http.ts";

export type Condition = {
  /** Why the database is known to be away, without asking it; null when it is not. */
  databaseFault(): string | null;
  /** Asks the database; rejects when it cannot answer. */
  askDatabase(): Promise<void>;
  /** Those that reads go to, in the order of their addresses; the service is well without them. */
  replicas(): readonly object[];
  /** Why the schema that is served may be out of date; null when it is not. */
  schemaFault(): string | null;
  /** GraphQL's first schema is still being built. */
  isSchemaAwaited(): boolean;
  /** What GraphQL's schema cannot be built with, and is therefore served without. */
  leftOut(): readonly string[];
  /** Why fewer processes serve than should; null when all do. */
  shortage(): string | null;
  /** False from the moment the service was told to stop. */
  acceptsWork(): boolean;
};

/** Of what is left out; the log and `npm run doctor` have all. */
const MOST_NAMED = 20;
/** Long enough that a crowd of probes costs one question, short enough that the answer is true. */
const REMEMBERED_MS = 250;

/** `/health` for people and clients, `/health/live` and `/health/ready` for whoever restarts and routes. */
export function healthRoutes(condition: Condition): Routes {
  const { databaseFault, askDatabase, replicas, shortage, acceptsWork } = condition;
  const answers = atMostEvery(REMEMBERED_MS, async () => {
    try {
      await askDatabase();
      return true;
    } catch {
      return false;
    }
  });
  // What is known costs nothing, so only the question is remembered: an outage shows at once, however short.
  const databaseAnswers = async () => databaseFault() === null && (await answers());

  return {
    "/health": {
      GET: async () => {
        if (!(await databaseAnswers())) return unavailable("The database does not answer.");
        const leftOut = condition.leftOut();
        const reason = schemaReason(condition) ?? shortage() ?? leftOutReason(leftOut);
        const told = {
          ...(leftOut.length > 0 && { leftOut: leftOut.slice(0, MOST_NAMED) }),
          ...(replicas().length > 0 && { replicas: replicas() }),
        };
        return reason === null ? ok(told) : degraded(reason, told);
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

function schemaReason({ schemaFault, isSchemaAwaited }: Condition): string | null {
  if (schemaFault() !== null) return "The schema may be out of date.";
  return isSchemaAwaited() ? "The GraphQL schema is still being built." : null;
}

function leftOutReason({ length }: readonly string[]): string | null {
  if (length === 0) return null;
  const objects = length === 1 ? "an object of the database" : `${length} objects of the database`;
  return `GraphQL is served without ${objects} that its schema cannot be built with.`;
}

/** Whether requests may be sent here. */
export async function isReady({ acceptsWork, databaseFault, askDatabase }: Condition): Promise<boolean> {
  if (!acceptsWork() || databaseFault() !== null) return false;
  return askDatabase().then(
    () => true,
    () => false,
  );
}

function ok(told: object = {}): GatewayResponse {
  return json(200, { status: "ok", ...told }, { "Cache-Control": "no-store" });
}

/** Requests are served, by the schema as it was read last, or by all but GraphQL; the log says more. */
function degraded(reason: string, told: object): GatewayResponse {
  return json(200, { status: "degraded", reason, ...told }, { "Cache-Control": "no-store" });
}

function unavailable(reason: string): GatewayResponse {
  return json(503, { status: "unavailable", reason }, { "Cache-Control": "no-store", "Retry-After": "1" });
}

/** Whoever asks meanwhile is told what the one before was told. */
function atMostEvery<T>(milliseconds: number, ask: () => Promise<T>): () => Promise<T> {
  let answer: Promise<T> | null = null;
  let askedAt = 0;
  return () => {
    // Not by the clock on the wall: set back, it would let one answer stand for as long.
    const now = performance.now();
    if (!answer || now - askedAt >= milliseconds) {
      askedAt = now;
      answer = ask();
    }
    return answer;
  };
}
