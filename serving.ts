import type { RequestListener } from "node:http";
import type { SignInServices } from "./engine/auth/sign-in-services.ts";
import { makeCrossSite } from "./engine/caller/cross-site.ts";
import { roleKey } from "./engine/caller/role-key.ts";
import { makeCatchUp } from "./engine/catalog/catch-up.ts";
import type { CatalogKeeper } from "./engine/catalog/keep.ts";
import type { Config } from "./engine/config/config.ts";
import type { AsOwner } from "./engine/database/as-owner.ts";
import type { Database } from "./engine/database/database.ts";
import type { RequestLimit } from "./engine/limits/request-limit.ts";
import type { SharedRateLimit } from "./engine/limits/shared-rate-limit.ts";
import type { Logger } from "./engine/log.ts";
import type { Counts } from "./engine/metrics/counts.ts";
import type { Tracing } from "./engine/tracing/tracing.ts";
import type { GraphQL } from "./plugins/serve/graphql.ts";
import type { Realtime } from "./realtime/realtime.ts";
import { answerWith } from "./rest-gateway/answer.ts";
import { makeApp } from "./rest-gateway/app.ts";
import { authPathPrefixes, authRoutes } from "./rest-gateway/auth/auth-routes.ts";
import { identifyCaller } from "./rest-gateway/auth/credentials.ts";
import { keySetRoutes } from "./rest-gateway/auth/key-set.ts";
import { makeReadConnection } from "./rest-gateway/connection.ts";
import { makeEntry } from "./rest-gateway/entry.ts";
import { errorReferenceRoutes } from "./rest-gateway/error-reference/routes.ts";
import { isUnder, makeGateway } from "./rest-gateway/gateway.ts";
import { type Condition, healthRoutes } from "./rest-gateway/health.ts";
import type { GatewayRequest } from "./rest-gateway/http.ts";
import { makeExpensiveRequestLimit } from "./rest-gateway/limits/expensive-request-limit.ts";
import type { RequestMetrics } from "./rest-gateway/metrics/request-metrics.ts";
import { makeRouteOf, type RouteOf } from "./rest-gateway/metrics/route.ts";
import { referenceRoutes } from "./rest-gateway/reference/reference.ts";
import type { CountRequest } from "./rest-gateway/request-log.ts";
import { makeResourceInterface } from "./rest-gateway/resource/handle.ts";
import type { Versions } from "./rest-gateway/resource/versions/served.ts";
import { DOCUMENT_PATH, documentRoutes } from "./rest-gateway/resource-openapi/answer.ts";
import { doorsOf } from "./rest-gateway/start-page/doors.ts";
import { startPageRoutes } from "./rest-gateway/start-page/start-page.ts";
import { makeTableInterface } from "./rest-gateway/table/handle.ts";
import { PREFIX } from "./rest-gateway/table/prefix.ts";
import type { QueueTask, TaskHandler } from "./rest-gateway/tasks/prepared-task.ts";
import { makeTaskInterface } from "./rest-gateway/tasks/task-interface.ts";
import { traceRequests } from "./rest-gateway/trace-requests.ts";

/** What answers requests, and does what they have left for later. */
export type Serving = { readonly entry: RequestListener; readonly interfaceAt: (path: string) => TaskHandler };

/** What is opened once. */
type Opened = {
  readonly asOwner: AsOwner;
  readonly database: Database;
  readonly catalog: CatalogKeeper;
  readonly graphql: GraphQL;
  readonly realtime: Realtime;
  readonly condition: Condition;
  /** Null: requests are not counted. */
  readonly limit: RequestLimit | null;
  readonly signUpLimit: SharedRateLimit | null;
  readonly versions: Versions;
  /** Null: nothing can be left for later. */
  readonly defer: QueueTask | null;
  /** Where clients reach the service. */
  readonly siteUrl: () => string;
  /** False when requests are turned away, as the service stops. */
  readonly takesRequests: () => boolean;
  readonly log: Logger;
  readonly counts: Counts;
  /** Null: nobody wants to know. */
  readonly requests: RequestMetrics | null;
  /** Null: nobody collects traces. */
  readonly tracing: Tracing | null;
};

