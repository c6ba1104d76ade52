import type { RequestListener } from "node:http";
import type { LimitCreatedUsers, LimitSignUps } from "#accounts";
import { API_RESOURCE, canIssueTokens, makeRoleKey, resourceAddress } from "#accounts/identity";
import type { Catalog } from "#catalog";
import { type CatalogKeeper, type CatalogRefresh, makeCatalogRefresh } from "#catalog/loading";
import type { ServedPostgres } from "#cluster";
import type { Config } from "#config";
import type { FileStore } from "#files";
import type { GraphqlInterface } from "#graphql";
import {
  type CsrfProtection,
  type GatewayHandler,
  type GatewayRequest,
  type GatewayRoutes,
  isPathUnder,
  makeCsrfProtection,
  TABLE_PREFIX,
  type UpgradeListener,
} from "#http";
import type { ServiceCounters, SharedActivity, Tracing } from "#http/observability";
import {
  type FindRouteTemplate,
  type HealthState,
  healthRoutes,
  makeClientConnectionReader,
  makeEntryListener,
  makeExpensiveRequestLimit,
  makeExpressApp,
  makeRouter,
  makeRouteTemplateFinder,
  type RequestCounter,
  type RequestMetrics,
  toNodeHandler,
  toUpgradeListener,
  traceRequests,
} from "#http/serving";
import type { LiveQueries, ShapeRegistry } from "#live";
import { type MigrationWatch, makeSchemaChanges } from "#migrate";
import { ADMIN_PREFIX, adminHandler } from "#operations/admin";
import type { AsOwner, Database } from "#postgres/database";
import type { RequestLimit } from "#postgres/rate-limits";
import type { Realtime } from "#realtime";
import {
  FUNCTIONS_PREFIX,
  type Functions,
  functionNotFound,
  functionsHandler,
  guideFolder,
  isFunctionPath,
  makePrepareCall,
  makeTaskRoutes,
  type PrepareCall,
  S3_PREFIX,
  SHAPES_PATH,
  STORAGE_PREFIX,
  STUDIO_PATH,
  s3Handler,
  shapesHandler,
  storageHandler,
  studioFolder,
  toFunctionsErrorResponse,
  toS3ErrorResponse,
  toStorageErrorResponse,
} from "#rest-gateway";
import { authenticateCaller } from "#rest-gateway/authenticate";
import { MCP_PATH, makeMcpHandler, toMcpErrorResponse } from "#rest-gateway/mcp";
import { apiReferenceRoutes, OPENAPI_PATH, openApiRoutes } from "#rest-gateway/openapi";
import { errorReferenceRoutes, makeErrorPage, startPageLinks, startPageRoutes } from "#rest-gateway/pages";
import { makeStatementContexts, type QueueTask, type TaskHandler } from "#rest-gateway/pipeline";
import { makeResourceInterface, parseAddress } from "#rest-gateway/resource";
import { negotiateVersion, type ReadVersions } from "#rest-gateway/resource/parse";
import {
  AUTH_V1_PREFIX,
  authPathPrefixes,
  authRoutes,
  authV1Handler,
  keySetRoutes,
  makeOAuthStore,
  SIGN_IN_PATH,
  toAuthErrorResponse,
} from "#rest-gateway/sign-in";
import { makeTableInterface, preRequestStatement } from "#rest-gateway/table";
import { authenticateTableCaller } from "#rest-gateway/table/authenticate";
import type { Logger } from "#runtime/log";
import { makeInterfaceComparer } from "../contract/interface-comparison.ts";
import type { AgentServices } from "./extension-services.ts";
import type { SignInServices } from "./sign-in-services.ts";

/** The entry point of HTTP requests, and the runners of queued requests and function calls. */
export type RequestHandlers = {
  readonly entry: RequestListener;
  /** Handles requests for WebSockets of functions. */
  readonly upgrade: UpgradeListener;
  readonly interfaceAt: (path: string) => TaskHandler;
  readonly prepareCall: PrepareCall;
};

