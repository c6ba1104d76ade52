import type { Caller } from "../../engine/caller/caller.ts";
import type { Config } from "../../engine/config/config.ts";
import type { Ask } from "../../engine/database/as-login.ts";
import type { Counts } from "../../engine/metrics/counts.ts";
import type { GatewayRequest, GatewayResponse } from "../http.ts";
import { idempotencyScopeOf } from "./idempotency-scope.ts";
import { type IdempotentChange, makeRunOnce } from "./run-once.ts";

export type KeyedRequest = Pick<IdempotentChange, "key" | "scope" | "make"> & {
  readonly caller: Caller;
  readonly request: Pick<GatewayRequest, "headers" | "signal">;
  /** The parts that a retry must repeat unchanged, besides the headers in `shaping`. */
  readonly parts: readonly (string | Buffer)[];
  /** Names of the headers that change the response or the effect of the request. */
  readonly shaping: readonly string[];
};

export type IdempotentRunner = {
  run(change: KeyedRequest, transact: IdempotentChange["transact"]): Promise<GatewayResponse>;
  /** In a transaction that has begun: if another attempt is running, this one is refused instead of waiting. */
  runInTransaction(change: KeyedRequest, ask: Ask): Promise<GatewayResponse>;
};

const RETENTION_SECONDS = 86_400;
const NO_WAITING = AbortSignal.abort();

/** Executes requests with an Idempotency-Key at most once, with the limits of this deployment. */
export function makeIdempotentRunner(
  { statementTimeout, maxBodyBytes }: Pick<Config, "statementTimeout" | "maxBodyBytes">,
  counts: Counts,
): IdempotentRunner {
  const runOnce = makeRunOnce({
    waitMilliseconds: statementTimeout * 1000,
    maxBytes: maxBodyBytes,
    onReplay: () => counts.replays++,
  });
  const toChange = ({ caller, request: { headers, signal }, parts, shaping, ...change }: KeyedRequest) => ({
    ...change,
    identity: idempotencyScopeOf(caller),
    request: [...parts, ...shaping.map((name) => String(headers[name] ?? ""))],
    lifetimeSeconds: RETENTION_SECONDS,
    signal,
  });
  return {
    run: (change, transact) => runOnce({ ...toChange(change), transact }),
    runInTransaction: (change, ask) =>
      runOnce({ ...toChange(change), transact: (work) => work(ask), signal: NO_WAITING }),
  };
}
