import type { Caller } from "../../engine/caller/caller.ts";
import type { AsOwner } from "../../engine/database/as-owner.ts";
import { json } from "../http.ts";
import { readIdempotencyKey } from "../idempotency/key.ts";
import { keyReused } from "../idempotency/once.ts";
import { fingerprintOf, type Place, placeOf } from "../idempotency/seal.ts";
import { publicPath } from "../public-address.ts";
import { usualVersion, type Versions } from "../resource/versions/served.ts";
import { type KeptRequest, keepRequest } from "./kept-request.ts";
import { taskOwner } from "./owner.ts";
import type { Defer } from "./undertaking.ts";

type Options = {
  readonly asOwner: AsOwner;
  readonly versions: Versions;
  readonly publicUrl: string | null;
};

type Queued = { readonly id: string; readonly estimate: number };
type Found = { readonly status: string; readonly fingerprint: string | null };

const QUEUE_TASK = "select id, estimate from private.queue_task($1, $2, $3, $4, $5, $6)";
/** By itself, and so after whoever was about to queue the same has done so. */
const FIND_TASK = "select status, caller->>'fingerprint' as fingerprint from private.tasks where id = $1";

/** Queues what is asked for: 202, with the address of the task. */
export function makeDefer({ asOwner, versions, publicUrl }: Options): Defer {
  const statusOf = async ({ id, fingerprint }: Retry): Promise<string> => {
    const { rows } = await asOwner((client) => client.query<Found>(FIND_TASK, [id]));
    const { status = "queued", fingerprint: known = null } = rows[0] ?? {};
    if (known !== null && known !== fingerprint) throw keyReused();
    return status;
  };

  return async ({ request, body, caller, version }) => {
    const owner = taskOwner(caller);
    const key = readIdempotencyKey(request.headers);
    const kept = keepRequest(request);
    const retry = key === null ? null : retryOf(placeOf("task", owner, key), kept, body);
    const values = [
      retry?.id ?? null,
      owner,
      `${request.method} ${request.path}`,
      keepCaller(caller, retry),
      JSON.stringify(kept),
      body,
    ];
    const { rows } = await asOwner((client) => client.query<Queued>(QUEUE_TASK, values));
    const { id, estimate } = rows[0]!;
    const status = retry ? await statusOf(retry) : "queued";
    const toldIn = version ?? usualVersion(await versions())?.number ?? 1;
    const location = `${publicPath(publicUrl)}/api/v${toldIn}/tasks/${id}`;
    return json(
      202,
      { taskId: id, status, estimate },
      { Location: location, "Preference-Applied": "respond-async", "Cache-Control": "no-store" },
    );
  };
}

/** As they are now: that the token ends before the task begins is no matter. The fingerprint is there for as long as the task. */
function keepCaller({ kind, role, claimsText }: Caller, retry: Retry | null): string {
  const others = JSON.stringify({ kind, role, ...(retry && { fingerprint: retry.fingerprint }) });
  return `{"claims":${claimsText},${others.slice(1)}`;
}

/** The same request under the same key is the same task. Who finds the fingerprint without the key learns nothing by it. */
type Retry = { readonly id: string; readonly fingerprint: string };

function retryOf({ id, secret }: Place, request: KeptRequest, body: Buffer): Retry {
  return { id: id.slice(0, 32), fingerprint: fingerprintOf([secret, ...partsOf(request, body)]) };
}

const SHAPING = ["content-type", "content-profile", "accept", "accept-version", "x-api-version", "prefer"] as const;

/** All that makes it the same request. */
function partsOf({ method, path, rawQuery, headers }: KeptRequest, body: Buffer): readonly (string | Buffer)[] {
  return [method, path, rawQuery, body, ...SHAPING.map((name) => String(headers[name] ?? ""))];
}