/** All that depends on settings which the database may change; a request ends with those that it began with. */
export function makeServing(opened: Opened): (config: Config, identification: SignInServices) => Serving {
  const { asOwner, database, graphql, realtime, condition, limit, signUpLimit, versions, defer, siteUrl } = opened;
  const { log, counts, tracing } = opened;
  const catalog = () => opened.catalog.current();
  const catchUp = makeCatchUp(opened.catalog);
  const health = healthRoutes(condition);
  const references = { ...referenceRoutes(DOCUMENT_PATH, versions), ...errorReferenceRoutes() };
  const limitExpensive = makeExpensiveRequestLimit(signUpLimit);

  return (config, { callers, accounts, keys }) => {
    const signIn = accounts ? authRoutes({ accounts, callers, config, siteUrl, limitExpensive }) : {};
    const signInFolders = accounts ? authPathPrefixes({ accounts, callers, config, siteUrl }) : {};
    const routes = { ...health, ...keySetRoutes(keys), ...signIn };
    const table = makeTableInterface({ config, callers, database, catalog, defer, counts });
    const crossSite = makeCrossSite(config);
    const identify = (request: GatewayRequest) => identifyCaller(request, { callers, crossSite });
    const resource = makeResourceInterface({
      config,
      callers,
      crossSite,
      database,
      catalog,
      catchUp,
      versions,
      defer,
      counts,
    });
    const documents = documentRoutes({
      config,
      catalog,
      versions,
      identify,
      routes,
      folders: Object.keys(signInFolders),
      hasTasks: defer !== null,
    });
    const startPage = startPageRoutes({
      config,
      catalog,
      address: siteUrl,
      fault: async () => toldFault(condition),
      anonKey: roleKey(config.anonRole, keys, config),
      links: doorsOf(config, { canSignIn: accounts !== null }),
      graphqlQuery: graphql.sampleQuery,
    });
    const collections = defer
      ? makeTaskInterface({
          asOwner,
          identify,
          versions,
          publicUrl: config.publicUrl,
          hasCollection: resource.has,
          next: resource.handle,
        })
      : resource.handle;
    const allRoutes = { ...routes, ...documents, ...references, ...startPage };
    const folders = { [PREFIX]: table.handle, ...signInFolders, ...graphql.folders, ...realtime.folders };
    const gateway = makeGateway({
      routes: allRoutes,
      folders,
      otherwise: collections,
      errorBody: config.errorBody,
      tableErrorVerbosity: config.tableErrorVerbosity,
      log,
      errors: counts.errors,
      takesRequests: opened.takesRequests,
      onUnknownName: () => opened.catalog.suspect(),
    });
    const routeOf = makeRouteOf({ paths: Object.keys(allRoutes), folders: Object.keys(folders) });
    const answer = answerWith(gateway, config, log, limit);
    const signInPaths = Object.keys(signInFolders);
    // Signing in and pages go through Express, whatever has rows ahead of it.
    const routePaths = new Set(Object.keys(allRoutes));
    const isForExpress = (path: string) => routePaths.has(path) || signInPaths.some((folder) => isUnder(folder, path));
    const ahead = { takes: (path: string) => !isForExpress(path), answer };
    const app = makeApp({ config, answer });
    const entry = makeEntry({ config, log, ahead, app, count: countBy(routeOf, opened.requests) });
    const readConnection = makeReadConnection(config);
    return {
      entry: tracing ? traceRequests({ tracing, routeOf, readConnection }, entry) : entry,
      interfaceAt: (path) => (isUnder(PREFIX, path) ? table : resource),
    };
  };
}

function countBy(routeOf: RouteOf, requests: RequestMetrics | null): CountRequest | null {
  if (!requests) return null;
  return (method, path, status, milliseconds) => requests.count(routeOf(path), method, status, milliseconds);
}

/** For the start page, in words for everybody. */
function toldFault({ databaseFault, schemaFault }: Condition): string | null {
  if (databaseFault() !== null) return "The database does not answer.";
  return schemaFault() === null ? null : "The schema may be out of date.";
}
