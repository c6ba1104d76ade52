import type { Caller } from "../../engine/caller/caller.ts";
import type { Ask } from "../../engine/database/as-login.ts";
import type { ApiError } from "../../engine/errors.ts";
import type { GatewayRequest, GatewayResponse } from "../http.ts";

/** What a client has asked for, ready to be done. */
export type Undertaking = {
  /** A transaction of the caller's, that is undone when the work rejects. */
  transact(work: (ask: Ask) => Promise<GatewayResponse>): Promise<GatewayResponse>;
  /** Does it, and makes the answer. */
  make(ask: Ask): Promise<GatewayResponse>;
};

/** An interface's way to do later what it was asked for earlier, by the catalogue and the settings of then. */
export type Undertake = {
  undertake(request: GatewayRequest, caller: Caller): Promise<Undertaking>;
  /** Whatever was thrown meanwhile, as the interface would have told it. */
  explain(thrown: unknown, caller: Caller): ApiError;
};

export type Deferred = {
  /** Its query without the key that lets somebody in: it is written down. */
  readonly request: GatewayRequest;
  readonly body: Buffer;
  readonly caller: Caller;
  /** Of the conventional interface, in which the task is told; null for an interface that has none. */
  readonly version: number | null;
};

/** Leaves it for later, and answers with where to look what becomes of it. */
export type Defer = (deferred: Deferred) => Promise<GatewayResponse>;

/** `Prefer: respond-async` (RFC 7240, 4.1) */
export function wantsLater({ headers: { prefer } }: Pick<GatewayRequest, "headers">): boolean {
  return prefer !== undefined && /(^|,)\s*respond-async\s*(,|;|$)/i.test(String(prefer));
}
