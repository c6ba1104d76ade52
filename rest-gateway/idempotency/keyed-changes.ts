import type { Caller } from "../../engine/caller/caller.ts";
import type { Config } from "../../engine/config/config.ts";
import type { Ask } from "../../engine/database/as-login.ts";
import type { Counts } from "../../engine/metrics/counts.ts";
import type { GatewayRequest, GatewayResponse } from "../http.ts";
import { identityOf } from "./identity.ts";
import { type Change, makeOnce } from "./once.ts";

export type KeyedChange = Pick<Change, "key" | "scope" | "make"> & {
  readonly caller: Caller;
  readonly request: Pick<GatewayRequest, "headers" | "signal">;
  /** What makes it the same request, beside the headers by which another answer would be asked for, or another change made. */
  readonly parts: readonly (string | Buffer)[];
  readonly shaping: readonly string[];
};

export type KeyedChanges = {
  once(change: KeyedChange, transact: Change["transact"]): Promise<GatewayResponse>;
  /** In a transaction that has begun: where another attempt is under way, it is refused instead of waiting. */
  onceWithin(change: KeyedChange, ask: Ask): Promise<GatewayResponse>;
};

const ONE_DAY = 86_400;
const NOBODY_WAITS = AbortSignal.abort();

/** Makes changes that a client has given a key, each once, under the limits of this deployment. */
export function makeKeyedChanges(
  { statementTimeout, maxBodyBytes }: Pick<Config, "statementTimeout" | "maxBodyBytes">,
  counts: Counts,
): KeyedChanges {
  const once = makeOnce({
    waitMilliseconds: statementTimeout * 1000,
    mostBytes: maxBodyBytes,
    onReplay: () => counts.replays++,
  });
  const toChange = ({ caller, request: { headers, signal }, parts, shaping, ...change }: KeyedChange) => ({
    ...change,
    identity: identityOf(caller),
    request: [...parts, ...shaping.map((name) => String(headers[name] ?? ""))],
    lifetimeSeconds: ONE_DAY,
    signal,
  });
  return {
    once: (change, transact) => once({ ...toChange(change), transact }),
    onceWithin: (change, ask) => once({ ...toChange(change), transact: (work) => work(ask), signal: NOBODY_WAITS }),
  };
}
