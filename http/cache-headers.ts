import { memoizeRecent } from "#runtime";
import { CREDENTIAL_VARY } from "./credentials.ts";
import { toHttpError } from "./http-error.ts";
import type { GatewayHandler, GatewayRoutes } from "./request.ts";
import { type GatewayResponse, mergeVary } from "./response.ts";

type Headers = GatewayResponse["headers"];

type CacheHeaders = {
  readonly "Cache-Control": string | readonly string[];
  readonly Vary?: string;
};

/** There are few combinations, except for those that functions set. */
const MAX_COMBINATIONS = 256;
const SEPARATOR = "\n";

const mergeLines = memoizeRecent(MAX_COMBINATIONS, (lines: string) => mergeVary(...lines.split(SEPARATOR)));

/**
 * Returns `Cache-Control` and `Vary` of a response. Without them, shared caches store rows and serve them to everybody: most
 * ignore that a request had credentials unless the response says so. A response may name another `Cache-Control`; only
 * `public` means that it is the same for all callers.
 */
export function sharedCacheHeaders(headers: Headers, ...otherVary: readonly (string | undefined)[]): CacheHeaders {
  const cacheControl = headers["Cache-Control"] ?? "private, no-cache";
  const perCaller = isPublic(cacheControl) ? "" : CREDENTIAL_VARY;
  const vary = mergeLines(
    [String(headers.Vary ?? ""), ...otherVary.map((value) => value ?? ""), perCaller].join(SEPARATOR),
  );
  return vary === "" ? { "Cache-Control": cacheControl } : { "Cache-Control": cacheControl, Vary: vary };
}

function isPublic(cacheControl: string | readonly string[]): boolean {
  return /(^|,)\s*public\s*(,|$)/i.test(String(cacheControl));
}

const NO_STORE = { "Cache-Control": "no-store" };

/** Adds `Cache-Control: no-store` to all responses, errors included. */
export function withoutCaching(routes: GatewayRoutes): GatewayRoutes {
  return mapValues(routes, (methods) => mapValues(methods, withNoStore));
}

/** Adds `Cache-Control: no-store` to the responses of a handler, errors included. */
export function withNoStore(handle: GatewayHandler): GatewayHandler {
  return async (request) => {
    try {
      const response = await handle(request);
      return { ...response, headers: { ...response.headers, ...NO_STORE } };
    } catch (error) {
      throw toHttpError(error).withHeaders(NO_STORE);
    }
  };
}

function mapValues<From, To>(record: Readonly<Record<string, From>>, map: (value: From) => To): Record<string, To> {
  return Object.fromEntries(Object.entries(record).map(([name, value]) => [name, map(value)]));
}
