import { toHttpError } from "./http-error.ts";
import type { GatewayHandler } from "./request.ts";
import type { GatewayRoutes } from "./router.ts";

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
