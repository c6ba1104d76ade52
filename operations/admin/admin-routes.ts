import { readUserId } from "#accounts";
import { type Caller, isActedAs, isAdministrator } from "#accounts/identity";
import {
  type GatewayHandler,
  type MatchedRequest,
  type MatchedRequestHandler,
  makeRouteFinder,
  type PatternRoutes,
  withNoStore,
} from "#http";
import { authenticateCaller, authRequired, requireSecondFactor } from "#rest-gateway/authenticate";
import { accessRoutes } from "./access-routes.ts";
import { permissionDenied } from "./admin-errors.ts";
import type { AdminRouteHandler, AdminRoutes, AdminServices } from "./admin-request.ts";
import { backfillRoutes } from "./backfill-routes.ts";
import { branchRoutes } from "./branch-routes.ts";
import { catalogRoutes } from "./catalog-routes.ts";
import { changesRoutes } from "./changes-routes.ts";
import { emailRoutes } from "./email-routes.ts";
import { makeEventLog } from "./event-log.ts";
import { lostRowsRoutes } from "./lost-rows-routes.ts";
import { migrationRoutes } from "./migration-routes.ts";
import { peopleRoutes } from "./people-routes.ts";
import { queryRoutes } from "./query-routes.ts";
import { runningRoutes } from "./running-routes.ts";
import { sessionRoutes, viewAsRoutes } from "./session-routes.ts";
import { sqlRoutes } from "./sql-routes.ts";
import { viewRoutes } from "./view-routes.ts";

export const ADMIN_PREFIX = "/admin/v1";

/** `/admin/v1`: the operations of administrators. Studio is one of its clients. */
export function adminHandler(services: AdminServices): GatewayHandler {
  const findRoute = makeRouteFinder({
    ...sessionRoutes(services),
    ...forAdministrators(administratorRoutes(services), services),
  });
  return withNoStore((request) => {
    const { handle, parameters } = findRoute(request.method, request.path.slice(ADMIN_PREFIX.length));
    return handle({ ...request, parameters, query: new URLSearchParams(request.rawQuery) });
  });
}

export function administratorRoutes(services: AdminServices): AdminRoutes {
  return {
    ...viewAsRoutes(services),
    ...accessRoutes(services),
    ...backfillRoutes(services),
    ...branchRoutes(services),
    ...catalogRoutes(services),
    ...changesRoutes(services),
    ...emailRoutes(services),
    ...lostRowsRoutes(services),
    ...migrationRoutes(services),
    ...peopleRoutes(services),
    ...queryRoutes(services),
    ...runningRoutes(services),
    ...sqlRoutes(services),
    ...viewRoutes(services),
  };
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
  if (!isAdministrator(caller) || isActedAs(caller))
    throw permissionDenied("Only administrators may do this: send a token of one.");
  const { accounts } = services;
  if (accounts && caller.kind !== "key") await requireSecondFactor(caller, { accounts });
  return caller;
}
