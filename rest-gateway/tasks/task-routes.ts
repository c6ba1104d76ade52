import { type Caller, requireWriteAccess } from "#accounts/identity";
import {
  dispatchMethod,
  type GatewayHandler,
  type GatewayRequest,
  type GatewayResponse,
  HttpError,
  jsonResponse,
  type ResponseBody,
} from "#http";
import type { AsOwner } from "#postgres/database";
import { TASKS_COLLECTION, visibleTaskOwnerOf } from "./task-queue.ts";

type TaskRoutesOptions = {
  readonly asOwner: AsOwner;
  readonly authenticate: (request: GatewayRequest) => Caller | Promise<Caller>;
  /** Throws for a version of the resource interface that does not exist, and announces one that will end. */
  readonly negotiateVersion: (request: GatewayRequest) => Promise<void>;
  /** Returns true if the database has a collection with this name. */
  readonly hasCollection: (name: string) => boolean;
  /** Handles all other paths, and the rows of a collection that is also called tasks. */
  readonly next: GatewayHandler;
};

type TaskRow = {
  readonly status: "queued" | "running" | "done" | "failed";
  readonly progress: number | null;
  readonly result: string | null;
  readonly error: object | null;
  readonly created_at: Date;
  readonly started_at: Date | null;
  readonly finished_at: Date | null;
};

const TASK_PATH = /^\/api\/v[1-9]\d*\/tasks\/([0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12})$/;
const OWNER = "coalesce($2, (select owner from content_service.tasks where id = $1))";
const READ_TASK = `
  select status, progress, result::pg_catalog.text, error, created_at, started_at, finished_at from content_service.read_task($1, ${OWNER})`;
const WITHDRAW_TASK = `select content_service.withdraw_task($1, ${OWNER}) as status`;

type TaskAction = (id: string, caller: Caller) => Promise<GatewayResponse | null>;

/**
 * Handles `/api/v1/tasks/{id}`: the state of a task, for its owner and for administrators; 404 for anybody else. If the database
 * has a table called tasks, an id that is not a task of the caller is looked up there; random ids do not collide.
 */
export function makeTaskRoutes(options: TaskRoutesOptions): GatewayHandler {
  const { asOwner, authenticate, negotiateVersion, hasCollection, next } = options;
  const read: TaskAction = async (id, caller) => {
    const { rows } = await asOwner((client) => client.query<TaskRow>(READ_TASK, [id, visibleTaskOwnerOf(caller)]));
    if (!rows[0]) return null;
    return { ...jsonResponse(200, {}), body: formatTask(id, rows[0]) };
  };

  const withdraw: TaskAction = async (id, caller) => {
    requireWriteAccess(caller);
    const values = [id, visibleTaskOwnerOf(caller)];
    const { rows } = await asOwner((client) => client.query<{ status: string | null }>(WITHDRAW_TASK, values));
    const status = rows[0]?.status ?? null;
    if (status === null) return null;
    if (status === "running") {
      throw new HttpError(409, "RESOURCE_CONFLICT", "The task is running and can no longer be withdrawn.");
    }
    return { status: 204, headers: {}, body: null };
  };

  const respond = async (id: string, request: GatewayRequest): Promise<GatewayResponse<ResponseBody>> => {
    request.addResponseHeaders({ "Cache-Control": "no-store" });
    await negotiateVersion(request);
    const isShared = hasCollection(TASKS_COLLECTION);
    const handleWith =
      (find: TaskAction): GatewayHandler =>
      async () => {
        const response = await find(id, await authenticate(request));
        if (response) return response;
        if (isShared) return next(request);
        throw taskNotFound();
      };
    const methods = new Map([
      ["GET", handleWith(read)],
      ["HEAD", handleWith(read)],
      ["DELETE", handleWith(withdraw)],
    ]);
    return isShared && !methods.has(request.method) ? next(request) : dispatchMethod(methods, request);
  };

  return (request) => {
    const id = TASK_PATH.exec(request.path)?.[1];
    return id === undefined ? next(request) : respond(id, request);
  };
}

/** Prints a task with the result as stored text, so that numbers keep all digits. */
function formatTask(id: string, { result, error, ...task }: TaskRow): string {
  const { status, progress, created_at: createdAt, started_at: startedAt, finished_at: finishedAt } = task;
  const fields = { taskId: id, status, progress, createdAt, startedAt, finishedAt, ...(error && { error }) };
  const text = JSON.stringify(fields);
  return status === "done" ? `${text.slice(0, -1)},"result":${result}}` : text;
}

function taskNotFound(): HttpError {
  return new HttpError(404, "RESOURCE_NOT_FOUND", "Task not found.", {
    hint: "Only its owner can see a task, and a finished task is deleted after one day.",
  });
}
