import { type LimitCreatedUsers, type LimitSignUps, makeCreatedUsersLimit } from "#accounts";
import { type Caller, callerKey } from "#accounts/identity";
import type { Catalog } from "#catalog";
import type { Config } from "#config";
import {
  makeSharedRateLimit,
  type RateLimitStatus,
  RequestLimit,
  type RequestLimitOptions,
  type SharedRateLimit,
} from "#postgres/rate-limits";
import { clientNetwork, clientSite, LoadShedder } from "#runtime";
import type { PeerWorkers, Supervisor } from "#runtime/concurrency";
import { HttpError, tooManyRequests } from "./http-error.ts";
import type { ClientConnection, LimitExpensiveRequest } from "./request.ts";

type RateLimitHeaders = Readonly<Record<string, string>>;

/** Counts a request once, by its caller or, if there is none, by its address, and refuses it above the rate limit. */
export type Admission = {
  /** Counts the difference from `count`. */
  readonly admit: (caller: Caller | null, count?: number) => void;
  /** The rate-limit headers of the response. */
  readonly headers: () => RateLimitHeaders;
};

/** Health probes are never rejected, and a documentation page loads many files at once. A search reads all pages. */
const UNLIMITED_PATHS = /^\/(health|graphiql|studio|docs(?!\/guide\/search\/?\?))([/?]|$)/;
const NO_HEADERS: RateLimitHeaders = {};
const ONE_HOUR = 3600;
const UNLIMITED: Admission = { admit: () => {}, headers: () => NO_HEADERS };

/** The process has one event loop, so it has one shedder. It runs while a service limits requests. */
const shedder = new LoadShedder();

/** Calls `connection` only if the request is counted. */
export function makeAdmission(url: string, limit: RequestLimit | null, connection: () => ClientConnection): Admission {
  if (limit === null || UNLIMITED_PATHS.test(url)) return UNLIMITED;
  let status: RateLimitStatus | null = null;
  let counted = 0;
  return {
    admit(caller, count = 1) {
      if (count <= counted) return;
      if (counted === 0) shedLoad(caller, connection);
      status = limit.count(
        callerKey(caller?.claims ?? null, () => connection().address),
        count - counted,
      );
      counted = count;
      if (!status.isAdmitted) throw tooManyRequests(status, "requests");
    },
    headers: () => (status ? headersOf(status) : NO_HEADERS),
  };
}

/** Anybody can create anonymous accounts, so their callers count as anonymous too. */
function shedLoad(caller: Caller | null, connection: () => ClientConnection): void {
  if (shedder.lateness === 0) return;
  const key = callerKey(caller?.claims.is_anonymous === true ? null : (caller?.claims ?? null), () => null);
  const isStranger = key.startsWith("address ");
  if (shedder.admits(isStranger ? `address ${clientSite(connection().address)}` : key, isStranger)) return;
  throw new HttpError(503, "SERVICE_UNAVAILABLE", "The service is overloaded; try again soon.", {
    headers: { "Retry-After": "1" },
  });
}

function headersOf({ limit, remaining, endsAt }: RateLimitStatus): RateLimitHeaders {
  return {
    "X-RateLimit-Limit": String(limit),
    "X-RateLimit-Remaining": String(remaining),
    "X-RateLimit-Reset": String(Math.ceil(endsAt / 1000)),
  };
}

/** Limits requests, and reads the client's address only if there is a limit. */
export function makeExpensiveRequestLimit(limitSignUps: LimitSignUps): LimitExpensiveRequest {
  return (request, count) => limitSignUps(request.connection().address, count);
}

/** Null disables the limit. */
export function makeSignUpLimit(limit: SharedRateLimit | null): LimitSignUps {
  if (limit === null) return async () => {};
  return async (address, count = 1) => {
    const seconds = await limit.take(clientNetwork(address), count);
    if (seconds === null) return;
    throw new HttpError(429, "RATE_LIMITED", "Too many requests of this kind from your address.", {
      hint: `Try again in ${seconds} seconds.`,
      headers: { "Retry-After": String(seconds) },
    });
  };
}

/** `limit` is null if RATE_LIMIT is 0. */
export type RateLimits = {
  readonly limit: RequestLimit | null;
  readonly limitSignUps: LimitSignUps;
  /** Null if callers may create any number of rows of users, as on a playground. */
  readonly limitCreatedUsers: LimitCreatedUsers | null;
};

type RateLimitsOptions = Pick<RequestLimitOptions, "asOwner" | "log"> & {
  readonly supervisor: Supervisor;
  readonly config: Config;
  readonly catalog: { readonly current: () => Catalog };
  readonly peers: PeerWorkers;
};

/** Opens the limits of a service according to its settings. */
export function openRateLimits(
  { config, asOwner, catalog, peers, supervisor, log }: RateLimitsOptions,
  opened: AsyncDisposableStack,
): RateLimits {
  if (config.rateLimit === 0) return { limit: null, limitSignUps: makeSignUpLimit(null), limitCreatedUsers: null };
  const limit = new RequestLimit({ limit: config.rateLimit, asOwner, peers, supervisor, log });
  opened.defer(() => limit.close());
  if (config.loadShedding) opened.defer(shedder.start());
  const signUps = { name: "sign-up", points: config.signUpLimit, seconds: ONE_HOUR, asOwner };
  const limitSignUps = makeSignUpLimit(signUps.points > 0 ? makeSharedRateLimit(signUps) : null);
  const isPlayground = config.usersAccess !== "owner";
  const limitCreatedUsers = isPlayground
    ? null
    : makeCreatedUsersLimit({ limitSignUps, catalog: () => catalog.current() });
  return { limit, limitSignUps, limitCreatedUsers };
}
