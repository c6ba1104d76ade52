import type { LimitCreatedUsers } from "#accounts";
import { API_RESOURCE, type Authenticator, type Caller, type Claims } from "#accounts/identity";
import type { Catalog } from "#catalog";
import type { CatalogRefresh } from "#catalog/loading";
import type { Config } from "#config";
import {
  type CsrfProtection,
  type GatewayHandler,
  type GatewayRequest,
  type GatewayResponse,
  HttpError,
  isReadMethod,
  makeBodyLimits,
  methodNotAllowed,
  notFound,
  publicBasePath,
  queryWithoutApiKey,
} from "#http";
import { makeServiceCounters, type ServiceCounters } from "#http/observability";
import type { LiveQueries } from "#live";
import type { Plan, RunResult } from "#planner";
import type { Intent } from "#planner/intent";
import type { Database } from "#postgres/database";
import { authenticateCaller } from "#rest-gateway/authenticate";
import type { Dialect, ParsedRequest, Pipeline, ReadyResponse, RunIntent } from "#rest-gateway/dialect";
import {
  handleLiveRequest,
  handleRequest,
  isLiveRequest,
  makeIdempotentRunner,
  makeStatementContexts,
  prepareTask,
  type QueueTask,
  type TaskHandler,
} from "#rest-gateway/pipeline";
import { ApiError } from "#runtime";
import { collectionsOf } from "./collections/collections.ts";
import { permissionDenied } from "./collections/errors.ts";
import { explainError } from "./explain-error.ts";
import { makeResourcePlanner, type PlanIntent } from "./intents.ts";
import type { ResourceOperation, ResourceRows } from "./operation.ts";
import { findTarget, parseAddress, type ResourceAddress, resolveProfile, toPathTemplate } from "./parse/address.ts";
import { readParameters } from "./parse/parameters.ts";
import { type ResourceBodyLimits, type ResourceRequest, readResourceBody, requestsLinks } from "./parse/request.ts";
import { type ApiVersion, negotiateVersion, type ReadVersions } from "./parse/versions.ts";
import { readList, readRow } from "./read.ts";
import { requestValues } from "./request-values.ts";
import { makeResourceBatches } from "./resource-batch.ts";
import { cacheHeaders } from "./respond.ts";
import { callAction, changeRow, createRows, deleteRow } from "./write.ts";

const SHAPING_HEADERS = [
  "content-type",
  "content-profile",
  "accept",
  "accept-profile",
  "if-match",
  "if-none-match",
  "if-unmodified-since",
] as const;

const EMPTY_BYTES = Buffer.alloc(0);

/** The parameters of all requests without a query string; they are never changed. */
const NO_PARAMETERS = new URLSearchParams();

type ResourceDependencies = {
  readonly config: Config;
  readonly authenticator: Authenticator;
  readonly csrf: CsrfProtection;
  readonly database: Database;
  readonly catalog: () => Catalog;
  readonly catchUp: CatalogRefresh;
  readonly versions: ReadVersions;
  readonly limitCreatedUsers?: LimitCreatedUsers | null;
  /** Queues a task; if null, actions run at once, whatever the client prefers. */
  readonly queueTask?: QueueTask | null;
  readonly counts?: ServiceCounters;
  /** The live queries; if null, no response stays up to date. */
  readonly live?: LiveQueries | null;
};

type ResourceInterface = TaskHandler & {
  readonly handle: GatewayHandler;
  /** Returns true if there is a collection with this name, for any caller. */
  has(name: string): boolean;
};

type ParsedResourceRequest = ParsedRequest & {
  readonly resource: ResourceRequest;
  readonly operation: ResourceOperation;
};

/** Makes the interface of `/users` and `/api/v<N>/<collection>`. */
export function makeResourceInterface(dependencies: ResourceDependencies): ResourceInterface {
  const { config, database, catchUp, queueTask = null, live = null, counts = makeServiceCounters() } = dependencies;
  const dialect = new ResourceDialect(dependencies, makeResourcePlanner(config, counts.plans));
  const pipeline: Pipeline<ParsedResourceRequest> = {
    name: "resource",
    dialect,
    database,
    contextOf: makeStatementContexts(config, { interfaceName: "resource", pathPrefix: "", hoistedSettings: [] }),
    choosesIsolation: false,
    preRequest: undefined,
    refreshCatalog: catchUp,
    queueTask,
    idempotency: makeIdempotentRunner(config, counts),
    recorder: counts.recorder,
    shapingHeaders: SHAPING_HEADERS,
    queryWithoutApiKey: ({ rawQuery }) => queryWithoutApiKey(rawQuery),
    optionsStatus: 204,
  };
  const hasCollection = (name: string) => dialect.addresses().find(name) !== undefined;
  const { catalog, versions } = dependencies;
  const next: GatewayHandler = (request) =>
    live && isLiveRequest(request) ? handleLiveRequest(request, pipeline, live) : handleRequest(request, pipeline);
  return {
    handle: makeResourceBatches({ config, catalog, versions, pipeline, hasCollection, next }),
    has: hasCollection,
    prepareTask: (request, caller) => prepareTask(request, caller, pipeline),
    explainError: (thrown, caller) => dialect.explainError(thrown, caller, null, null),
  };
}

