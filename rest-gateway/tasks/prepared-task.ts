import type { Caller } from "../../engine/caller/caller.ts";
import type { Ask } from "../../engine/database/as-login.ts";
import type { ApiError } from "../../engine/errors.ts";
import type { GatewayRequest, GatewayResponse } from "../http.ts";

/** A request that was parsed and planned and can be executed. */
export type PreparedTask = {
  /** Runs the work in a transaction as the caller; rolled back if it rejects. */
  transact(work: (ask: Ask) => Promise<GatewayResponse>): Promise<GatewayResponse>;
  /** Executes the request in a transaction and returns the response. */
  execute(ask: Ask): Promise<GatewayResponse>;
};

/** How an interface executes a queued request, with the catalogue and the settings of the time of execution. */
export type TaskHandler = {
  prepareTask(request: GatewayRequest, caller: Caller): Promise<PreparedTask>;
  /** Converts a thrown value to the error that the interface would return. */
  explainError(thrown: unknown, caller: Caller): ApiError;
};

export type AsyncRequest = {
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
