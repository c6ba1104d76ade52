import type { Caller } from "../../engine/caller/caller.ts";
import type { Config } from "../../engine/config/config.ts";
import type { Counts } from "../../engine/metrics/counts.ts";
import type { GatewayRequest, GatewayResponse } from "../http.ts";
import { identityOf } from "./identity.ts";
import { type Change, makeOnce } from "./once.ts";

export type KeyedChange = Pick<Change, "key" | "scope" | "transact" | "make"> & {
  readonly caller: Caller;
  readonly request: Pick<GatewayRequest, "headers" | "signal">;
  /** What makes it the same request, beside the headers by which another answer would be asked for, or another change made. */
  readonly parts: readonly (string | Buffer)[];
  readonly shaping: readonly string[];
};

const ONE_DAY = 86_400;

/** Makes changes that a client has given a key, each once, under the limits of this deployment. */
export function makeKeyedChanges(
  { statementTimeout, maxBodyBytes }: Pick<Config, "statementTimeout" | "maxBodyBytes">,
  counts: Counts,
): (change: KeyedChange) => Promise<GatewayResponse> {
  const once = makeOnce({
    waitMilliseconds: statementTimeout * 1000,
    mostBytes: maxBodyBytes,
    onReplay: () => counts.replays++,
  });
  return ({ caller, request: { headers, signal }, parts, shaping, ...change }) =>
    once({
      ...change,
      identity: identityOf(caller),
      request: [...parts, ...shaping.map((name) => String(headers[name] ?? ""))],
      lifetimeSeconds: ONE_DAY,
      signal,
    });
}
