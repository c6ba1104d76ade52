import type { Caller } from "../../engine/caller/caller.ts";
import type { AsOwner } from "../../engine/database/as-owner.ts";
import { ApiError } from "../../engine/errors.ts";
import { dispatch } from "../gateway.ts";
import { type Body, type GatewayRequest, type GatewayResponse, type Handler, json } from "../http.ts";
import { parseAddress } from "../resource/parse/address.ts";
import type { Versions } from "../resource/versions/served.ts";
import { settleVersion } from "../resource/versions/settle.ts";
import { ownerSought } from "./owner.ts";

type Options = {
  readonly asOwner: AsOwner;
  readonly identify: (request: GatewayRequest) => Caller | Promise<Caller>;
  readonly versions: Versions;
  readonly publicUrl: string | null;
  /** Whether the database has a collection of that name. */
  readonly hasCollection: (name: string) => boolean;
  /** Answers every other address, and rows of a collection that lies at the same ones. */
  readonly otherwise: Handler;
};

type Task = {
  readonly status: "queued" | "running" | "done" | "failed";
  readonly progress: number | null;
  readonly result: string | null;
  readonly error: object | null;
  readonly created_at: Date;
  readonly started_at: Date | null;
  readonly finished_at: Date | null;
};

export const TASKS = "tasks";

const TASK = /^\/api\/v[1-9]\d*\/tasks\/([0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12})$/;
const OWNER = "coalesce($2, (select owner from private.tasks where id = $1))";
const READ_TASK = `
  select status, progress, result::text, error, created_at, started_at, finished_at from private.read_task($1, ${OWNER})`;
const WITHDRAW_TASK = `select private.withdraw_task($1, ${OWNER}) as status`;

type Find = (id: string, caller: Caller) => Promise<GatewayResponse | null>;

/**
 * `/api/v1/tasks/{id}`: what has become of a task, for whoever left it and for administrators. For anybody else there is
 * none. Where a table is called tasks, what is no task of the caller's is a row of it: ids that are made at random never
 * meet.
 */
export function makeTaskInterface(options: Options): Handler {
  const { asOwner, identify, versions, publicUrl, hasCollection, otherwise } = options;
  const read: Find = async (id, caller) => {
    const { rows } = await asOwner((client) => client.query<Task>(READ_TASK, [id, ownerSought(caller)]));
    if (!rows[0]) return null;
    return { ...json(200, {}), body: textOf(id, rows[0]) };
  };

  const withdraw: Find = async (id, caller) => {
    const values = [id, ownerSought(caller)];
    const { rows } = await asOwner((client) => client.query<{ status: string | null }>(WITHDRAW_TASK, values));
    const status = rows[0]?.status ?? null;
    if (status === null) return null;
    if (status === "running") {
      throw new ApiError(409, "RESOURCE_CONFLICT", "The task has begun; it cannot be taken back any more.");
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
    const orRow =
      (find: Find): Handler =>
      async () => {
        const told = await find(id, await identify(request));
        if (told) return told;
        if (isShared) return otherwise(request);
        throw noTask();
      };
    const methods = new Map([
      ["GET", orRow(read)],
      ["HEAD", orRow(read)],
      ["DELETE", orRow(withdraw)],
    ]);
    return isShared && !methods.has(request.method) ? otherwise(request) : dispatch(methods, request);
  };

  return (request) => {
    const id = TASK.exec(request.path)?.[1];
    return id === undefined ? otherwise(request) : answer(id, request);
  };
}

/** The result goes out as Postgres keeps it, digit for digit. */
function textOf(id: string, { result, error, ...task }: Task): string {
  const { status, progress, created_at: createdAt, started_at: startedAt, finished_at: finishedAt } = task;
  const known = { taskId: id, status, progress, createdAt, startedAt, finishedAt, ...(error && { error }) };
  const text = JSON.stringify(known);
  return status === "done" ? `${text.slice(0, -1)},"result":${result}}` : text;
}

function noTask(): ApiError {
  return new ApiError(404, "RESOURCE_NOT_FOUND", "There is no such task of yours.", {
    hint: "A task is kept for a day after it is finished.",
  });
}
