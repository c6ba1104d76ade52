import type { RequestListener } from "node:http";
import { type CatalogKeeper, makeCatalogRefresh } from "./engine/catalog/catalog-keeper.ts";
import type { Config } from "./engine/config/config.ts";
import type { Database } from "./engine/database/database.ts";
import type { AsOwner } from "./engine/database/owner-pool.ts";
import { makeRoleKey } from "./engine/identity/tokens.ts";
import type { RequestLimit } from "./engine/limits/request-limit.ts";
import type { SharedRateLimit } from "./engine/limits/shared-rate-limit.ts";
import type { ServiceCounters } from "./engine/observability/counters.ts";
import type { Tracing } from "./engine/observability/tracing.ts";
import type { Logger } from "./engine/output/log.ts";
import { makeCsrfProtection } from "./http/csrf-protection.ts";
import type { GraphqlInterface } from "./plugins/server/graphql.ts";
import type { Realtime } from "./realtime/realtime.ts";
import { authPathPrefixes, authRoutes } from "./rest-gateway/auth/auth-routes.ts";
import { authenticateCaller } from "./rest-gateway/auth/authenticate.ts";
import { keySetRoutes } from "./rest-gateway/auth/key-routes.ts";
import { type CountRequest, makeEntryListener, makeExpressApp } from "./rest-gateway/http/entry.ts";
import { type HealthState, healthRoutes } from "./rest-gateway/http/health.ts";
import { makeExpensiveRequestLimit } from "./rest-gateway/http/limits.ts";
import { toNodeHandler } from "./rest-gateway/http/node-handler.ts";
import { type GatewayRequest, isPathUnder, makeClientConnectionReader } from "./rest-gateway/http/request.ts";
import {
  type FindRouteTemplate,
  makeRouteTemplateFinder,
  type RequestMetrics,
} from "./rest-gateway/http/request-metrics.ts";
import { traceRequests } from "./rest-gateway/http/request-tracing.ts";
import { makeRouter } from "./rest-gateway/http/router.ts";
import { TABLE_PREFIX } from "./rest-gateway/http/table-prefix.ts";
import { apiReferenceRoutes } from "./rest-gateway/openapi/api-reference.ts";
import { OPENAPI_PATH, openApiRoutes } from "./rest-gateway/openapi/resource/routes.ts";
import { errorReferenceRoutes } from "./rest-gateway/pages/error-reference.ts";
import { startPageLinks, startPageRoutes } from "./rest-gateway/pages/start-page.ts";
import { makeResourceInterface } from "./rest-gateway/resource/handle.ts";
import { parseAddress } from "./rest-gateway/resource/parse/address.ts";
import { negotiateVersion } from "./rest-gateway/resource/versions/negotiate.ts";
import type { ReadVersions } from "./rest-gateway/resource/versions/versions.ts";
import { makeTableInterface } from "./rest-gateway/table/dialect.ts";
import type { QueueTask, TaskHandler } from "./rest-gateway/tasks/task-request.ts";
import { makeTaskRoutes } from "./rest-gateway/tasks/task-routes.ts";
import type { SignInServices } from "./sign-in-services.ts";

/** What answers requests, and does what they have left for later. */
export type RequestHandlers = { readonly entry: RequestListener; readonly interfaceAt: (path: string) => TaskHandler };

/** What is opened once. */
type RequestHandlerDependencies = {
  readonly asOwner: AsOwner;
  readonly database: Database;
  readonly catalog: CatalogKeeper;
  readonly graphql: GraphqlInterface;
  readonly realtime: Realtime;
  readonly condition: HealthState;
  /** Null: requests are not counted. */
  readonly limit: RequestLimit | null;
  readonly signUpLimit: SharedRateLimit | null;
  readonly versions: ReadVersions;
  /** Null: nothing can be left for later. */
  readonly defer: QueueTask | null;
  /** Where clients reach the service. */
  readonly siteUrl: () => string;
  /** False when requests are turned away, as the service stops. */
  readonly takesRequests: () => boolean;
  readonly log: Logger;
  readonly counts: ServiceCounters;
  /** Null: nobody wants to know. */
  readonly requests: RequestMetrics | null;
  /** Null: nobody collects traces. */
  readonly tracing: Tracing | null;
};

