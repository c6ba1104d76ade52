/** The response of `GET /running`. */
export type RunningState = {
  readonly at: string;
  readonly processes: readonly ProcessState[];
  readonly requests: { readonly interval_seconds: number; readonly intervals: readonly CountedInterval[] };
  /** The values at the end of each interval, of all processes together. */
  readonly samples: readonly SampledInterval[];
  /** The number of errors by error code. */
  readonly errors: Readonly<Record<string, number>>;
  readonly pools: readonly PoolState[];
  readonly replicas: readonly { readonly status: string; readonly lag_seconds: number | null }[];
  readonly realtime: { readonly sockets: number; readonly channels: number; readonly subscriptions: number };
  readonly graphql: { readonly sockets: number; readonly operations: number; readonly subscriptions: number };
  readonly database: Omit<DatabaseActivity, "sessions"> & { readonly sessions: readonly RunningSession[] };
  readonly slow_statements:
    | { readonly source: "pg_stat_statements"; readonly statements: readonly StatementStatistics[] }
    | { readonly source: "service"; readonly least_ms: number; readonly statements: readonly NoticedStatement[] };
  readonly tasks: {
    readonly queued: number;
    readonly running: number;
    readonly failed: number;
    readonly tasks: readonly TaskState[];
  } | null;
  /** Null, as for webhooks and tasks, if the database lacks these tables. */
  readonly schedules: readonly ScheduleState[] | null;
  readonly webhooks: readonly ListedWebhook[] | null;
};

export type ProcessState = {
  readonly pid: number;
  readonly uptime_seconds: number;
  readonly processor_seconds: number;
  readonly memory_bytes: number;
  readonly heap_bytes: number;
};

/** The requests of one interval. */
export type CountedInterval = {
  /** The end of the interval. */
  readonly at: string;
  readonly count: number;
  readonly p50_ms: number;
  readonly p99_ms: number;
  readonly interfaces: Readonly<Record<string, InterfaceInterval>>;
};

type InterfaceInterval = {
  readonly statuses: Readonly<Record<string, number>>;
  readonly p50_ms: number;
  readonly p99_ms: number;
};

/** The sums over all processes of the service at the end of an interval. */
export type SampledInterval = {
  readonly at: string;
  readonly memory_bytes: number;
  readonly processor_cores: number;
  /** The connections of the service's pools to Postgres. */
  readonly connections: number;
  readonly in_flight: number;
  /** The requests that wait for a connection. */
  readonly waiting: number;
  readonly sockets: number;
  readonly channels: number;
  readonly subscriptions: number;
};

export type PoolState = {
  readonly name: string;
  readonly connections: number;
  readonly max: number;
  readonly in_flight: number;
  readonly waiting: number;
};

export type DatabaseActivity = {
  readonly max_connections: number;
  /** True if the owner may read other roles' activity. */
  readonly sees_all: boolean;
  readonly connections: readonly ConnectionCount[];
  readonly sessions: readonly DatabaseSession[];
};

export type ConnectionCount = {
  readonly application: string;
  /** The state as in `pg_stat_activity`; null for a process of the server. */
  readonly state: string | null;
  readonly count: number;
};

type AwaitedLock = { readonly type: string; readonly mode: string; readonly relation: string | null };

/** An active session, or one that others wait for. */
export type DatabaseSession = {
  readonly pid: number;
  readonly application: string;
  readonly role: string | null;
  readonly state: string;
  /** The event that the session waits for: `Lock: transactionid`. */
  readonly wait: string | null;
  /** The start time of the statement, with microseconds: it identifies the statement. */
  readonly started_at: string | null;
  readonly milliseconds: number | null;
  /** The duration of the session's transaction. */
  readonly transaction_ms: number | null;
  /** Null if the owner may not read it. */
  readonly statement: string | null;
  /** The sessions whose locks it waits for; 0 is a prepared transaction. */
  readonly waits_for: readonly number[];
  readonly lock: AwaitedLock | null;
};

/** A session with the service's request that its statement belongs to. */
export type RunningSession = DatabaseSession & {
  readonly request: {
    readonly id: string | null;
    readonly interface: string | null;
    readonly role: string | null;
  } | null;
};

/** The execution times of a slow statement. */
type StatementTimes = {
  readonly statement: string | null;
  readonly role: string | null;
  readonly calls: number;
  readonly total_ms: number;
  readonly mean_ms: number;
  readonly max_ms: number;
};

/** The statistics of a statement in pg_stat_statements. */
export type StatementStatistics = StatementTimes & { readonly rows: number };

/** The service's statistics of a slow statement; the other values are those of its last execution. */
export type NoticedStatement = StatementTimes & { readonly interface: string | null; readonly at: string };

export type TaskState = {
  readonly id: string;
  /** Method and path of the request, or the function. */
  readonly work: string;
  readonly owner: string;
  readonly status: string;
  readonly created_at: string;
  readonly started_at: string | null;
  readonly finished_at: string | null;
  readonly error: unknown;
};

export type ScheduleState = {
  readonly name: string;
  readonly cron: string;
  readonly time_zone: string;
  readonly function: string;
  readonly is_enabled: boolean;
  readonly next_run_at: string | null;
  readonly last_run: {
    readonly planned_at: string;
    readonly status: string;
    readonly milliseconds: number | null;
    readonly error: unknown;
  } | null;
  /** The run that waits in the queue, or runs now. */
  readonly current_run: {
    readonly planned_at: string;
    readonly status: string;
    readonly started_at: string | null;
  } | null;
};

export type ListedWebhook = {
  readonly name: string;
  readonly table: string;
  readonly events: readonly string[];
  readonly origin: string;
  readonly state: "enabled" | "stopped" | "disabled";
  readonly disabled_because: string | null;
  readonly pending: number;
  readonly oldest_at: string | null;
  readonly dead: number;
  readonly delivered_at: string | null;
  readonly last_error: string | null;
};

/** The response of `POST /running/cancel`. */
export type Cancellation = Pick<
  DatabaseSession,
  "pid" | "application" | "role" | "started_at" | "milliseconds" | "statement"
> & { readonly message: string };

/** The response of `GET /requests`. */
export type FoundRequests = {
  readonly requests: readonly {
    readonly at: string;
    readonly id: string;
    readonly method: string;
    readonly path: string;
    readonly status: number;
    readonly milliseconds: number;
    readonly interface: string;
  }[];
  readonly searched: number;
  readonly kept_per_process: number;
  /** The bound of the log of requests, which is searched too; 0 if there is none. */
  readonly log_megabytes: number;
};

/** The response of `GET /functions/log`. */
export type FunctionLines = {
  readonly lines: readonly {
    readonly at: string;
    readonly function: string;
    readonly level: "debug" | "info" | "warn" | "error";
    readonly text: string;
    /** The `X-Request-Id`; null outside requests. */
    readonly request: string | null;
  }[];
};
