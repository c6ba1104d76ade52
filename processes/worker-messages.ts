import type { Config } from "../engine/config/config.ts";
import type { ServedPostgres } from "../engine/postgres/served-postgres.ts";
import type { ServiceOperations } from "../rest-gateway/http/admin.ts";
import type { DrainMode } from "../rest-gateway/http/drain.ts";

/** A message from the primary to a worker. */
export type WorkerMessage =
  | ({ readonly kind: "serve"; readonly worker: number } & WorkerOptions)
  /** Why fewer workers than configured are serving; null if all are. */
  | { readonly kind: "shortage"; readonly fault: string | null }
  /** Asks for the worker's state, for an operator. */
  | { readonly kind: "query"; readonly id: number; readonly name: WorkerQuery }
  | { readonly kind: "stop"; readonly departure: DrainMode };

/** How a worker is started. */
export type WorkerOptions = {
  readonly config: Config;
  readonly postgres: PostgresAccess;
  /** How long the worker waits for the GraphQL schema before it serves, if not the default. */
  readonly schemaPatienceMs?: number;
};

export type WorkerQuery = keyof ServiceOperations;

/** A message from a worker to the primary. */
export type WorkerReport =
  /** The worker serves at this address. */
  | { readonly kind: "serving"; readonly url: string }
  /** The answer to a query; undefined if it failed. */
  | { readonly kind: "reply"; readonly id: number; readonly answer: unknown };

/** How to reach Postgres, without the right to stop it. */
export type PostgresAccess = Omit<ServedPostgres, "close">;

/** Other libraries use the same channel. */
export function isReport(message: unknown): message is WorkerReport {
  const kind = (message as Partial<WorkerReport> | null)?.kind;
  return kind === "serving" || kind === "reply";
}
