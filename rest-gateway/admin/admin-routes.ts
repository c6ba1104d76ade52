import type { Accounts } from "../../engine/accounts/accounts.ts";
import { readUserId } from "../../engine/accounts/validate-claims.ts";
import type { Catalog } from "../../engine/catalog/catalog.ts";
import type { Config } from "../../engine/config/config.ts";
import type { Database } from "../../engine/database/database.ts";
import type { AsOwner } from "../../engine/database/owner-pool.ts";
import type { Authenticator } from "../../engine/identity/authenticator.ts";
import { type Caller, isAdministrator } from "../../engine/identity/caller.ts";
import type { TokenKeys } from "../../engine/identity/token-keys.ts";
import type { Logger } from "../../engine/output/log.ts";
import type { CsrfProtection } from "../../http/csrf-protection.ts";
import { HttpError } from "../../http/http-error.ts";
import { authenticateCaller, authRequired } from "../auth/authenticate.ts";
import { withNoStore } from "../auth/without-caching.ts";
import type { GatewayHandler } from "../http/request.ts";
import type { GatewayResponse, ResponseBody } from "../http/response.ts";
import {
  type MatchedRequest,
  type MatchedRequestHandler,
  makeRouteFinder,
  type PatternRoutes,
} from "../http/route-patterns.ts";
import { type LogEvent, makeEventLog } from "./event-log.ts";

export const ADMIN_PREFIX = "/admin/v1";

/** What the routes of administrators use. */
export type AdminServices = {
  readonly config: Config;
  readonly asOwner: AsOwner;
  readonly database: Database;
  readonly catalog: () => Catalog;
  readonly authenticator: Authenticator;
  readonly csrf: CsrfProtection;
  readonly keys: TokenKeys;
  /** Null if the database has no accounts. */
  readonly accounts: Accounts | null;
  readonly log: Logger;
};

/** A request of an administrator. */
export type AdminRequest = {
  readonly request: MatchedRequest;
  readonly caller: Caller;
  /** Null at a playground, where nobody signs in. */
  readonly userId: string | null;
  /** To call before each change, so that none is made without a record. */
  readonly logEvent: LogEvent;
};

export type AdminRouteHandler = (
  request: AdminRequest,
) => GatewayResponse<ResponseBody> | Promise<GatewayResponse<ResponseBody>>;

/** Handlers by method and path below the prefix: `DELETE /sessions/{session}`. */
export type AdminRoutes = Readonly<Record<string, AdminRouteHandler>>;

/** `/admin/v1`: what operators may see and do, for administrators. Studio is one of its clients. */
export function adminHandler(services: AdminServices): GatewayHandler {
  const findRoute = makeRouteFinder(forAdministrators({}, services));
  return withNoStore((request) => {
    const { handle, parameters } = findRoute(request.method, request.path.slice(ADMIN_PREFIX.length));
    return handle({ ...request, parameters, query: new URLSearchParams(request.rawQuery) });
  });
}

function forAdministrators(routes: AdminRoutes, services: AdminServices): PatternRoutes {
  const makeLogEvent = makeEventLog(services);
  const protect =
    (handle: AdminRouteHandler): MatchedRequestHandler =>
    async (request) => {
      const caller = await authenticateAdministrator(request, services);
      const userId = readUserId(caller.claims);
      return handle({ request, caller, userId, logEvent: makeLogEvent({ request, userId }) });
    };
  return Object.fromEntries(Object.entries(routes).map(([name, handle]) => [name, protect(handle)]));
}

/** Any credential of an administrator, except a token that another administrator acts with. */
async function authenticateAdministrator(request: MatchedRequest, services: AdminServices): Promise<Caller> {
  const caller = await authenticateCaller(request, services);
  if (caller.kind === "anonymous") throw authRequired();
  if (isAdministrator(caller) && caller.claims.act === undefined) return caller;
  throw new HttpError(403, "PERMISSION_DENIED", "Only administrators may do this.", {
    hint: "Sign in as an administrator, or send a token of one.",
  });
}
