import type { IncomingHttpHeaders } from "node:http";
import { LightAbortSignal } from "../../engine/concurrency/abort.ts";
import type { RunStatement } from "../../engine/database/transaction.ts";
import { type Caller, isAdministrator } from "../../engine/identity/caller.ts";
import { CREDENTIAL_HEADERS } from "../../http/credentials.ts";
import { CSRF_TOKEN_HEADER } from "../../http/csrf-protection.ts";
import type { HttpError } from "../../http/http-error.ts";
import { type GatewayRequest, NO_STAGES } from "../http/request.ts";
import type { GatewayResponse } from "../http/response.ts";

/** Credentials (the caller is stored instead) and headers that make the response conditional. */
const UNSTORED_HEADERS: readonly string[] = [
  ...CREDENTIAL_HEADERS,
  CSRF_TOKEN_HEADER,
  "if-none-match",
  "if-modified-since",
];

/** A request that was parsed and planned and can be executed. */
export type PreparedTask = {
  /** Runs the work in a transaction as the caller; rolled back if it rejects. */
  transact(work: (runStatement: RunStatement) => Promise<GatewayResponse>): Promise<GatewayResponse>;
  /** Executes the request in a transaction and returns the response. */
  execute(runStatement: RunStatement): Promise<GatewayResponse>;
};

/** How an interface executes a queued request, with the catalogue and the settings of the time of execution. */
export type TaskHandler = {
  prepareTask(request: GatewayRequest, caller: Caller): Promise<PreparedTask>;
  /** Converts a thrown value to the error that the interface would return. */
  explainError(thrown: unknown, caller: Caller): HttpError;
};

type AsyncRequest = {
  /** Its query string must not contain an API key, because it is stored. */
  readonly request: GatewayRequest;
  readonly body: Buffer;
  readonly caller: Caller;
  /** The version of the resource interface, for the task's address; null for an interface without versions. */
  readonly version: number | null;
};

/** Queues a request as a task and returns the 202 response. */
export type QueueTask = (deferred: AsyncRequest) => Promise<GatewayResponse>;

/** `Prefer: respond-async` (RFC 7240, section 4.1) */
export function prefersAsync({ headers: { prefer } }: Pick<GatewayRequest, "headers">): boolean {
  return prefer !== undefined && /(^|,)\s*respond-async\s*(,|;|$)/i.test(String(prefer));
}

/** The parts of a request that are stored to answer it later. */
export type StoredRequest = Pick<GatewayRequest, "id" | "method" | "path" | "rawQuery" | "headers">;

export function toStoredRequest({ id, method, path, rawQuery, headers }: GatewayRequest): StoredRequest {
  const kept = Object.entries(headers).filter(([name]) => !UNSTORED_HEADERS.includes(name));
  return { id, method, path, rawQuery, headers: Object.fromEntries(kept) };
}

/** Restores a stored request for its handler. No client is connected, so headers and callbacks have no effect. */
export function toGatewayRequest({ headers, ...kept }: StoredRequest, body: Buffer): GatewayRequest {
  return {
    ...kept,
    headers: withoutRespondAsync(headers),
    stages: NO_STAGES,
    signal: new LightAbortSignal(),
    connection: () => ({ address: null, isSecure: false }),
    admit: () => {},
    addResponseHeaders: () => {},
    // The body's size was checked when the request arrived.
    readBody: () => Promise.resolve(body),
    holdMemory: () => {},
    whenSent: () => {},
  };
}

function withoutRespondAsync({ prefer, ...others }: IncomingHttpHeaders): IncomingHttpHeaders {
  const rest = String(prefer ?? "")
    .split(",")
    .map((preference) => preference.trim())
    .filter((preference) => preference !== "" && !/^respond-async\b/i.test(preference));
  return rest.length > 0 ? { ...others, prefer: rest.join(", ") } : others;
}

/**
 * The owner of a task: the user, with any credential. Callers without a user id, such as anonymous ones, share one owner
 * per role; the task's unguessable id protects it from the others.
 */
export function taskOwnerOf({ role, claims: { sub } }: Caller): string {
  return typeof sub === "string" && sub !== "" ? `user ${sub}` : `role ${role}`;
}

/** The owner whose tasks the caller may see; null (all) for an administrator. */
export function visibleTaskOwnerOf(caller: Caller): string | null {
  return isAdministrator(caller) ? null : taskOwnerOf(caller);
}
