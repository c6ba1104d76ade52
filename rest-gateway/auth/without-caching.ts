import { toApiError } from "../../engine/errors.ts";
import type { Routes } from "../gateway.ts";
import type { Handler } from "../http.ts";

const NO_STORE = { "Cache-Control": "no-store" };

/** Adds `Cache-Control: no-store` to all responses, errors included. */
export function withoutCaching(routes: Routes): Routes {
  return mapValues(routes, (methods) => mapValues(methods, withNoStore));
}

function withNoStore(handle: Handler): Handler {
  return async (request) => {
    try {
      const answer = await handle(request);
      return { ...answer, headers: { ...answer.headers, ...NO_STORE } };
    } catch (error) {
      throw toApiError(error).withHeaders(NO_STORE);
    }
  };
}

function mapValues<From, To>(record: Readonly<Record<string, From>>, map: (value: From) => To): Record<string, To> {
  return Object.fromEntries(Object.entries(record).map(([name, value]) => [name, map(value)]));
}
