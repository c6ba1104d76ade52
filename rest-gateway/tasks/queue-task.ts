import type { Caller } from "../../engine/caller/caller.ts";
import type { AsOwner } from "../../engine/database/as-owner.ts";
import { json } from "../http.ts";
import { readIdempotencyKey } from "../idempotency/read-idempotency-key.ts";
import { keyReused } from "../idempotency/run-once.ts";
import { deriveStorageKey, fingerprintParts, type StorageKey } from "../idempotency/stored-response.ts";
import { publicPath } from "../public-address.ts";
import { usualVersion, type Versions } from "../resource/versions/served.ts";
import type { QueueTask } from "./prepared-task.ts";
import { type StoredRequest, toStoredRequest } from "./stored-request.ts";
import { taskOwner } from "./task-owner.ts";

type Options = {
  readonly asOwner: AsOwner;
  readonly versions: Versions;
  readonly publicUrl: string | null;
};

type QueuedRow = { readonly id: string; readonly estimate: number };
type StatusRow = { readonly status: string; readonly fingerprint: string | null };

const QUEUE_TASK = "select id, estimate from private.queue_task($1, $2, $3, $4, $5, $6)";
/** A separate statement, so that it sees a task that a concurrent request with the same key has queued. */
const FIND_TASK = "select status, caller->>'fingerprint' as fingerprint from private.tasks where id = $1";

/** Queues a request as a task and answers 202 with the task's address. */
export function makeQueueTask({ asOwner, versions, publicUrl }: Options): QueueTask {
  const statusOf = async ({ id, fingerprint }: RetryIdentity): Promise<string> => {
    const { rows } = await asOwner((client) => client.query<StatusRow>(FIND_TASK, [id]));
    const { status = "queued", fingerprint: known = null } = rows[0] ?? {};
    if (known !== null && known !== fingerprint) throw keyReused();
    return status;
  };

  return async ({ request, body, caller, version }) => {
    const owner = taskOwner(caller);
    const key = readIdempotencyKey(request.headers);
    const stored = toStoredRequest(request);
    const retry = key === null ? null : retryIdentityOf(deriveStorageKey("task", owner, key), stored, body);
    const values = [
      retry?.id ?? null,
      owner,
      `${request.method} ${request.path}`,
      serializeCaller(caller, retry),
      JSON.stringify(stored),
      body,
    ];
    const { rows } = await asOwner((client) => client.query<QueuedRow>(QUEUE_TASK, values));
    const { id, estimate } = rows[0]!;
    const status = retry ? await statusOf(retry) : "queued";
    const statusVersion = version ?? usualVersion(await versions())?.number ?? 1;
    const location = `${publicPath(publicUrl)}/api/v${statusVersion}/tasks/${id}`;
    return json(
      202,
      { taskId: id, status, estimate },
      { Location: location, "Preference-Applied": "respond-async", "Cache-Control": "no-store" },
    );
  };
}

/** Stores the claims of now, because the token may expire before the task starts. The fingerprint is stored as long as the task. */
function serializeCaller({ kind, role, claimsText }: Caller, retry: RetryIdentity | null): string {
  const others = JSON.stringify({ kind, role, ...(retry && { fingerprint: retry.fingerprint }) });
  return `{"claims":${claimsText},${others.slice(1)}`;
}

/** The same request with the same Idempotency-Key is the same task. The fingerprint reveals nothing without the key. */
type RetryIdentity = { readonly id: string; readonly fingerprint: string };

function retryIdentityOf({ id, secret }: StorageKey, request: StoredRequest, body: Buffer): RetryIdentity {
  return { id: id.slice(0, 32), fingerprint: fingerprintParts([secret, ...fingerprintedParts(request, body)]) };
}

const RESPONSE_SHAPING_HEADERS = [
  "content-type",
  "content-profile",
  "accept",
  "accept-version",
  "x-api-version",
  "prefer",
] as const;

/** The parts of a request that a retry must repeat unchanged. */
function fingerprintedParts(
  { method, path, rawQuery, headers }: StoredRequest,
  body: Buffer,
): readonly (string | Buffer)[] {
  return [method, path, rawQuery, body, ...RESPONSE_SHAPING_HEADERS.map((name) => String(headers[name] ?? ""))];
}
