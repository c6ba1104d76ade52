import { setTimeout as sleep } from "node:timers/promises";
import { type Abort, toSignal } from "../../engine/abort.ts";
import { type Ask, asLogin } from "../../engine/database/as-login.ts";
import { answerTooLarge } from "../../engine/database/faults.ts";
import { delayBefore } from "../../engine/delay-before.ts";
import { ApiError } from "../../engine/errors.ts";
import type { GatewayResponse } from "../http.ts";
import { claimKey, storeResponse } from "./response-store.ts";
import { deriveStorageKey, fingerprintParts } from "./stored-response.ts";

export type IdempotentChange = {
  readonly key: string;
  /** The part of the service; each has its own keys. */
  readonly scope: string;
  /** The caller's scope; the stored response is returned to nobody else. */
  readonly identity: string;
  /** The parts of the request that a retry must repeat unchanged. */
  readonly request: readonly (string | Buffer)[];
  readonly lifetimeSeconds: number;
  /** Aborted when the client disconnects. A change that has begun is finished anyway. */
  readonly signal: Abort;
  /** Runs the work in a transaction, which is rolled back if it rejects. */
  transact(work: (ask: Ask) => Promise<GatewayResponse>): Promise<GatewayResponse>;
  /** Makes the change and returns the response to store with it. */
  make(ask: Ask): Promise<GatewayResponse>;
};

type RunOnceOptions = {
  /** How long to wait for a concurrent attempt; 0 means no limit. */
  readonly waitMilliseconds: number;
  /** The largest response body that is stored. */
  readonly maxBytes: number;
  readonly onReplay?: () => void;
};

/**
 * Makes a change at most once per key: the response is committed with the change and returned for each retry. A failed
 * attempt is rolled back and stores nothing, so the next one finds the key unused.
 */
export function makeRunOnce({ waitMilliseconds, maxBytes: mostBytes, onReplay = () => {} }: RunOnceOptions) {
  return async (change: IdempotentChange): Promise<GatewayResponse> => {
    const storageKey = deriveStorageKey(change.scope, change.identity, change.key);
    const fingerprint = fingerprintParts(change.request);
    const deadline = performance.now() + (waitMilliseconds || Number.POSITIVE_INFINITY);

    const attempt = async (ask: Ask): Promise<GatewayResponse> => {
      const claim = await claimKey(asLogin(ask), storageKey);
      if (claim === "taken") throw keyInUse();
      if (claim !== "free") {
        const response = toReplay(claim.response, claim.fingerprint === fingerprint);
        onReplay();
        return response;
      }
      const response = await change.make(ask);
      if (response.body !== null && Buffer.byteLength(response.body) > mostBytes)
        throw answerTooLarge(mostBytes, TOO_LARGE_HINT);
      const kept = await storeResponse(asLogin(ask), storageKey, { fingerprint, response }, change.lifetimeSeconds);
      if (!kept) throw keyInUse();
      return response;
    };

    let clientGone: AbortSignal | undefined;
    for (let attempts = 1; ; attempts++) {
      try {
        return await change.transact(attempt);
      } catch (error) {
        if (!isRetryable(error) || performance.now() > deadline) throw error;
        // Waits without a connection: many retries of one slow change must not block other writers.
        clientGone ??= toSignal(change.signal);
        const pause = sleep(delayBefore(attempts), true, { signal: clientGone });
        const isStillThere = await pause.catch(() => false);
        if (!isStillThere) throw error;
      }
    }
  };
}

/** The response is too large to store. */
const TOO_LARGE_HINT = "Ask for less of it, with Prefer: return=minimal or select.";
const KEY_IN_USE = "IDEMPOTENCY_KEY_IN_USE";
/** transaction_resolution_unknown: if it was committed, the next attempt finds the stored response. */
const OUTCOME_UNKNOWN = "08007";

function isRetryable(error: unknown): boolean {
  return error instanceof ApiError && (error.code === KEY_IN_USE || error.code === OUTCOME_UNKNOWN);
}

function toReplay(response: GatewayResponse, isSameRequest: boolean): GatewayResponse {
  if (!isSameRequest) throw keyReused();
  return { ...response, headers: { ...response.headers, "Idempotent-Replayed": "true" } };
}

export function keyReused(): ApiError {
  return new ApiError(422, "IDEMPOTENCY_KEY_REUSED", "This Idempotency-Key was used for another request.", {
    details: "Nothing was changed. Method, address, body and the headers that shape the answer must be the same.",
    hint: "Generate a new key for each change, and send the same key with each retry of that change.",
  });
}

function keyInUse(): ApiError {
  return new ApiError(409, KEY_IN_USE, "A request with this Idempotency-Key is still being processed.", {
    hint: "Retry later: the response is then the same as the first one.",
    headers: { "Retry-After": "1" },
  });
}
