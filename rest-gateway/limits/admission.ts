import type { Caller } from "../../engine/caller/caller.ts";
import { callerKey } from "../../engine/caller/caller-key.ts";
import { ApiError } from "../../engine/errors.ts";
import type { RequestLimit, Standing } from "../../engine/limits/request-limit.ts";
import type { Connection } from "../http.ts";

type Headers = Readonly<Record<string, string>>;

/** Whether a request may go on: each is counted once, as the caller's or, where nobody knows who that is, the address's. */
export type Admission = {
  readonly admit: (caller: Caller | null) => void;
  /** What the answer says of it. */
  readonly standing: () => Headers;
};

/** Probes must not be turned away, and what a page is made of comes many at a time. */
const UNLIMITED = /^\/(health|graphiql|docs)([/?]|$)/;
const NOTHING: Headers = {};
const FREE: Admission = { admit: () => {}, standing: () => NOTHING };

/** To what is asked for at this address; where that came from is looked at only where it counts. */
export function admissionTo(url: string, limit: RequestLimit | null, connection: () => Connection): Admission {
  if (limit === null || UNLIMITED.test(url)) return FREE;
  let standing: Standing | null = null;
  return {
    admit(caller) {
      if (standing) return;
      standing = limit.count(callerKey(caller?.claims ?? null, () => connection().address));
      if (!standing.isAdmitted) throw tooManyRequests(standing);
    },
    standing: () => (standing ? headersOf(standing) : NOTHING),
  };
}

function headersOf({ limit, remaining, endsAt }: Standing): Headers {
  return {
    "X-RateLimit-Limit": String(limit),
    "X-RateLimit-Remaining": String(remaining),
    "X-RateLimit-Reset": String(Math.ceil(endsAt / 1000)),
  };
}

function tooManyRequests({ limit, endsAt }: Standing): ApiError {
  const seconds = Math.max(1, Math.ceil((endsAt - Date.now()) / 1000));
  return new ApiError(429, "RATE_LIMITED", `More than ${limit} requests in a minute.`, {
    hint: `Come back in ${seconds} seconds.`,
    headers: { "Retry-After": String(seconds) },
  });
}
