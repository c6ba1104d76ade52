import type { TaskList } from "graphile-worker";
import pg from "pg";
import { type Authenticator, type Caller, type CredentialError, isActedAs, parseClaims } from "#accounts/identity";
import type { Catalog } from "#catalog";
import type { CatalogRefresh } from "#catalog/loading";
import {
  type ErrorVerbosity,
  type GatewayRequest,
  type GatewayResponse,
  type HttpError,
  TABLE_PREFIX,
  toErrorResponse,
} from "#http";
import { type AsOwner, asLogin, type RunStatement } from "#postgres/database";
import type { Logger } from "#runtime/log";
import { type StoredRequest, toGatewayRequest } from "./stored-request.ts";

type TaskRunnerOptions = {
  readonly asOwner: AsOwner;
  readonly authenticator: () => Authenticator;
  /** Returns the task handler of the interface that serves the path. */
  readonly handlerFor: (path: string) => TaskHandler;
  readonly prepareCall: PrepareCall;
  readonly catalog: () => Catalog;
  readonly refreshCatalog: CatalogRefresh;
  readonly errorVerbosity: ErrorVerbosity;
  readonly log: Pick<Logger, "warn" | "error">;
};

/** A request that was parsed and planned and can be executed. */
export type PreparedTask = {
  /** Runs the work in a transaction as the caller; rolled back if it rejects. */
  transact(work: (runStatement: RunStatement) => Promise<GatewayResponse>): Promise<GatewayResponse>;
  /** Executes the request in a transaction and returns the response. */
  execute(runStatement: RunStatement): Promise<GatewayResponse>;
};

/** A function call that SQL has queued. */
export type QueuedCall = {
  /** The name and parameter types. */
  readonly function: string;
  /** A JSON object. */
  readonly arguments: string;
  /** The statement that calls the function with `$1`, the arguments; null if the function no longer exists. */
  readonly statement: string | null;
  /** The time limit; null for the limit of the service. */
  readonly timeLimitMs: number | null;
  /** True if a schedule or the owner has queued it. */
  readonly isSystem: boolean;
};

/** Prepares a queued call, with the catalogue and the settings of the time of execution. */
export type PrepareCall = (call: QueuedCall, caller: Caller) => PreparedTask;

/** The part of an interface that executes a queued request, with the catalogue and the settings of the time of execution. */
export type TaskHandler = {
  prepareTask(request: GatewayRequest, caller: Caller): Promise<PreparedTask>;
  /** Converts a thrown value to the error that the interface would return. */
  explainError(thrown: unknown, caller: Caller): HttpError;
};

const OUTLIVES_SESSION = "select content_service.outlives_session($1) as outlives";

type StartedTask = { readonly id: string; readonly attempts: number } & Pick<Caller, "kind" | "role" | "claimsText"> & {
    readonly request: StoredRequest;
    readonly body: Buffer;
    /** The call; null for a request. */
    readonly call: QueuedCall | null;
  };

type StartedRow = Omit<StartedTask, "call"> &
  Omit<QueuedCall, "function" | "isSystem"> & { readonly function: string | null };

// The claims and the arguments are read as text, so that large numbers keep all digits.
const BEGIN_TASK = `
  select id, attempts, caller operator(pg_catalog.->>) 'kind' as kind, caller operator(pg_catalog.->>) 'role' as role, coalesce(caller operator(pg_catalog.->>) 'claims', '') as "claimsText", request, body,
    function, arguments::pg_catalog.text, call_statement as statement,
    (extract(epoch from time_limit) * 1000)::double precision as "timeLimitMs"
  from content_service.begin_task($1)`;

/** The owner of the tasks that take turns with one another: the service, callers, or anonymous callers. */
export type TaskLane = "system" | "caller" | "anonymous";

type TaskRunner = {
  /** Makes attempts at the tasks of the lane, one after the other, until none is due or the time is over. */
  runDueTasks(lane: TaskLane): Promise<void>;
  /** Cancels the running attempts, so that another process retries them. */
  cancelRunning(): Promise<void>;
};

/** The time after which a job begins no further task, so that a process that stops does not wait for it. */
const JOB_MS = 1_000;

/** The maximum number of attempts: one that fails for a temporary reason is repeated, after e, e², … seconds. */
const MAX_ATTEMPTS = 5;

