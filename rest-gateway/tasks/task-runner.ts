import pg from "pg";
import type { Caller, Callers } from "../../engine/caller/caller.ts";
import { parseClaims } from "../../engine/caller/claims.ts";
import { type Ask, asLogin } from "../../engine/database/as-login.ts";
import type { AsOwner } from "../../engine/database/as-owner.ts";
import type { ApiError, ErrorVerbosity } from "../../engine/errors.ts";
import type { Logger } from "../../engine/log.ts";
import { refuse } from "../gateway.ts";
import type { GatewayResponse } from "../http.ts";
import type { TaskHandler } from "./prepared-task.ts";
import { type StoredRequest, toGatewayRequest } from "./stored-request.ts";

type Options = {
  readonly asOwner: AsOwner;
  readonly callers: () => Callers;
  /** The task handler of the interface that serves the path. */
  readonly handlerFor: (path: string) => TaskHandler;
  readonly tableErrorVerbosity: ErrorVerbosity;
  readonly log: Pick<Logger, "warn" | "error">;
};

type StartedTask = Pick<Caller, "kind" | "role" | "claimsText"> & {
  readonly request: StoredRequest;
  readonly body: Buffer;
};

// The claims are read as text, so that large numbers keep all digits.
const BEGIN_TASK = `
  select caller->>'kind' as kind, caller->>'role' as role, caller->>'claims' as "claimsText", request, body
  from private.begin_task($1)`;

export type TaskRunner = {
  /** Makes one attempt. Rejects if the task should be retried; the last attempt never asks for a retry. */
  runTask(taskId: string, attempt: { readonly isLast: boolean }): Promise<void>;
  /** Cancels the running attempts, so that another process retries them. */
  cancelRunning(): Promise<void>;
};

/**
 * Runs a task as its caller. The task's changes and its completion are committed in one transaction, so it takes effect
 * exactly once, however many attempts it needs. An error response is final.
 */
export function makeTaskRunner(options: Options): TaskRunner {
  const { asOwner, callers, handlerFor, tableErrorVerbosity, log } = options;
  /** The Postgres backends that run tasks of this process. */
  const backendPids = new Set<string>();
  let isCancelled = false;

  const beginTask = async (taskId: string): Promise<StartedTask | undefined> => {
    const { rows } = await asOwner((client) => client.query<StartedTask>(BEGIN_TASK, [taskId]));
    return rows[0];
  };

  const perform: TaskRunner["runTask"] = async (taskId, { isLast }) => {
    const task = await beginTask(taskId);
    if (!task) return;
    const caller = toCaller(task);
    const { prepareTask, explainError } = handlerFor(task.request.path);
    try {
      const rejection = await callers().objectionTo(caller.claims);
      if (rejection) throw rejection;
      const { transact, execute } = await prepareTask(toGatewayRequest(task.request, task.body), caller);
      await transact(async (ask) => {
        const pid = await lockTask(asLogin(ask), taskId);
        backendPids.add(pid);
        try {
          const answer = await execute(ask);
          await finishTask(asLogin(ask), taskId, answer);
          return answer;
        } finally {
          backendPids.delete(pid);
        }
      });
    } catch (thrown) {
      const error = explainError(thrown, caller);
      if (isCancelled || thrown instanceof TaskHeldElsewhere || (isTransient(error) && !isLast)) throw thrown;
      if (error.status >= 500) log.error({ request: task.request.id, task: taskId, err: thrown }, "a task failed");
      const errorJson = toErrorJson(error, task.request, tableErrorVerbosity);
      await asOwner((client) => client.query("select private.fail_task($1, $2)", [taskId, errorJson]));
    }
  };

  const abandon = async (): Promise<void> => {
    isCancelled = true;
    const text = "select pg_cancel_backend(pid) from unnest($1::integer[]) as pid";
    await asOwner((client) => client.query(text, [[...backendPids]]));
  };
  return { runTask: perform, cancelRunning: abandon };
}

class TaskHeldElsewhere extends Error {
  override name = "HeldElsewhere";
}

/** Locks the task for this attempt; returns the backend's process id. */
async function lockTask(ask: Ask, taskId: string): Promise<string> {
  const text = "select private.hold_task($1)::text, pg_catalog.pg_backend_pid()::text";
  const [isHeld, pid] = (await ask({ text, values: [taskId] })).rows[0]!;
  if (isHeld !== "true") throw new TaskHeldElsewhere("Another attempt at this task is under way, or it is over");
  return pid!;
}

async function finishTask(ask: Ask, taskId: string, answer: GatewayResponse): Promise<void> {
  await ask({ text: "select private.finish_task($1, $2)", values: [taskId, resultOf(answer)] });
}

/** Stores JSON unchanged, text as a string, anything else in base64. */
function resultOf({ body, headers }: GatewayResponse): string {
  if (body === null || body.length === 0) return "null";
  const type = String(headers["Content-Type"] ?? "");
  if (/^application\/([\w.-]+\+)?json\b/i.test(type)) return body.toString();
  const isText = /^text\/|charset=/i.test(type);
  return JSON.stringify(isText ? body.toString() : Buffer.from(body).toString("base64"));
}

function toCaller({ kind, role, claimsText }: StartedTask): Caller {
  return Object.freeze({ kind, role, claims: parseClaims(claimsText) ?? {}, claimsText, expiresAt: null });
}

/** The error body that the interface would have returned. */
function toErrorJson(error: ApiError, request: StoredRequest, tableErrorVerbosity: ErrorVerbosity): string {
  const refusal = refuse(error, request, { errorBody: "nested", tableErrorVerbosity });
  const { error: envelope, ...body } = JSON.parse(String(refusal.body));
  return JSON.stringify({ status: error.status, ...(envelope ?? body) });
}

/** serialization_failure, deadlock_detected, transaction_resolution_unknown; a concurrent request with the same key. */
const TRANSIENT_CODES: readonly string[] = ["40001", "40P01", "08007", "IDEMPOTENCY_KEY_IN_USE"];

/** query_canceled: the statement exceeded its time limit, and would do so again. */
const QUERY_CANCELED = "57014";

/** Whether a retry may succeed, because the request itself was not at fault. */
function isTransient({ status, code, cause }: ApiError): boolean {
  if (code === QUERY_CANCELED) return false;
  // The resource interface replaces the SQLSTATE by its own code.
  const sqlState = cause instanceof pg.DatabaseError ? cause.code : code;
  return status === 503 || status === 504 || TRANSIENT_CODES.includes(sqlState ?? "");
}