type RequestHandlerDependencies = {
  readonly asOwner: AsOwner;
  readonly database: Database;
  readonly postgres: ServedPostgres;
  readonly catalog: CatalogKeeper;
  readonly graphql: GraphqlInterface;
  readonly realtime: Realtime;
  readonly live: LiveQueries;
  readonly shapes: ShapeRegistry;
  readonly health: HealthState;
  /** Null if the database has no tables for files. */
  readonly fileStore: FileStore | null;
  /** Null if functions are switched off. */
  readonly functions: Functions | null;
  /** Null if requests are not limited. */
  readonly limit: RequestLimit | null;
  readonly limitSignUps: LimitSignUps;
  readonly limitCreatedUsers: LimitCreatedUsers | null;
  readonly agents: AgentServices;
  readonly versions: ReadVersions;
  /** Null if the database has no queue for tasks. */
  readonly queueTask: QueueTask | null;
  /** The URL that clients use. */
  readonly siteUrl: () => string;
  /** False towards the end of a stop, when requests are rejected. */
  readonly acceptsRequests: () => boolean;
  /** Null unless the files of `current/` are watched. */
  readonly migrationWatch: () => MigrationWatch | null;
  readonly log: Logger;
  readonly counts: ServiceCounters;
  readonly requests: RequestMetrics;
  /** The state that all processes of the service share. */
  readonly everywhere: SharedActivity;
  /** Null if tracing is disabled. */
  readonly tracing: Tracing | null;
};

/** The parts that all handlers share, whatever the settings. */
type SharedParts = RequestHandlerDependencies & {
  readonly currentCatalog: () => Catalog;
  readonly refreshCatalog: CatalogRefresh;
  readonly healthRoutes: GatewayRoutes;
  readonly referenceRoutes: GatewayRoutes;
  readonly guideFolder: ReturnType<typeof guideFolder>;
  readonly studioFolder: ReturnType<typeof studioFolder>;
};

/** The error formats of interfaces that do not use the errors of the resource interface. */
const ERROR_FORMATS = {
  [AUTH_V1_PREFIX]: toAuthErrorResponse,
  [MCP_PATH]: toMcpErrorResponse,
  [S3_PREFIX]: toS3ErrorResponse,
  [STORAGE_PREFIX]: toStorageErrorResponse,
  [FUNCTIONS_PREFIX]: toFunctionsErrorResponse,
};

/** Makes the handlers for some settings. A request that is in flight when settings change ends with the old handlers. */
export function makeRequestHandlers(
  dependencies: RequestHandlerDependencies,
): (config: Config, signIn: SignInServices) => RequestHandlers {
  const { catalog, health, versions } = dependencies;
  const shared: SharedParts = {
    ...dependencies,
    currentCatalog: () => catalog.current(),
    refreshCatalog: makeCatalogRefresh(catalog),
    healthRoutes: healthRoutes(health),
    referenceRoutes: { ...apiReferenceRoutes(OPENAPI_PATH, versions), ...errorReferenceRoutes() },
    guideFolder: guideFolder(),
    studioFolder: studioFolder(),
  };
  return (config, signIn) => buildHandlers(shared, config, signIn);
}

function buildHandlers(shared: SharedParts, config: Config, signIn: SignInServices): RequestHandlers {
  const { database, graphql, realtime, live, queueTask, counts, versions, currentCatalog: catalog } = shared;
  const { authenticator, accounts } = signIn;
  const csrf = makeCsrfProtection(config);
  const authenticate: Authenticate = (request) =>
    authenticateCaller(request, { authenticator, csrf, resource: API_RESOURCE });

  const { signInFolders, signInRoutes } = buildSignInRoutes(shared, config, signIn);
  const authAndHealthRoutes = { ...shared.healthRoutes, ...signInRoutes };
  const documents = openApiRoutes({
    config,
    catalog,
    versions,
    identify: authenticate,
    routes: authAndHealthRoutes,
    folders: [...Object.keys(signInFolders), ...(config.studio === "off" ? [] : [ADMIN_PREFIX])],
    hasTasks: queueTask !== null,
  });
  const table = makeTableInterface({ config, authenticator, database, catalog, queueTask, counts, live });
  const resource = makeResource(shared, config, { authenticator, csrf });
  const routes = {
    ...authAndHealthRoutes,
    ...documents,
    ...shared.referenceRoutes,
    ...startPage(shared, config, signIn),
  };
  const folders = {
    [TABLE_PREFIX]: table.handle,
    [SHAPES_PATH]: shapesFolder(shared, config, signIn),
    ...storageFolder(shared, config, signIn),
    [FUNCTIONS_PREFIX]: functionsFolder(shared, config, signIn),
    ...adminFolder(shared, config, { ...signIn, csrf }),
    ...mcpFolder(shared, config, { authenticator, csrf, runTableRequest: table.handleAs }),
    ...signInFolders,
    ...graphql.folders,
    ...realtime.handlersByPath,
    ...shared.guideFolder,
    ...(config.studio === "off" ? {} : shared.studioFolder),
  };
  const router = makeRouter({
    routes,
    folders,
    fallback: queueTask ? withTaskRoutes(resource, shared, config, authenticate) : resource.handle,
    errorBody: config.errorBody,
    errorVerbosity: config.errorVerbosity,
    errorFormats: ERROR_FORMATS,
    negotiateErrorPage: makeErrorPage({ ...config, signInPath: accounts ? SIGN_IN_PATH : null }),
    log: shared.log,
    errors: counts.errors,
    acceptsRequests: shared.acceptsRequests,
    onUnknownName: () => shared.catalog.checkSoon(),
  });
  const answer = toNodeHandler(router, config, shared.log, shared.limit);
  const paths = { routes: Object.keys(routes), authFolders: Object.keys(signInFolders), folders: Object.keys(folders) };
  const entry = makeEntry(shared, config, answer, paths);
  return {
    entry,
    upgrade: toUpgradeListener(entry),
    interfaceAt: (path) => (isPathUnder(TABLE_PREFIX, path) ? table : resource),
    prepareCall: makePrepareCall({ database, catalog, config }),
  };
}