/** The dialect of collections and rows by their path, as plain JSON. */
class ResourceDialect implements Dialect<ParsedResourceRequest> {
  readonly #config: Config;
  readonly #authentication: Pick<ResourceDependencies, "authenticator" | "csrf"> & { readonly resource: string };
  readonly #catalog: () => Catalog;
  readonly #versions: ReadVersions;
  readonly #bodyLimits: ResourceBodyLimits;
  readonly #limitCreatedUsers: LimitCreatedUsers | null;
  readonly #plan: PlanIntent;

  constructor(
    { config, authenticator, csrf, catalog, versions, limitCreatedUsers = null }: ResourceDependencies,
    plan: PlanIntent,
  ) {
    this.#config = config;
    this.#authentication = { authenticator, csrf, resource: API_RESOURCE };
    this.#catalog = catalog;
    this.#versions = versions;
    this.#limitCreatedUsers = limitCreatedUsers;
    this.#plan = plan;
    this.#bodyLimits = { rows: makeBodyLimits(config), row: makeBodyLimits(config, config.maxRowBytes) };
  }

  /** Returns the collections of any caller in any version: all have the same addresses. */
  addresses() {
    return collectionsOf(this.#catalog(), { role: this.#config.anonRole, version: 1 });
  }

  /** Authenticates. A path outside of this interface is not found, whatever the credentials are. */
  authenticate(request: GatewayRequest): Caller | Promise<Caller> {
    const address = parseAddress(request.path);
    if (address.base === "" && !this.#isAtRoot(address)) throw notFound();
    request.addResponseHeaders(cacheHeaders(null));
    const accept = (caller: Caller) => {
      request.addResponseHeaders(cacheHeaders(caller));
      return caller;
    };
    const reject = async (rejection: unknown): Promise<never> => {
      await this.#addVersionHeaders(request, address);
      throw rejection;
    };
    try {
      const authenticated = authenticateCaller(request, this.#authentication);
      return authenticated instanceof Promise ? authenticated.then(accept, reject) : accept(authenticated);
    } catch (rejection) {
      return reject(rejection);
    }
  }

  validateClaims(claims: Claims) {
    return this.#authentication.authenticator.validateClaims(claims);
  }

  parse(request: GatewayRequest, caller: Caller) {
    const versions = this.#versions();
    return versions instanceof Promise
      ? versions.then((served) => this.#parse(request, caller, served))
      : this.#parse(request, caller, versions);
  }

  plan({ catalog }: ParsedResourceRequest, caller: Caller, intent: Intent, planKey: object | undefined) {
    return this.#plan(catalog, caller, intent, planKey);
  }

  respond({ operation }: ParsedResourceRequest, _plan: Plan, result: RunResult, run: RunIntent) {
    return operation.respond(toResourceRows(result), toRunRows(run));
  }

  explainError(thrown: unknown, { role }: Caller, parsed: ParsedResourceRequest | null, intent: Intent | null) {
    const anonymous = role === this.#config.anonRole;
    if (!parsed) {
      const catalog = this.#catalog();
      return explainError(thrown, { anonymous, role, catalog, version: 1, collection: null, sent: () => [] });
    }
    const { catalog, collections, target } = parsed.resource;
    return explainError(thrown, {
      anonymous,
      role,
      catalog,
      version: collections.version,
      collection: target.collection,
      sent: () => (intent ? requestValues(intent, parsed.resource, parsed.operation.sent?.() ?? []) : []),
    });
  }

  async allowedMethods(request: GatewayRequest, caller: Caller) {
    return methodsOf(this.#findResource(request, parseAddress(request.path), caller, await this.#versions())).join(
      ", ",
    );
  }

  #parse(
    request: GatewayRequest,
    caller: Caller,
    served: readonly ApiVersion[],
  ): ParsedResourceRequest | ReadyResponse | null {
    const address = parseAddress(request.path);
    const resource = this.#findResource(request, address, caller, served);
    const { catalog, collections, target } = resource;
    if (address.canonical !== request.path) return { response: redirectToCanonical(resource) };
    const { method } = request;
    const methods = methodsOf(resource);
    if (!methods.includes(method)) throw methodNotAllowed(method, methods.join(", "));
    if (method === "OPTIONS") return null;
    const isWrite = !isReadMethod(method);
    const operation = operationOf(resource);
    const { intent, precheck } = operation;
    const isNested = method === "POST" && target.nested !== null && !target.action;
    return {
      catalog,
      intent: typeof intent === "function" ? (run) => intent(toRunRows(run)) : intent,
      planKey: operation.planKey,
      precheck: precheck && ((run) => precheck(toRunRows(run))),
      schema: target.collection.table.schema,
      timezone: null,
      version: collections.version,
      body: isWrite ? () => readResourceBody(resource) : EMPTY_BYTES,
      rollback: false,
      // A write whose response reads links must not be committed if it is tried again.
      needsTransaction: isWrite && (requestsLinks(resource) || isNested),
      isQueueable: Boolean(target.action),
      pathTemplate: () => toPathTemplate(resource.address),
      resource,
      operation,
    };
  }

  #findResource(
    request: GatewayRequest,
    requested: ResourceAddress,
    caller: Caller,
    versions: readonly ApiVersion[],
  ): ResourceRequest {
    const catalog = this.#catalog();
    const settings = this.#config;
    const { publicUrl } = settings;
    const parameters = request.rawQuery === "" ? NO_PARAMETERS : readParameters(request.rawQuery);
    const { negotiated, version, notice } = negotiateVersion(request, requested, parameters, { versions, publicUrl });
    const collections = collectionsOf(catalog, { role: caller.role, version: version.number });
    const address = resolveProfile(requested, request, catalog);
    const target = address && findTarget(address, collections);
    if (!target) throw notFound();
    const bodyLimits = this.#bodyLimits;
    const found = { request, caller, catalog, collections, address, target, parameters, negotiated, notice };
    return { ...found, settings, bodyLimits, limitCreatedUsers: this.#limitCreatedUsers };
  }

  /** Adds the version's headers for a caller who is rejected before the version is known; if that fails too, the first error is reported. */
  async #addVersionHeaders(request: GatewayRequest, address: ResourceAddress): Promise<void> {
    const { publicUrl } = this.#config;
    const versions = await this.#versions();
    try {
      negotiateVersion(request, address, new URLSearchParams(request.rawQuery), { versions, publicUrl });
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
    }
  }

  #isAtRoot({ segments: [name = ""] }: ResourceAddress): boolean {
    return this.addresses().findAtRoot(name) !== undefined;
  }
}

function operationOf(resource: ResourceRequest): ResourceOperation {
  const { target, request, caller, catalog, settings } = resource;
  const { privileges } = target.collection;
  // Only Postgres knows the privileges of a role that the catalogue lacks.
  const isKnownRole = catalog.roles.has(caller.role);
  const requirePrivilege = (privilege: keyof typeof privileges) => {
    if (isKnownRole && !privileges[privilege]) {
      throw permissionDenied({ anonymous: caller.role === settings.anonRole });
    }
  };
  if (target.action) return callAction(resource);
  switch (request.method) {
    case "POST":
      return createRows(resource, () => requirePrivilege("create"));
    case "PUT":
    case "PATCH":
      return changeRow(resource, () => requirePrivilege("update"));
    case "DELETE":
      return deleteRow(resource, () => requirePrivilege("delete"));
    default:
      requirePrivilege("read");
      return target.key === null ? readList(resource) : readRow(resource);
  }
}

function methodsOf({ target: { collection, key, action } }: ResourceRequest): readonly string[] {
  if (action) return ["OPTIONS", "POST"];
  return key === null ? collection.methods.collection : collection.methods.row;
}

/** Redirects reads to the canonical path, which is in lower case, with hyphens and without a slash at the end. */
function redirectToCanonical({
  request: { method, rawQuery },
  address: { canonical },
  settings,
}: ResourceRequest): GatewayResponse {
  if (!isReadMethod(method)) {
    throw new HttpError(404, "RESOURCE_NOT_FOUND", `Not found: the path is ${canonical}.`);
  }
  const location = publicBasePath(settings.publicUrl) + canonical;
  return { status: 301, headers: { Location: rawQuery ? `${location}?${rawQuery}` : location }, body: null };
}

function toResourceRows({ body, rowCount: page, total }: RunResult): ResourceRows {
  return { text: String(body), count: page ?? 0, total };
}

function toRunRows(run: RunIntent) {
  return async (intent: Intent, planKey?: object) => toResourceRows(await run(intent, planKey));
}
