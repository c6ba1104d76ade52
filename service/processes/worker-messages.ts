import type { ServedPostgres } from "#cluster";
import type { WalArchiveState } from "#cluster/wal-archive";
import type { Config } from "#config";
import type { ServiceOperations } from "#http/admin";
import type { ProcessMetrics, SharedActivity } from "#http/observability";
import type { DrainMode, WorkersState } from "#http/serving";
import type { PeerTopic } from "#runtime/concurrency";

/** A message from one worker to the others. */
export type PeerMessage = { readonly sender: number; readonly topic: PeerTopic; readonly content: unknown };

/** A message from the primary to a worker. */
export type WorkerMessage =
  | ({ readonly kind: "serve"; readonly worker: number } & WorkerOptions)
  | { readonly kind: "workers"; readonly state: WorkersState }
  | { readonly kind: "wal archive"; readonly state: WalArchiveState }
  /** Asks for the worker's state, for an operator. */
  | { readonly kind: "query"; readonly id: number; readonly name: WorkerQuery }
  | ({ readonly kind: "peer"; readonly id: number } & PeerMessage)
  | { readonly kind: "peer exit"; readonly worker: number }
  /** The other workers have handled the message. */
  | { readonly kind: "published"; readonly id: number }
  /** The answers of all workers to a query of this one. */
  | { readonly kind: "answers"; readonly id: number; readonly answers: readonly unknown[] }
  | { readonly kind: "stop"; readonly departure: DrainMode }
  /** All workers are ready to close. */
  | { readonly kind: "hold requests" }
  /** No new connections come. */
  | { readonly kind: "close server" };

/** The options of a worker's start. */
export type WorkerOptions = {
  readonly config: Config;
  readonly postgres: PostgresAccess;
  /** The command by which the primary was called. */
  readonly packageProgram: string | null;
  /** Null if the WAL is not archived. */
  readonly walArchive: WalArchiveState | null;
  /** The time limit for which the worker waits for the GraphQL schema before it serves, if it loads it then. */
  readonly schemaPatienceMs?: number;
};

export type WorkerQuery = keyof ServiceOperations;

/** A message from a worker to the primary. */
export type WorkerReport =
  /** The worker serves at this address. */
  | { readonly kind: "serving"; readonly url: string }
  /** The worker stops, and needs no new connections. */
  | { readonly kind: "ready to close" }
  /** A step of the worker's start. */
  | { readonly kind: "step"; readonly step: string }
  /** A request has loaded GraphQL. */
  | { readonly kind: "graphql loaded" }
  /** The answer to a query; undefined if it failed. */
  | { readonly kind: "reply"; readonly id: number; readonly answer: unknown }
  /** A message to the other workers. */
  | ({ readonly kind: "publish"; readonly id: number } & Omit<PeerMessage, "sender">)
  | { readonly kind: "query all"; readonly id: number; readonly name: keyof SharedActivity }
  /** The metrics of a worker that exits. */
  | { readonly kind: "last metrics"; readonly metrics: ProcessMetrics };

const REPORT_KINDS: readonly unknown[] = [
  "serving",
  "ready to close",
  "step",
  "graphql loaded",
  "reply",
  "publish",
  "query all",
  "last metrics",
] satisfies WorkerReport["kind"][];

/** The access to Postgres, without the right to stop it. */
export type PostgresAccess = Omit<ServedPostgres, "close">;

export function isReport(message: unknown): message is WorkerReport {
  return REPORT_KINDS.includes((message as Partial<WorkerReport> | null)?.kind);
}
