import type { SentEmail } from "#accounts/mail";
import type { ConnectionPoolState, PoolName, ReplicaState, RunningStatement, SlowStatement } from "#postgres/database";
import type { RecentRequest } from "./recent-requests.ts";
import type { RequestInterval } from "./request-history.ts";

type PoolActivity = Pick<ConnectionPoolState, "connections" | "max" | "inFlight" | "waiting">;

/** The values of a process at the end of an interval. */
export type ProcessSample = {
  /** The end of the interval, in milliseconds since 1970. */
  readonly at: number;
  readonly memoryBytes: number;
  /** The processor cores that the process used in the interval. */
  readonly processorCores: number;
  readonly connections: number;
  readonly inFlight: number;
  readonly waiting: number;
  readonly sockets: number;
  readonly channels: number;
  readonly subscriptions: number;
};

/** The activity of one process of the service, for an operator. */
export type ProcessActivity = {
  readonly pid: number;
  readonly uptimeSeconds: number;
  /** The processor time since the start. */
  readonly processorSeconds: number;
  readonly memoryBytes: number;
  readonly heapBytes: number;
  readonly requests: readonly RequestInterval[];
  readonly samples: readonly ProcessSample[];
  /** Error responses since the start, by code. */
  readonly errors: Readonly<Record<string, number>>;
  readonly pools: Readonly<Record<PoolName, PoolActivity>>;
  readonly statements: readonly RunningStatement[];
  readonly slowStatements: readonly SlowStatement[];
  readonly replicas: readonly ReplicaState[];
  readonly realtime: { readonly sockets: number; readonly channels: number; readonly subscriptions: number };
  readonly graphql: { readonly sockets: number; readonly operations: number; readonly subscriptions: number };
};

/** A line that a function, or the service about it, has written to its log. */
export type FunctionLine = {
  readonly at: string;
  readonly function: string;
  readonly level: "debug" | "info" | "warn" | "error";
  readonly text: string;
  /** The `X-Request-Id`; null outside of requests. */
  readonly request: string | null;
};

/** The activity that all processes of the service share. */
export type SharedActivity = {
  activity(): Promise<readonly ProcessActivity[]>;
  /** Returns the newest e-mails of this process; empty if e-mails are not kept. */
  recentEmails(): Promise<readonly SentEmail[]>;
  /** Returns the last requests of each process, in no order. */
  recentRequests(): Promise<readonly RecentRequest[]>;
  /** Returns the last lines that functions have written in each process, in no order. */
  functionLines(): Promise<readonly FunctionLine[]>;
};