/**
 * Makes a runner, which runs a task as its caller. The task's changes and its completion are committed in one transaction, so it takes
 * effect exactly once, however many attempts it needs. An error response is final.
 */
export function makeTaskRunner(options: TaskRunnerOptions): TaskRunner {
  const { asOwner, authenticator, handlerFor, prepareCall, errorVerbosity, log } = options;
  /** The Postgres backends that run tasks of this process. */
  const backendPids = new Set<string>();
  let isCancelled = false;

  const beginTask = async (lane: TaskLane): Promise<StartedTask | undefined> => {
    const { rows } = await asOwner((client) => client.query<StartedRow>(BEGIN_TASK, [lane]));
    return rows[0] && toStartedTask(rows[0], lane);
  };

  const requeueTask = async ({ id, attempts }: StartedTask): Promise<void> => {
    const seconds = isCancelled ? 0 : Math.exp(attempts);
    const text = "select content_service.requeue_task($1, pg_catalog.make_interval(secs => $2))";
    await asOwner((client) => client.query(text, [id, seconds]));
  };

  const runTask = async (task: StartedTask): Promise<void> => {
    const { id: taskId } = task;
    const caller = callerOfTask(task);
    const { explainError } = handlerFor(task.request.path);
    try {
      const rejection = await authenticator().validateClaims(caller.claims);
      if (rejection && !(await outlivesSession(asOwner, task, caller, rejection))) throw rejection;
      const { transact, execute } = task.call
        ? prepareCall(task.call, caller)
        : await prepareRequest(task, caller, options);
      await transact(async (runStatement) => {
        const pid = await lockTask(asLogin(runStatement), taskId);
        backendPids.add(pid);
        try {
          const response = await execute(runStatement);
          await finishTask(asLogin(runStatement), taskId, response);
          return response;
        } finally {
          backendPids.delete(pid);
        }
      });
    } catch (thrown) {
      const error = explainError(thrown, caller);
      if (thrown instanceof TaskLockedError) return;
      if (isCancelled || (isTransient(error) && task.attempts < MAX_ATTEMPTS)) return requeueTask(task);
      if (error.status >= 500) log.error({ request: task.request.id, task: taskId, err: thrown }, "a task failed");
      // The failure is logged, because the result of a call may never be read.
      else if (task.call) log.warn({ function: task.call.function, task: taskId, err: thrown }, "a queued call failed");
      const errorJson = toErrorJson(error, task.request, errorVerbosity);
      await asOwner((client) => client.query("select content_service.fail_task($1, $2)", [taskId, errorJson]));
    }
  };

  const runDueTasks: TaskRunner["runDueTasks"] = async (lane) => {
    const end = performance.now() + JOB_MS;
    const mayBegin = () => !isCancelled && performance.now() <= end;
    const ran: string[] = [];
    for (let task = await beginTask(lane); task; task = mayBegin() ? await beginTask(lane) : undefined) {
      await runTask(task);
      ran.push(task.id);
    }
    // The running job belongs to one task; the jobs of the other tasks have nothing to do any more.
    if (ran.length > 1) await asOwner((client) => client.query("select content_service.remove_jobs_of($1)", [ran]));
  };

  const cancelRunning = async (): Promise<void> => {
    isCancelled = true;
    const text = "select pg_catalog.pg_cancel_backend(pid) from pg_catalog.unnest($1::integer[]) as pid";
    await asOwner((client) => client.query(text, [[...backendPids]]));
  };
  return { runDueTasks, cancelRunning };
}

/** Converts a row to a task. Errors of calls are those of the table interface. */
function toStartedTask(row: StartedRow, lane: TaskLane): StartedTask {
  if (row.function === null) return { ...row, call: null };
  const request = { id: row.id, method: "POST", path: `${TABLE_PREFIX}/rpc`, rawQuery: "", headers: {} };
  return { ...row, request, call: { ...row, function: row.function, isSystem: lane === "system" } };
}

/** Returns true if a call outlives its session: it may be due days after the sign-out. It does not outlive the user's password and role. */
async function outlivesSession(
  asOwner: AsOwner,
  { id, call }: StartedTask,
  caller: Caller,
  { reason }: CredentialError,
): Promise<boolean> {
  if (!call || isActedAs(caller) || (reason !== "sessionEnded" && reason !== "accountChanged")) return false;
  const { rows } = await asOwner((client) => client.query<{ outlives: boolean }>(OUTLIVES_SESSION, [id]));
  return rows[0]!.outlives;
}

