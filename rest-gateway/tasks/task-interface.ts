import type { Caller } from "../../engine/caller/caller.ts";
import type { AsOwner } from "../../engine/database/as-owner.ts";
import { ApiError } from "../../engine/errors.ts";
import { dispatch } from "../gateway.ts";
import { type Body, type GatewayRequest, type GatewayResponse, type Handler, json } from "../http.ts";
import { parseAddress } from "../resource/parse/address.ts";
import type { Versions } from "../resource/versions/served.ts";
import { settleVersion } from "../resource/versions/settle.ts";
import { visibleTaskOwner } from "./task-owner.ts";

type Options = {
  readonly asOwner: AsOwner;
  readonly identify: (request: GatewayRequest) => Caller | Promise<Caller>;
  readonly versions: Versions;
  readonly publicUrl: string | null;
  /** Whether the database has a collection with this name. */
  readonly hasCollection: (name: string) => boolean;
  /** Handles all other paths, and the rows of a collection that is also called tasks. */
  readonly next: Handler;
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

export const TASKS = "tasks";

const TASK_PATH = /^\/api\/v[1-9]\d*\/tasks\/([0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12})$/;
const OWNER = "coalesce($2, (select owner from private.tasks where id = $1))";
const READ_TASK = `
  select status, progress, result::text, error, created_at, started_at, finished_at from private.read_task($1, ${OWNER})`;
const WITHDRAW_TASK = `select private.withdraw_task($1, ${OWNER}) as status`;

type FindTask = (id: string, caller: Caller) => Promise<GatewayResponse | null>;

/**
 * `/api/v1/tasks/{id}`: the state of a task, for its owner and for administrators; 404 for anybody else. If the database
 * has a table called tasks, an id that is no task of the caller is looked up there; random ids do not collide.
 */
export function makeTaskInterface(options: Options): Handler {
  const { asOwner, identify, versions, publicUrl, hasCollection, next } = options;
  const read: FindTask = async (id, caller) => {
    const { rows } = await asOwner((client) => client.query<TaskRow>(READ_TASK, [id, visibleTaskOwner(caller)]));
    if (!rows[0]) return null;
    return { ...json(200, {}), body: formatTask(id, rows[0]) };
  };

  const withdraw: FindTask = async (id, caller) => {
    const values = [id, visibleTaskOwner(caller)];
    const { rows } = await asOwner((client) => client.query<{ status: string | null }>(WITHDRAW_TASK, values));
    const status = rows[0]?.status ?? null;
    if (status === null) return null;
    if (status === "running") {
      throw new ApiError(409, "RESOURCE_CONFLICT", "The task is running and can no longer be withdrawn.");
    }
    return { status: 204, headers: {}, body: null };
  };

  const answer = async (id: string, request: GatewayRequest): Promise<GatewayResponse<Body>> => {
    request.tell({ "Cache-Control": "no-store" });
    settleVersion(request, parseAddress(request.path), new URLSearchParams(request.rawQuery), {
      versions: await versions(),
      publicUrl,
    });
    const isShared = hasCollection(TASKS);
    const orNext =
      (find: FindTask): Handler =>
      async () => {
        const response = await find(id, await identify(request));
        if (response) return response;
        if (isShared) return next(request);
        throw taskNotFound();
      };
    const methods = new Map([
      ["GET", orNext(read)],
      ["HEAD", orNext(read)],
      ["DELETE", orNext(withdraw)],
    ]);
    return isShared && !methods.has(request.method) ? next(request) : dispatch(methods, request);
  };

  return (request) => {
    const id = TASK_PATH.exec(request.path)?.[1];
    return id === undefined ? next(request) : answer(id, request);
  };
}

/** Inserts the result as stored text, so that numbers keep all digits. */
function formatTask(id: string, { result, error, ...task }: TaskRow): string {
  const { status, progress, created_at: createdAt, started_at: startedAt, finished_at: finishedAt } = task;
  const known = { taskId: id, status, progress, createdAt, startedAt, finishedAt, ...(error && { error }) };
  const text = JSON.stringify(known);
  return status === "done" ? `${text.slice(0, -1)},"result":${result}}` : text;
}

function taskNotFound(): ApiError {
  return new ApiError(404, "RESOURCE_NOT_FOUND", "Task not found.", {
    hint: "Only its owner can see a task, and a finished task is deleted after one day.",
  });
}
