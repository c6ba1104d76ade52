import { setTimeout as sleep } from "node:timers/promises";
import { type Abort, toSignal } from "../../engine/abort.ts";
import { type Ask, asLogin } from "../../engine/database/as-login.ts";
import { answerTooLarge } from "../../engine/database/faults.ts";
import { delayBefore } from "../../engine/delay-before.ts";
import { ApiError } from "../../engine/errors.ts";
import type { GatewayResponse } from "../http.ts";
import { claimAnswer, keepAnswer } from "./kept-answers.ts";
import { fingerprintOf, placeOf } from "./seal.ts";

export type Change = {
  readonly key: string;
  /** Which part of the service is asked; a key means something else to each. */
  readonly scope: string;
  /** Who sends the key. Nobody else is told the answer. */
  readonly identity: string;
  /** All that makes it the same request. */
  readonly request: readonly (string | Buffer)[];
  readonly lifetimeSeconds: number;
  /** Aborted when nobody waits for the answer any more. A change that has begun is finished all the same. */
  readonly signal: Abort;
  /** A transaction that is undone when the work rejects. */
  transact(work: (ask: Ask) => Promise<GatewayResponse>): Promise<GatewayResponse>;
  /** Makes the change, and the answer to be kept with it. */
  make(ask: Ask): Promise<GatewayResponse>;
};

type OnceOptions = {
  /** For how long to wait for another attempt that is under way; 0 is no limit. */
  readonly waitMilliseconds: number;
  /** The largest body that is kept. */
  readonly mostBytes: number;
  readonly onReplay?: () => void;
};

/**
 * Makes a change once, however often it is asked for: the answer is committed with the change, and told again to whoever
 * asks the same under the same key. What fails is undone and keeps nothing, so the next attempt finds the key unused.
 */
export function makeOnce({ waitMilliseconds, mostBytes, onReplay = () => {} }: OnceOptions) {
  return async (change: Change): Promise<GatewayResponse> => {
    const place = placeOf(change.scope, change.identity, change.key);
    const fingerprint = fingerprintOf(change.request);
    const deadline = performance.now() + (waitMilliseconds || Number.POSITIVE_INFINITY);

    const attempt = async (ask: Ask): Promise<GatewayResponse> => {
      const claim = await claimAnswer(asLogin(ask), place);
      if (claim === "taken") throw underWay();
      if (claim !== "free") {
        const response = replayed(claim.response, claim.fingerprint === fingerprint);
        onReplay();
        return response;
      }
      const response = await change.make(ask);
      if (response.body !== null && Buffer.byteLength(response.body) > mostBytes) throw answerTooLarge(mostBytes, LESS);
      const kept = await keepAnswer(asLogin(ask), place, { fingerprint, response }, change.lifetimeSeconds);
      if (!kept) throw underWay();
      return response;
    };

    let left: AbortSignal | undefined;
    for (let attempts = 1; ; attempts++) {
      try {
        return await change.transact(attempt);
      } catch (error) {
        if (!isUnsettled(error) || performance.now() > deadline) throw error;
        // No connection is held meanwhile: a crowd that waits for one slow change keeps nobody else from writing.
        left ??= toSignal(change.signal);
        const pause = sleep(delayBefore(attempts), true, { signal: left });
        const isStillThere = await pause.catch(() => false);
        if (!isStillThere) throw error;
      }
    }
  };
}

/** It would have to be kept. */
const LESS = "Ask for less of it, with Prefer: return=minimal or select.";
const UNDER_WAY = "IDEMPOTENCY_KEY_IN_USE";
/** transaction_resolution_unknown: if it was committed, the next attempt finds its answer. */
const OUTCOME_UNKNOWN = "08007";

function isUnsettled(error: unknown): boolean {
  return error instanceof ApiError && (error.code === UNDER_WAY || error.code === OUTCOME_UNKNOWN);
}

function replayed(response: GatewayResponse, isSameRequest: boolean): GatewayResponse {
  if (!isSameRequest) throw keyReused();
  return { ...response, headers: { ...response.headers, "Idempotent-Replayed": "true" } };
}

export function keyReused(): ApiError {
  return new ApiError(422, "IDEMPOTENCY_KEY_REUSED", "This Idempotency-Key was used for another request.", {
    details: "Nothing was changed. Method, address, body and the headers that shape the answer must be the same.",
    hint: "Make up a new key for each change, and send it with every attempt at that change.",
  });
}

function underWay(): ApiError {
  return new ApiError(409, UNDER_WAY, "A request with this Idempotency-Key is still being processed.", {
    hint: "Send it again later: it is then answered as the first one was.",
    headers: { "Retry-After": "1" },
  });
}