/** All that depends on settings which the database may change; a request ends with those that it began with. */
export function makeRequestHandlers(
  dependencies: RequestHandlerDependencies,
): (config: Config, identification: SignInServices) => RequestHandlers {
  const { asOwner, database, graphql, realtime, condition, limit, signUpLimit, versions, defer, siteUrl } =
    dependencies;
  const { log, counts, tracing } = dependencies;
  const catalog = () => dependencies.catalog.current();
  const refreshCatalog = makeCatalogRefresh(dependencies.catalog);
  const health = healthRoutes(condition);
  const references = { ...apiReferenceRoutes(OPENAPI_PATH, versions), ...errorReferenceRoutes() };
  const limitExpensive = makeExpensiveRequestLimit(signUpLimit);

  return (config, { authenticator, accounts, federation, keys }) => {
    const authOptions = accounts && federation && { accounts, federation, authenticator, config, siteUrl };
    const signIn = authOptions ? authRoutes({ ...authOptions, limitExpensive }) : {};
    const signInFolders = authOptions ? authPathPrefixes(authOptions) : {};
    const routes = { ...health, ...keySetRoutes(keys), ...signIn };
    const table = makeTableInterface({ config, authenticator, database, catalog, queueTask: defer, counts });
    const csrf = makeCsrfProtection(config);
    const identify = (request: GatewayRequest) => authenticateCaller(request, { authenticator, csrf });
    const resource = makeResourceInterface({
      config,
      authenticator,
      csrf,
      database,
      catalog,
      catchUp: refreshCatalog,
      versions,
      queueTask: defer,
      counts,
    });
    const documents = openApiRoutes({
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
      fault: async () => publicFault(condition),
      anonKey: makeRoleKey(config.anonRole, keys, config),
      links: startPageLinks(config, { canSignIn: accounts !== null }),
      graphqlQuery: graphql.sampleQuery,
    });
    const collections = defer
      ? makeTaskRoutes({
          asOwner,
          authenticate: identify,
          negotiateVersion: async (request) => {
            const { publicUrl } = config;
            const query = new URLSearchParams(request.rawQuery);
            negotiateVersion(request, parseAddress(request.path), query, { versions: await versions(), publicUrl });
          },
          hasCollection: resource.has,
          next: resource.handle,
        })
      : resource.handle;
    const allRoutes = { ...routes, ...documents, ...references, ...startPage };
    const folders = { [TABLE_PREFIX]: table.handle, ...signInFolders, ...graphql.folders, ...realtime.handlersByPath };
    const gateway = makeRouter({
      routes: allRoutes,
      folders,
      fallback: collections,
      errorBody: config.errorBody,
      tableErrorVerbosity: config.tableErrorVerbosity,
      log,
      errors: counts.errors,
      acceptsRequests: dependencies.takesRequests,
      onUnknownName: () => dependencies.catalog.checkSoon(),
    });
    const routeOf = makeRouteTemplateFinder({ paths: Object.keys(allRoutes), folders: Object.keys(folders) });
    const answer = toNodeHandler(gateway, config, log, limit);
    const signInPaths = Object.keys(signInFolders);
    // Signing in and pages go through Express, whatever has rows ahead of it.
    const routePaths = new Set(Object.keys(allRoutes));
    const isForExpress = (path: string) =>
      routePaths.has(path) || signInPaths.some((folder) => isPathUnder(folder, path));
    const fastPath = { takes: (path: string) => !isForExpress(path), answer };
    const app = makeExpressApp({ config, answer });
    const entry = makeEntryListener({
      config,
      log,
      beforeExpress: fastPath,
      app,
      count: makeRequestCounter(routeOf, dependencies.requests),
    });
    const readConnection = makeClientConnectionReader(config);
    return {
      entry: tracing ? traceRequests({ tracing, routeOf, readConnection }, entry) : entry,
      interfaceAt: (path) => (isPathUnder(TABLE_PREFIX, path) ? table : resource),
    };
  };
}

function makeRequestCounter(routeOf: FindRouteTemplate, requests: RequestMetrics | null): CountRequest | null {
  if (!requests) return null;
  return (method, path, status, milliseconds) => requests.count(routeOf(path), method, status, milliseconds);
}

/** For the start page, in words for everybody. */
function publicFault({ databaseFault, schemaFault }: HealthState): string | null {
  if (databaseFault() !== null) return "The database does not answer.";
  return schemaFault() === null ? null : "The schema may be out of date.";
}
