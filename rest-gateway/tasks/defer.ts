import type { Caller } from "../../engine/caller/caller.ts";
import type { AsOwner } from "../../engine/database/as-owner.ts";
import { json } from "../http.ts";
import { readIdempotencyKey } from "../idempotency/key.ts";
import { placeOf } from "../idempotency/seal.ts";
import { keepRequest } from "./kept-request.ts";
import { taskOwner } from "./owner.ts";
import type { Defer } from "./undertaking.ts";

type Queued = { readonly id: string; readonly estimate: number };

const QUEUE_TASK = "select id, estimate from private.queue_task($1, $2, $3, $4, $5, $6)";

/** Queues what is asked for: 202, with the address of the task. */
export function makeDefer(asOwner: AsOwner): Defer {
  return async ({ request, body, caller }) => {
    const owner = taskOwner(caller);
    const key = readIdempotencyKey(request.headers);
    const values = [
      key === null ? null : idOf(owner, key),
      owner,
      `${request.method} ${request.path}`,
      keepCaller(caller),
      JSON.stringify(keepRequest(request)),
      body,
    ];
    const { rows } = await asOwner((client) => client.query<Queued>(QUEUE_TASK, values));
    const { id, estimate } = rows[0]!;
    return json(
      202,
      { taskId: id, status: "queued", estimate },
      { Location: `/api/v1/tasks/${id}`, "Preference-Applied": "respond-async", "Cache-Control": "no-store" },
    );
  };
}

/** As they are now: that the token ends before the task begins is no matter. */
function keepCaller({ kind, role, claims }: Caller): string {
  return JSON.stringify({ kind, role, claims });
}

/** A retry under the same key is the same task. */
function idOf(owner: string, key: string): string {
  return placeOf("task", owner, key).id.slice(0, 32);
}
