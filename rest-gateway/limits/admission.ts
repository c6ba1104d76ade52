import type { Caller } from "../../engine/caller/caller.ts";
import { callerKey } from "../../engine/caller/caller-key.ts";
import { ApiError } from "../../engine/errors.ts";
import type { RateLimitStatus, RequestLimit } from "../../engine/limits/request-limit.ts";
import type { Connection } from "../http.ts";

type Headers = Readonly<Record<string, string>>;

/** Counts a request once, by its caller or, if there is none, by its address, and refuses it above the rate limit. */
export type Admission = {
  readonly admit: (caller: Caller | null) => void;
  /** The rate-limit headers of the response. */
  readonly headers: () => Headers;
};

/** Health probes must never be refused, and a documentation page loads many files at once. */
const UNLIMITED_PATHS = /^\/(health|graphiql|docs)([/?]|$)/;
const NO_HEADERS: Headers = {};
const UNLIMITED: Admission = { admit: () => {}, headers: () => NO_HEADERS };

/** `connection` is only called when a request is counted. */
export function makeAdmission(url: string, limit: RequestLimit | null, connection: () => Connection): Admission {
  if (limit === null || UNLIMITED_PATHS.test(url)) return UNLIMITED;
  let standing: RateLimitStatus | null = null;
  return {
    admit(caller) {
      if (standing) return;
      standing = limit.count(callerKey(caller?.claims ?? null, () => connection().address));
      if (!standing.isAdmitted) throw tooManyRequests(standing);
    },
    headers: () => (standing ? headersOf(standing) : NO_HEADERS),
  };
}

function headersOf({ limit, remaining, endsAt }: RateLimitStatus): Headers {
  return {
    "X-RateLimit-Limit": String(limit),
    "X-RateLimit-Remaining": String(remaining),
    "X-RateLimit-Reset": String(Math.ceil(endsAt / 1000)),
  };
}

function tooManyRequests({ limit, endsAt }: RateLimitStatus): ApiError {
  const seconds = Math.max(1, Math.ceil((endsAt - Date.now()) / 1000));
  return new ApiError(429, "RATE_LIMITED", `More than ${limit} requests in one minute.`, {
    hint: `Try again in ${seconds} seconds.`,
    headers: { "Retry-After": String(seconds) },
  });
}
