import { adminCall } from "../api/admin.ts";

export type RequestInterval = {
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

export type ServiceProcess = {
  readonly pid: number;
  readonly uptime_seconds: number;
  readonly processor_seconds: number;
  readonly memory_bytes: number;
  readonly heap_bytes: number;
};

export type DatabaseSession = {
  readonly pid: number;
  readonly application: string;
  readonly role: string | null;
  readonly state: string;
  readonly wait: string | null;
  readonly started_at: string | null;
  readonly milliseconds: number | null;
  readonly transaction_ms: number | null;
  readonly statement: string | null;
  readonly waits_for: readonly number[];
  readonly lock: { readonly type: string; readonly mode: string; readonly relation: string | null } | null;
  readonly request: {
    readonly id: string | null;
    readonly interface: string | null;
    readonly role: string | null;
  } | null;
};

export type SlowStatement = {
  readonly statement: string | null;
  readonly role: string | null;
  readonly calls: number;
  readonly total_ms: number;
  readonly mean_ms: number;
  readonly max_ms: number;
};

export type ListedTask = {
  readonly id: string;
  readonly work: string;
  readonly status: string;
  readonly created_at: string;
  readonly error: { readonly message?: string } | null;
};

export type ListedSchedule = {
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
    readonly error: { readonly message?: string } | null;
  } | null;
  readonly current_run: { readonly status: string; readonly started_at: string | null } | null;
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

/** The response of `GET /admin/v1/running`. */
export type RunningState = {
  readonly at: string;
  readonly processes: readonly ServiceProcess[];
  readonly requests: { readonly interval_seconds: number; readonly intervals: readonly RequestInterval[] };
  readonly errors: Readonly<Record<string, number>>;
  readonly pools: readonly ConnectionPool[];
  readonly replicas: readonly { readonly status: string; readonly lag_seconds: number | null }[];
  readonly realtime: { readonly sockets: number; readonly channels: number; readonly subscriptions: number };
  readonly graphql: { readonly sockets: number; readonly operations: number; readonly subscriptions: number };
  readonly database: {
    readonly max_connections: number;
    readonly sees_all: boolean;
    readonly connections: readonly ConnectionCount[];
    readonly sessions: readonly DatabaseSession[];
  };
  readonly slow_statements: {
    readonly source: "pg_stat_statements" | "service";
    readonly least_ms?: number;
    readonly statements: readonly SlowStatement[];
  };
  readonly tasks: {
    readonly queued: number;
    readonly running: number;
    readonly failed: number;
    readonly tasks: readonly ListedTask[];
  } | null;
  /** Null, as for webhooks and tasks, if the database has none of these tables. */
  readonly schedules: readonly ListedSchedule[] | null;
  readonly webhooks: readonly ListedWebhook[] | null;
};

type ConnectionPool = {
  readonly name: string;
  readonly connections: number;
  readonly max: number;
  readonly in_flight: number;
  readonly waiting: number;
};

type ConnectionCount = { readonly application: string; readonly state: string | null; readonly count: number };

/** With the intervals after `since`, the `at` of one. */
export function readRunning(since: string | null, signal: AbortSignal): Promise<RunningState> {
  const query = since === null ? "" : `?since=${encodeURIComponent(since)}`;
  return adminCall<RunningState>(`GET /running${query}`, { signal });
}

export function cancelStatement({ pid, started_at }: DatabaseSession): Promise<{ readonly message: string }> {
  return adminCall("POST /running/cancel", { body: { pid, started_at } });
}

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
};

export type FunctionLines = {
  readonly lines: readonly {
    readonly at: string;
    readonly function: string;
    readonly level: "debug" | "info" | "warn" | "error";
    readonly text: string;
    readonly request: string | null;
  }[];
};

export function readFunctionLines(signal: AbortSignal): Promise<FunctionLines> {
  return adminCall<FunctionLines>("GET /functions/log", { signal });
}

export type RequestFilter = { readonly search: string; readonly status: string; readonly least_ms: string };

export function searchRequests(filter: RequestFilter, signal: AbortSignal): Promise<FoundRequests> {
  return adminCall<FoundRequests>(`GET /requests?${new URLSearchParams(filter)}`, { signal });
}