function makeResource(
  { database, currentCatalog, refreshCatalog, versions, limitCreatedUsers, queueTask, counts, live }: SharedParts,
  config: Config,
  callers: { readonly authenticator: SignInServices["authenticator"]; readonly csrf: CsrfProtection },
) {
  return makeResourceInterface({
    ...callers,
    config,
    database,
    catalog: currentCatalog,
    catchUp: refreshCatalog,
    versions,
    limitCreatedUsers,
    queueTask,
    counts,
    live,
  });
}

function buildSignInRoutes(
  shared: SharedParts,
  config: Config,
  { authenticator, accounts, federation, keys }: SignInServices,
) {
  const keySet = keySetRoutes(keys);
  if (!accounts || !federation) return { signInFolders: {}, signInRoutes: keySet };
  const { siteUrl, limitSignUps, currentCatalog: catalog } = shared;
  const limitExpensive = makeExpensiveRequestLimit(limitSignUps);
  const oauthStore = makeOAuthStore(shared.asOwner);
  const studioPath = config.studio === "off" ? null : STUDIO_PATH;
  const services = { accounts, federation, authenticator, catalog, config, siteUrl, studioPath };
  const options = { ...services, limitExpensive, oauthStore };
  return {
    signInFolders: { ...authPathPrefixes(options), [AUTH_V1_PREFIX]: authV1Handler({ ...options, keySet }) },
    signInRoutes: { ...keySet, ...authRoutes(options) },
  };
}

function storageFolder(
  { database, currentCatalog: catalog, fileStore: store }: SharedParts,
  config: Config,
  { authenticator, signers, keys }: SignInServices,
) {
  if (!store) return {};
  const contextOf = makeStatementContexts(config, {
    interfaceName: "storage",
    pathPrefix: STORAGE_PREFIX,
    hoistedSettings: [],
  });
  const authenticate = makeTokenAuthentication(config, authenticator);
  const services = { store, database, catalog, authenticator, authenticate, signers, contextOf, keys, config };
  // The first matching prefix is used.
  return { [S3_PREFIX]: s3Handler(services), [STORAGE_PREFIX]: storageHandler(services) };
}

function shapesFolder(
  { database, currentCatalog: catalog, refreshCatalog, shapes }: SharedParts,
  config: Config,
  { authenticator }: SignInServices,
): GatewayHandler {
  const authenticate = makeTokenAuthentication(config, authenticator);
  const preRequest = preRequestStatement(config);
  const { validateClaims } = authenticator;
  return shapesHandler({ config, catalog, refreshCatalog, database, shapes, authenticate, validateClaims, preRequest });
}

/** Authenticates like the table interface, but a token is enough: clients of TUS and of shapes send no key. */
function makeTokenAuthentication(config: Config, authenticator: SignInServices["authenticator"]): Authenticate {
  return (request) =>
    authenticateTableCaller(
      request,
      authenticator,
      config.requireApiKey && !request.headers.authorization,
      API_RESOURCE,
    );
}

function functionsFolder(
  { functions, siteUrl }: SharedParts,
  config: Config,
  { authenticator }: SignInServices,
): GatewayHandler {
  if (functions) return functionsHandler({ functions, authenticator, config, siteUrl });
  return () => {
    throw functionNotFound();
  };
}

