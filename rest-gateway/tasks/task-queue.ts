import { type Caller, isAdministrator, quotaKey } from "#accounts/identity";
import { type GatewayRequest, type GatewayResponse, jsonResponse, publicBasePath } from "#http";
import type { AsOwner } from "#postgres/database";
import {
  deriveStorageKey,
  fingerprintParts,
  idempotencyScopeOf,
  keyReused,
  readIdempotencyKey,
  type StorageKey,
} from "../idempotency/idempotent-runner.ts";
import { type StoredRequest, toStoredRequest } from "./stored-request.ts";

/** The path of queued requests, unless a table has this name. */
export const TASKS_COLLECTION = "tasks";

type QueueTaskOptions = {
  readonly asOwner: AsOwner;
  /** The default version of the resource interface, for the address of a task from an interface without versions. */
  readonly defaultVersion: () => Promise<number>;
  readonly publicUrl: string | null;
  readonly anonRole: () => string;
};

type AsyncRequest = {
  /** The request. Its query string must not contain an API key, because it is stored. */
  readonly request: GatewayRequest;
  readonly body: Buffer;
  readonly caller: Caller;
  /** The version of the resource interface, for the task's address; null for an interface without versions. */
  readonly version: number | null;
};

/** Queues a request as a task and returns the 202 response. */
export type QueueTask = (deferred: AsyncRequest) => Promise<GatewayResponse>;

/** Returns true for `Prefer: respond-async` (RFC 7240, section 4.1). */
export function prefersAsync({ headers: { prefer } }: Pick<GatewayRequest, "headers">): boolean {
  return prefer !== undefined && /(^|,)\s*respond-async\s*(,|;|$)/i.test(String(prefer));
}

type QueuedRow = { readonly id: string; readonly estimate: number };
type StatusRow = { readonly status: string; readonly fingerprint: string | null };

const QUEUE_TASK = "select id, estimate from content_service.queue_task($1, $2, $3, $4, $5, $6, $7, $8)";

/** This statement is separate, so that it sees a task that a concurrent request with the same key has queued. */
const FIND_TASK =
  "select status, caller operator(pg_catalog.->>) 'fingerprint' as fingerprint from content_service.tasks where id = $1";

/** Queues a request as a task and answers 202 with the task's address. */
export function makeQueueTask({ asOwner, defaultVersion, publicUrl, anonRole }: QueueTaskOptions): QueueTask {
  const statusOf = async ({ id, fingerprint }: RetryIdentity): Promise<string> => {
    const { rows } = await asOwner((client) => client.query<StatusRow>(FIND_TASK, [id]));
    const { status = "queued", fingerprint: storedFingerprint = null } = rows[0] ?? {};
    if (storedFingerprint !== null && storedFingerprint !== fingerprint) throw keyReused();
    return status;
  };

  return async ({ request, body, caller, version }) => {
    const owner = taskOwnerOf(caller);
    const key = readIdempotencyKey(request.headers);
    const stored = toStoredRequest(request);
    const retry =
      key === null ? null : retryIdentityOf(deriveStorageKey("task", idempotencyScopeOf(caller), key), stored, body);
    const values = [
      retry?.id ?? null,
      owner,
      `${request.method} ${request.path}`,
      serializeCaller(caller, retry),
      JSON.stringify(stored),
      body,
      quotaKey(caller, () => request.connection().address),
      caller.role === anonRole() || caller.claims.is_anonymous === true ? "anonymous" : "caller",
    ];
    const { rows } = await asOwner((client) => client.query<QueuedRow>(QUEUE_TASK, values));
    const { id, estimate } = rows[0]!;
    const status = retry ? await statusOf(retry) : "queued";
    const statusVersion = version ?? (await defaultVersion());
    const location = `${publicBasePath(publicUrl)}/api/v${statusVersion}/tasks/${id}`;
    return jsonResponse(
      202,
      { taskId: id, status, estimate },
      { Location: location, "Preference-Applied": "respond-async", "Cache-Control": "no-store" },
    );
  };
}

/** Serializes the current claims, because the token may expire before the task starts. The fingerprint is stored as long as the task. */
function serializeCaller({ kind, role, claimsText }: Caller, retry: RetryIdentity | null): string {
  const others = JSON.stringify({ kind, role, ...(retry && { fingerprint: retry.fingerprint }) });
  return `{"claims":${claimsText},${others.slice(1)}`;
}

/** The identity of a task: a repeated request with the same Idempotency-Key is the same task. The fingerprint reveals nothing without the key. */
type RetryIdentity = { readonly id: string; readonly fingerprint: string };

function retryIdentityOf({ id, secret }: StorageKey, request: StoredRequest, body: Buffer): RetryIdentity {
  return { id: id.slice(0, 32), fingerprint: fingerprintParts([secret, ...retryParts(request, body)]) };
}

const RESPONSE_SHAPING_HEADERS = [
  "content-type",
  "content-profile",
  "accept",
  "accept-version",
  "x-api-version",
  "prefer",
] as const;

/** Returns the parts of a request that a retry must repeat unchanged. */
function retryParts({ method, path, rawQuery, headers }: StoredRequest, body: Buffer): readonly (string | Buffer)[] {
  return [method, path, rawQuery, body, ...RESPONSE_SHAPING_HEADERS.map((name) => String(headers[name] ?? ""))];
}

/**
 * Returns the owner of a task: the user, with any credential. Callers without a user id, such as anonymous ones, share one owner
 * per role; the task's id, which is as hard to guess as their Idempotency-Key, protects it from the others.
 */
function taskOwnerOf({ role, claims: { sub } }: Caller): string {
  return typeof sub === "string" && sub !== "" ? `user ${sub}` : `role ${role}`;
}

/** Returns the owner whose tasks the caller may see; null (all) for an administrator. */
export function visibleTaskOwnerOf(caller: Caller): string | null {
  return isAdministrator(caller) ? null : taskOwnerOf(caller);
}
