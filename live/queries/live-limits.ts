import type { Caller } from "#accounts/identity";
import { ApiError } from "#runtime";
import { tooManyOpen } from "./open-of-callers.ts";

export const LIVE_LIMITS = {
  ofCaller: 100,
  all: 10_000,
  /** The limit for callers without an account, who cost nothing: it leaves room for the others. */
  withoutAccount: 5_000,
  resultBytes: 2 ** 20,
  allBytes: 128 * 2 ** 20,
  firstRunMs: 3_000,
  /** How long the result of a query without clients is kept for those that reconnect. */
  keptMs: 30_000,
} as const;

/** How many queries may be open when the caller opens another one. */
export function mostQueriesFor({ kind, claims }: Caller): number {
  const hasAccount = kind === "key" || (typeof claims.sub === "string" && claims.is_anonymous !== true);
  return hasAccount ? LIVE_LIMITS.all : LIVE_LIMITS.withoutAccount;
}

type CheckedQuery = {
  readonly source: { readonly outlivesRequest?: boolean };
  readonly dependencies: { readonly obstacles: readonly string[]; readonly readsRequest: boolean };
};

export function refuseUnfit(
  { text }: { readonly text: string },
  { source, dependencies }: CheckedQuery,
  milliseconds: number,
): void {
  const obstacles = [...dependencies.obstacles];
  if (source.outlivesRequest && dependencies.readsRequest) obstacles.push("it depends on the headers of a request");
  if (obstacles.length > 0) throw notLive(obstacles);
  if (text.length > LIVE_LIMITS.resultBytes) throw resultTooLarge(LIVE_LIMITS.resultBytes);
  if (milliseconds > LIVE_LIMITS.firstRunMs) throw tooSlow(LIVE_LIMITS.firstRunMs);
}

/** The error of a query that cannot be kept up to date. */
function notLive(obstacles: readonly string[]): ApiError {
  const [first] = obstacles;
  return new ApiError("invalid", "NOT_LIVE", `This query cannot be live: ${first}.`, {
    details: obstacles.length > 1 ? obstacles.join("; ") : null,
    hint: "Read it again when you need to, or change what the message names.",
  });
}

export function tooManyQueries(max: number, whose: "a caller" | "the service"): ApiError {
  const message =
    whose === "a caller"
      ? `A caller can have ${max} live queries open.`
      : "The service has too many live queries open.";
  return tooManyOpen(message);
}

export function resultTooLarge(bytes: number): ApiError {
  return new ApiError("invalid", "NOT_LIVE", `This query cannot be live: its result is larger than ${bytes} bytes.`, {
    hint: "Select fewer columns or rows, for example with limit.",
  });
}

function tooSlow(milliseconds: number): ApiError {
  return new ApiError("invalid", "NOT_LIVE", `This query cannot be live: it takes longer than ${milliseconds} ms.`, {
    hint: "It would run again after each change. Add an index, or select fewer rows.",
  });
}