function startPage({ currentCatalog, siteUrl, health, graphql }: SharedParts, config: Config, signIn: SignInServices) {
  return startPageRoutes({
    config,
    catalog: currentCatalog,
    address: siteUrl,
    fault: async () => publicFault(health),
    anonKey: canIssueTokens(signIn.keys) ? makeRoleKey(config.anonRole, signIn.keys, config) : null,
    links: startPageLinks(config, { canSignIn: signIn.accounts !== null }),
    graphqlQuery: graphql.sampleQuery,
  });
}

function adminFolder(
  shared: SharedParts,
  config: Config,
  services: SignInServices & { readonly csrf: CsrfProtection },
) {
  if (config.studio === "off") return {};
  const { postgres, migrationWatch, catalog, currentCatalog, graphql } = shared;
  const schemaChanges = makeSchemaChanges({
    settings: postgres.migrate,
    watch: migrationWatch,
    isEnabled: config.studioSql,
    reloadCatalog: () => catalog.reload(),
  });
  const omittedFromGraphql = () => graphql.omitted();
  const all = {
    ...shared,
    ...services,
    config,
    catalog: currentCatalog,
    schemaChanges,
    compareInterfaces: makeInterfaceComparer({ config, requestUrl: postgres.requestUrl }),
    omittedFromGraphql,
  };
  return { [ADMIN_PREFIX]: adminHandler(all) };
}

type McpParts = Pick<Parameters<typeof makeMcpHandler>[0], "authenticator" | "csrf" | "runTableRequest">;

function mcpFolder({ agents, currentCatalog: catalog, siteUrl }: SharedParts, config: Config, parts: McpParts) {
  if (config.mcp === "off") return {};
  const metadataUrl = () => resourceAddress(siteUrl(), `/.well-known/oauth-protected-resource${MCP_PATH}`);
  return {
    [MCP_PATH]: makeMcpHandler({
      ...agents,
      ...parts,
      config,
      catalog,
      resourceMetadataUrl: config.oauthServer ? metadataUrl : null,
    }),
  };
}

type Authenticate = (request: GatewayRequest) => ReturnType<typeof authenticateCaller>;

/** The resource interface, with the paths that report on tasks. */
function withTaskRoutes(
  resource: ReturnType<typeof makeResourceInterface>,
  { asOwner, versions }: SharedParts,
  { publicUrl }: Config,
  authenticate: Authenticate,
) {
  return makeTaskRoutes({
    asOwner,
    authenticate,
    negotiateVersion: async (request) => {
      const query = new URLSearchParams(request.rawQuery);
      negotiateVersion(request, parseAddress(request.path), query, { versions: await versions(), publicUrl });
    },
    hasCollection: resource.has,
    next: resource.handle,
  });
}

type RoutedPaths = {
  readonly routes: readonly string[];
  readonly folders: readonly string[];
  readonly authFolders: readonly string[];
};

/** Makes the entry point. Sign-in and pages use Express. Requests for rows bypass it, because it costs a tenth of their throughput. */
function makeEntry(
  { functions, log, requests, tracing }: SharedParts,
  config: Config,
  answer: ReturnType<typeof toNodeHandler>,
  paths: RoutedPaths,
): RequestListener {
  const routePaths = new Set(paths.routes);
  const isForExpress = (path: string) =>
    routePaths.has(path) || paths.authFolders.some((folder) => isPathUnder(folder, path));
  const routeOf = makeRouteTemplateFinder({ paths: paths.routes, folders: paths.folders });
  const entry = makeEntryListener({
    config,
    log,
    beforeExpress: { takes: (path: string) => !isForExpress(path), answer },
    app: makeExpressApp({ config, answer }),
    answersPreflights: (path) => isFunctionPath(path) && (functions?.hasFolder() ?? false),
    counter: makeRequestCounter(routeOf, requests),
  });
  return tracing
    ? traceRequests({ tracing, routeOf, readConnection: makeClientConnectionReader(config) }, entry)
    : entry;
}

function makeRequestCounter(routeOf: FindRouteTemplate, requests: RequestMetrics): RequestCounter {
  return {
    isWatched: () => requests.isWatched,
    count: (request) => requests.count(routeOf(request.path), request),
  };
}

/** Returns the fault that the public start page shows. */
function publicFault({ databaseFault, schemaFault }: HealthState): string | null {
  if (databaseFault() !== null) return "The database does not answer.";
  return schemaFault() === null ? null : "The schema may be out of date.";
}
