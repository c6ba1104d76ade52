import type { AbortLike, PeerWorkers, Supervisor } from "#runtime/concurrency";
import type { IsolationLevel } from "./batch-steps.ts";
import type { SessionSettings } from "./connection-capabilities.ts";
import type { DatabaseAvailability, DatabaseLog } from "./connection-pools.ts";
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
  /** The maximum number of connections for requests, within half of what the server can spare; the owner's few come on top. */
  readonly poolSize?: number;
  /** The maximum number of reads in flight per connection. */
  readonly pipelineDepth?: number;
  /** The processors that Postgres shares with the service, as far as this process may use them; infinite if it has others. */
  readonly sharedProcessors?: number;
  /** Statement timeout in milliseconds; 0 is no limit. */
  readonly statementTimeout?: number;
  /** Lock timeout in milliseconds; 0 is no limit. */
  readonly lockTimeout?: number;
  /** The role of anonymous callers, and their statement timeout if it is shorter. */
  readonly anonymous?: { readonly role: string; readonly statementTimeout: number } | null;
  /** How many milliseconds a request waits for a connection. */
  readonly acquireTimeout?: number;
  /** The maximum number of bytes of one response, and of one row of a stream. */
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
  /** Runs in a read-only transaction; the statement may run again when its connection is lost. */
  readonly readOnly?: boolean;
  /** The pool that runs the statement. By default the read pool runs reads that have proved to be fast, and the write pool runs everything else. */
  readonly pool?: "read" | "write" | "slow";
  /** A statement that runs as the caller, in the same transaction before this one; its rows are discarded. */
  readonly before?: Statement | undefined;
  /** Runs the statement, checks deferred constraints, and rolls back. */
  readonly rollback?: boolean;
  /** Overrides the statement timeout of the database and the role; 0 is no limit. */
  readonly timeoutMs?: number;
  /** Whether to return the names and types of the columns. */
  readonly fields?: boolean;
  /**
   * The memory budget of the response; overrides the default limit. By default writes have no limit: they are committed
   * before the response arrives, so a refusal would undo nothing.
   */
  readonly budget?: ResponseBudget | undefined;
  /** Aborts the wait; cancels the statement if it does not share its connection. */
  readonly signal?: AbortLike | undefined;
};

/** The budget is shared by all statements; by default each has its own. */
export type SharedRunOptions = Pick<RunStatementOptions, "budget" | "signal">;

/** Returns values of more than 32 kB as Buffers. */
export type LargeValueOptions = { readonly largeValues: "buffer" };

export type RunTogetherOptions = Omit<RunStatementOptions, "pool" | "fields">;

export type StreamRowsOptions = Pick<RunStatementOptions, "readOnly" | "before" | "signal"> & {
  readonly separator: string;
  /** How many milliseconds the server may be silent; the role's own statement_timeout applies as well. */
  readonly timeoutMs?: number;
  /** How many milliseconds chunks may wait for the reader. */
  readonly stallMs?: number;
};

export type RunTransactionOptions = Pick<RunStatementOptions, "readOnly" | "timeoutMs"> & {
  readonly isolation?: IsolationLevel;
  /** Whether the statement timeout holds for all statements and the commit together. */
  readonly isTimedAsOne?: boolean;
  /** Makes the memory budget of each statement or group; overrides the default limit. */
  readonly makeBudget?: () => ResponseBudget;
};