/** Prepares the request. The process that has queued it could parse and plan it, perhaps with a newer catalogue than this one. */
async function prepareRequest(
  task: StartedTask,
  caller: Caller,
  { handlerFor, catalog, refreshCatalog }: Pick<TaskRunnerOptions, "handlerFor" | "catalog" | "refreshCatalog">,
): Promise<PreparedTask> {
  const { prepareTask } = handlerFor(task.request.path);
  for (;;) {
    const known = catalog();
    try {
      return await prepareTask(toGatewayRequest(task.request, task.body), caller);
    } catch (thrown) {
      if (!(await refreshCatalog(known))) throw thrown;
    }
  }
}

class TaskLockedError extends Error {
  override name = "TaskLockedError";
}

/** Locks the task for this attempt; returns the backend's process id. */
async function lockTask(runStatement: RunStatement, taskId: string): Promise<string> {
  const text = "select content_service.lock_task($1)::pg_catalog.text, pg_catalog.pg_backend_pid()::pg_catalog.text";
  const [isLocked, pid] = (await runStatement({ text, values: [taskId] })).rows[0]!;
  if (isLocked !== "true") throw new TaskLockedError("Another attempt at this task is under way, or it is over");
  return pid!;
}

async function finishTask(runStatement: RunStatement, taskId: string, response: GatewayResponse): Promise<void> {
  await runStatement({ text: "select content_service.finish_task($1, $2)", values: [taskId, resultOf(response)] });
}

/** Returns the result: JSON unchanged, text as a string, anything else in base64. */
function resultOf({ body, headers }: GatewayResponse): string {
  if (body === null || body.length === 0) return "null";
  const type = String(headers["Content-Type"] ?? "");
  if (/^application\/([\w.-]+\+)?json\b/i.test(type)) return body.toString();
  const isText = /^text\/|charset=/i.test(type);
  return JSON.stringify(isText ? body.toString() : Buffer.from(body).toString("base64"));
}

function callerOfTask({ kind, role, claimsText }: StartedTask): Caller {
  return Object.freeze({ kind, role, claims: parseClaims(claimsText) ?? {}, claimsText, expiresAt: null });
}

/** Returns the error body that the interface would have returned. */
function toErrorJson(error: HttpError, request: StoredRequest, errorVerbosity: ErrorVerbosity): string {
  const refusal = toErrorResponse(error, request, { errorBody: "nested", errorVerbosity });
  const { error: envelope, ...body } = JSON.parse(String(refusal.body));
  return JSON.stringify({ status: error.status, ...(envelope ?? body) });
}

/** serialization_failure, deadlock_detected, transaction_resolution_unknown; a concurrent request with the same key. */
const TRANSIENT_CODES: readonly string[] = ["40001", "40P01", "08007", "IDEMPOTENCY_KEY_IN_USE"];

/** query_canceled: the statement exceeded its time limit, and would do so again. */
const QUERY_CANCELED = "57014";

/** Returns true if a retry may succeed, because the request itself was not at fault. */
function isTransient({ status, code, cause }: HttpError): boolean {
  if (code === QUERY_CANCELED) return false;
  // The resource interface replaces the SQLSTATE with its own code.
  const sqlState = cause instanceof pg.DatabaseError ? cause.code : code;
  return status === 503 || status === 504 || TRANSIENT_CODES.includes(sqlState ?? "");
}

/**
 * Makes the jobs of a lane: each reports that there is work, and SQL chooses the tasks. Their names are those that
 * `content_service.queue_task` uses; a job of an earlier version is named `perform`.
 */
export function makeTaskList({ runDueTasks }: TaskRunner, lane: TaskLane): TaskList {
  const run = () => runDueTasks(lane);
  return { [`perform_${lane}`]: run, ...(lane === "caller" && { perform: run }) };
}

/** Requeues abandoned tasks, fails those that have no attempts left, and deletes expired rows and rows beyond the limits. */
export async function maintainTasks(asOwner: AsOwner): Promise<void> {
  // Each function has its own transaction: the tasks must not wait for the other tables.
  for (const name of ["maintain_tasks", "maintain_responses", "trim_tables"])
    await asOwner((client) => client.query(`select content_service.${name}()`));
}
