import type { AbortLike, PeerWorkers, Supervisor } from "#runtime/concurrency";
import type { IsolationLevel } from "./batch-steps.ts";
import type { SessionSettings } from "./connection-capabilities.ts";
import type { DatabaseAvailability, DatabaseLog } from "./database-availability.ts";
import type { StatementObserver } from "./observe-statements.ts";
import type { ResponseBudget } from "./response-budget.ts";
import type { Statement } from "./statement.ts";

export type DatabaseOptions = Partial<SessionSettings> & {
  /** The login for requests, a member of the callers' roles. */
  readonly url: string;
  readonly ownerUrl: string;
  readonly log: DatabaseLog;
  /** Called once per change of availability. */
  readonly onState?: (condition: DatabaseAvailability) => void;
  /** The maximum number of connections for requests, at most half of the server's spare connections; the owner's few are additional. */
  readonly poolSize?: number;
  /** The maximum number of reads in flight per connection. */
  readonly pipelineDepth?: number;
  /** The processors that Postgres shares with the service, within this process's limits; infinite if Postgres has its own. */
  readonly sharedProcessors?: number;
  /** Statement timeout in milliseconds; 0 is no limit. */
  readonly statementTimeout?: number;
  /** Lock timeout in milliseconds; 0 is no limit. */
  readonly lockTimeout?: number;
  /** The role of anonymous callers, and their statement timeout if it is shorter. */
  readonly anonymous?: { readonly role: string; readonly statementTimeout: number } | null;
  /** The maximum wait of a request for a connection, in milliseconds. */
  readonly acquireTimeout?: number;
  /** The maximum number of bytes of one response, and of one row in a stream. */
  readonly maxAnswerBytes?: number;
  /** The memory for all responses in progress. */
  readonly answerMemory?: number;
  readonly applicationName?: string;
  readonly observe?: StatementObserver | null;
  /** Streaming replicas, for reads of contexts with a read-your-writes position. */
  readonly replicaUrls?: readonly string[];
  /** The maximum lag of a replica, in seconds. */
  readonly maxReplicaLag?: number;
  readonly peers?: PeerWorkers;
  readonly supervisor?: Supervisor;
};

export type RunStatementOptions = {
  /** True if the statement runs in a read-only transaction; it may run again when its connection is lost. */
  readonly readOnly?: boolean;
  /** The pool of the statement. By default the read pool runs reads that have proved fast; the write pool runs all others. */
  readonly pool?: "read" | "write" | "slow";
  /** A statement that runs as the caller, in the same transaction before this one; its rows are discarded. */
  readonly before?: Statement | undefined;
  /** True if the statement is rolled back after a check of its deferred constraints. */
  readonly rollback?: boolean;
  /** Overrides the statement timeout of the database and the role; 0 is no limit. */
  readonly timeoutMs?: number;
  /** True if the result includes the names and types of the columns. */
  readonly fields?: boolean;
  /**
   * The memory budget of the response; overrides the default limit. By default writes have no limit: they are committed
   * before the response arrives, so a refusal would undo nothing.
   */
  readonly budget?: ResponseBudget | undefined;
  /** Aborts the wait; cancels the statement if it does not share its connection. */
  readonly signal?: AbortLike | undefined;
};

/** Options of a run of several statements. They share the budget; by default each statement has its own. */
export type SharedRunOptions = Pick<RunStatementOptions, "budget" | "signal">;

/** Selects results with values of more than 32 kB as Buffers. */
export type LargeValueOptions = { readonly largeValues: "buffer" };

export type RunTogetherOptions = Omit<RunStatementOptions, "pool" | "fields">;

export type StreamRowsOptions = Pick<RunStatementOptions, "readOnly" | "before" | "signal"> & {
  readonly separator: string;
  /** The maximum silence of the server in milliseconds; the role's own statement_timeout applies as well. */
  readonly timeoutMs?: number;
  /** The maximum wait of a chunk for the reader, in milliseconds. */
  readonly stallMs?: number;
};

export type RunTransactionOptions = Pick<RunStatementOptions, "readOnly" | "timeoutMs"> & {
  readonly isolation?: IsolationLevel;
  /** True if the statement timeout limits all statements and the commit together. */
  readonly isTimedAsOne?: boolean;
  /** Makes the memory budget of each statement or group; overrides the default limit. */
  readonly makeBudget?: () => ResponseBudget;
};
