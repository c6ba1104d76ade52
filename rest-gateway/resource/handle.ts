import type { Catalog } from "../../engine/catalog/catalog.ts";
import type { CatalogRefresh } from "../../engine/catalog/catalog-keeper.ts";
import type { Config } from "../../engine/config/config.ts";
import type { Database } from "../../engine/database/database.ts";
import { isSchemaOutdated } from "../../engine/database/database-errors.ts";
import type { StatementContext } from "../../engine/database/statement.ts";
import type { RunStatement } from "../../engine/database/transaction.ts";
import { ApiError } from "../../engine/errors.ts";
import type { Authenticator } from "../../engine/identity/authenticator.ts";
import { type Caller, callerKey } from "../../engine/identity/caller.ts";
import { makeCallerSettings, makeSearchPathSetting, roleSettings } from "../../engine/identity/caller-settings.ts";
import { makeServiceCounters, type ServiceCounters } from "../../engine/observability/counters.ts";
import type { Intent } from "../../engine/statement/intent.ts";
import { bindRequest } from "../../engine/statement/prepare.ts";
import { runInTransaction, runRequest, type StatementRunOptions } from "../../engine/statement/run.ts";
import { methodNotAllowed, notFound } from "../../http/address-errors.ts";
import { makeBodyLimits } from "../../http/body-limit.ts";
import type { CsrfProtection } from "../../http/csrf-protection.ts";
import { HttpError } from "../../http/http-error.ts";
import { makeReadYourWrites } from "../../http/read-your-writes.ts";
import { requestInfoOf } from "../../http/request-info.ts";
import { authenticateCaller, queryWithoutApiKey } from "../auth/authenticate.ts";
import { publicBasePath } from "../http/public-url.ts";
import type { GatewayHandler, GatewayRequest } from "../http/request.ts";
import type { GatewayResponse } from "../http/response.ts";
import { type KeyedRequest, makeIdempotentRunner, readIdempotencyKey } from "../idempotency/idempotent-runner.ts";
import { prefersAsync, type QueueTask, type TaskHandler } from "../tasks/task-request.ts";
import { callAction, checkAction } from "./call-action.ts";
import { changeRow, deleteRow } from "./change.ts";
import { collectionsOf } from "./collections.ts";
import { createRows } from "./create.ts";
import { permissionDenied } from "./errors.ts";
import { ErrorExplainer, explainError } from "./explain-error.ts";
import { makeResourcePlanner } from "./intents.ts";
import { findTarget, parseAddress, type ResourceAddress, resolveProfile } from "./parse/address.ts";
import { readList, readRow } from "./read.ts";
import {
  type ResourceBodyLimits,
  type ResourceRequest,
  type ResourceRows,
  type ResourceTransaction,
  type RunIntent,
  readResourceBody,
  withBody,
  withRereadableBody,
} from "./request.ts";
import { cacheHeaders } from "./respond/respond.ts";
import { negotiateVersion } from "./versions/negotiate.ts";
import type { ApiVersion, ReadVersions } from "./versions/versions.ts";

const RESPONSE_SHAPING_HEADERS = [
  "content-type",
  "accept",
  "if-match",
  "if-none-match",
  "if-unmodified-since",
] as const;

type ResourceDependencies = {
  readonly config: Config;
  readonly authenticator: Authenticator;
  readonly csrf: CsrfProtection;
  readonly database: Database;
  readonly catalog: () => Catalog;
  readonly catchUp: CatalogRefresh;
  readonly versions: ReadVersions;
  /** Null: nothing can be left for later here. */
  readonly queueTask?: QueueTask | null;
  readonly counts?: ServiceCounters;
};

type ResourceInterface = TaskHandler & {
  readonly handle: GatewayHandler;
  /** Whether there is a collection of that name, whoever asks. */
  has(name: string): boolean;
};

/** What is known of a request before its address is looked up. */
type AuthenticatedRequest = Pick<ResourceRequest, "request" | "address" | "caller"> & {
  readonly served: readonly ApiVersion[];
};

/** With so many a request is tried while the schema changes. */
const MOST_ATTEMPTS = 4;

/** Shared by all requests that have none: nobody changes them. */
const NO_PARAMETERS = new URLSearchParams();

/** `/users` and `/api/v<N>/<collection>`: each stage may refuse in its own way, and only `perform` asks Postgres. */
export function makeResourceInterface(dependencies: ResourceDependencies): ResourceInterface {
  const { config, authenticator, csrf, database, catalog: currentCatalog, catchUp, versions, queueTask } = dependencies;
  const { counts = makeServiceCounters() } = dependencies;
  const planIntent = makeResourcePlanner(config, counts.plans);
  const prepareFor = ({ catalog, caller }: ResourceRequest, intent: Intent, planKey?: object) =>
    bindRequest(planIntent(catalog, caller, intent, planKey), intent);
  const explainer = new ErrorExplainer(config);
  const contextOf = makeResourceContexts(config);
  const bodyLimits: ResourceBodyLimits = {
    rows: makeBodyLimits(config),
    row: makeBodyLimits(config, config.maxRowBytes),
  };
  const { run: runIdempotently, runInTransaction: runIdempotentlyInTransaction } = makeIdempotentRunner(config, counts);

  /** Null: nothing of this interface is at that address. */
  const parse = ({ request, address, caller, served }: AuthenticatedRequest): ResourceRequest | null => {
    const catalog = currentCatalog();
    const parameters = request.rawQuery === "" ? NO_PARAMETERS : new URLSearchParams(request.rawQuery);
    const terms = { versions: served, publicUrl: config.publicUrl };
    const { negotiated: agreed, version, notice } = negotiateVersion(request, address, parameters, terms);
    const collections = collectionsOf(catalog, { role: caller.role, version: version.number });
    const inProfile = resolveProfile(address, request, catalog);
    const target = inProfile && findTarget(inProfile, collections);
    if (!target) return null;
    const common = {
      request,
      caller,
      catalog,
      collections,
      address: inProfile,
      target,
      parameters,
      negotiated: agreed,
      notice,
    };
    return { ...common, settings: config, bodyLimits };
  };

  const contextFor = ({ request, caller, catalog, target }: ResourceRequest) =>
    contextOf({ request, caller, catalog, schema: target.collection.table.schema });
  const runWithinTransaction =
    (parsed: ResourceRequest, ask: RunStatement): RunIntent =>
    (intent, model) =>
      runInTransaction(ask, prepareFor(parsed, intent, model)).then(toResourceRows, explainer.rememberIntent(intent));

  const transactionFor = (parsed: ResourceRequest): ResourceTransaction => {
    const context = contextFor(parsed);
    const options: StatementRunOptions = {
      rollback: false,
      isolation: null,
      before: undefined,
      signal: parsed.request.signal,
    };
    return {
      run: (intent, model) =>
        runRequest(prepareFor(parsed, intent, model), context, database, options).then(
          toResourceRows,
          explainer.rememberIntent(intent),
        ),
      inTransaction: (work) => database.transaction(context, (query) => work(runWithinTransaction(parsed, query))),
    };
  };

  const handle: GatewayHandler = async (request) => {
    const address = parseAddress(request.path);
    const isOurs = address.base !== "" || isAtRoot(address);
    if (!isOurs) throw notFound();
    request.stages.enter("caller");
    request.addResponseHeaders(cacheHeaders(null));
    let caller: Caller;
    try {
      const identified = authenticateCaller(request, { authenticator, csrf });
      caller = identified instanceof Promise ? await identified : identified;
    } catch (refusal) {
      await addVersionHeaders(request, address);
      throw refusal;
    }
    request.addResponseHeaders(cacheHeaders(caller));
    request.stages.enter("parse");
    const served = versions();
    const authenticated = {
      request: isReadMethod(request.method) ? request : withRereadableBody(request),
      address,
      caller,
      served: served instanceof Promise ? await served : served,
    };
    for (let attempts = 1; ; attempts++) {
      const parsed = parse(authenticated);
      if (!parsed) throw notFound();
      if (address.canonical !== request.path) return redirectToCanonical(parsed);
      try {
        request.stages.enter("run");
        return await respondTo(parsed);
      } catch (thrown) {
        // A statement that names what is there no more has done nothing.
        const isAgain = attempts < MOST_ATTEMPTS && isSchemaOutdated(thrown) && (await catchUp(parsed.catalog));
        if (!isAgain) throw explainer.explain(thrown, parsed);
      }
    }
  };

  /** For who is refused before the version is known. Where it cannot be settled, the refusal comes first. */
  const addVersionHeaders = async (request: GatewayRequest, address: ResourceAddress): Promise<void> => {
    const terms = { versions: await versions(), publicUrl: config.publicUrl };
    try {
      negotiateVersion(request, address, new URLSearchParams(request.rawQuery), terms);
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
    }
  };

  /** Whatever role asks, and in whatever version: which addresses there are is the same for all. */
  const addresses = () => collectionsOf(currentCatalog(), { role: config.anonRole, version: 1 });
  const isAtRoot = ({ segments: [name = ""] }: ResourceAddress): boolean => addresses().findAtRoot(name) !== undefined;

  const respondTo = (parsed: ResourceRequest): GatewayResponse | Promise<GatewayResponse> => {
    const { request } = parsed;
    const allow = methodsOf(parsed);
    if (!allow.includes(request.method)) throw methodNotAllowed(request.method, allow.join(", "));
    if (request.method === "OPTIONS") return { status: 204, headers: { Allow: allow.join(", ") }, body: null };
    return isReadMethod(request.method) ? runMethod(parsed, transactionFor(parsed)) : runChange(parsed);
  };

  const runChange = async (parsed: ResourceRequest): Promise<GatewayResponse> => {
    const { request, target, caller } = parsed;
    if (queueTask && target.action && prefersAsync(request)) {
      const body = await readResourceBody(parsed);
      await checkAction(withBody(parsed, body));
      const rawQuery = queryWithoutApiKey(request.rawQuery);
      return queueTask({ request: { ...request, rawQuery }, body, caller, version: parsed.collections.version });
    }
    const key = readIdempotencyKey(request.headers);
    const make = (repeated: ResourceRequest, ask: RunStatement) => {
      const askWithin = runWithinTransaction(repeated, ask);
      return runMethod(repeated, { run: askWithin, inTransaction: (work) => work(askWithin) });
    };
    if (key === null) {
      if (!parsed.negotiated.links && !parsed.parameters.has("links")) return runMethod(parsed, transactionFor(parsed));
      // Links are read after the change, which must not be committed if it is tried again because of them.
      const whole = withBody(parsed, await readResourceBody(parsed));
      return database.transaction(contextFor(parsed), (ask) => make(whole, ask));
    }
    return runIdempotently(await toKeyedRequest(parsed, { key, make }), (work) =>
      database.transaction(contextFor(parsed), work),
    );
  };

  const prepareTask: TaskHandler["prepareTask"] = async (request, caller) => {
    const parsed = parse({ request, address: parseAddress(request.path), caller, served: await versions() });
    if (!parsed?.target.action) throw notFound();
    const timeoutMs = config.taskTimeout * 1000;
    const make = (repeated: ResourceRequest, ask: RunStatement) =>
      callAction(repeated, runWithinTransaction(repeated, ask));
    const key = readIdempotencyKey(request.headers);
    const change = key === null ? null : await toKeyedRequest(parsed, { key, make });
    return {
      transact: (work) => database.transaction(contextFor(parsed), work, { timeoutMs }),
      execute: async (ask) => {
        try {
          return await (change ? runIdempotentlyInTransaction(change, ask) : make(parsed, ask));
        } catch (thrown) {
          throw explainer.explain(thrown, parsed);
        }
      },
    };
  };

  return {
    handle,
    has: (name) => addresses().find(name) !== undefined,
    prepareTask,
    explainError: (thrown, { role }) =>
      explainError(thrown, {
        anonymous: role === config.anonRole,
        catalog: currentCatalog(),
        version: 1,
        collection: null,
        sent: () => [],
      }),
  };
}

function runMethod(parsed: ResourceRequest, transaction: ResourceTransaction): Promise<GatewayResponse> {
  const { target, request, caller, settings } = parsed;
  const { privileges: may } = target.collection;
  const { run: ask } = transaction;
  // Of a role that is not in the catalogue Postgres itself says whether there is one.
  const isKnown = parsed.catalog.roles.has(caller.role);
  const permitted = (isPermitted: boolean) => {
    if (isKnown && !isPermitted) throw permissionDenied({ anonymous: caller.role === settings.anonRole });
  };
  if (target.action) return callAction(parsed, ask);
  switch (request.method) {
    case "POST":
      permitted(may.create);
      return createRows(parsed, transaction);
    case "PUT":
    case "PATCH":
      permitted(may.update);
      return changeRow(parsed, ask);
    case "DELETE":
      permitted(may.delete);
      return deleteRow(parsed, ask);
    default:
      permitted(may.read);
      return target.key === null ? readList(parsed, ask) : readRow(parsed, ask);
  }
}

function methodsOf({ target: { collection, key, action } }: ResourceRequest): readonly string[] {
  if (action) return ["OPTIONS", "POST"];
  return key === null ? collection.methods.collection : collection.methods.row;
}

function isReadMethod(method: string): boolean {
  return method === "GET" || method === "HEAD";
}

/** Addresses are lower case, with hyphens and without a slash at their end. What changes something is not sent on. */
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

type RowsResult = { readonly body: unknown; readonly page: number | null; readonly total: number | null };

function toResourceRows({ body, page, total }: RowsResult): ResourceRows {
  return { text: String(body), count: page ?? 0, total };
}

type ResourceContextSettings = Pick<Config, "usersAccess" | "appSettings" | "extraSearchPath" | "readDatabaseUrls">;
type ResourceContextRequest = {
  readonly request: GatewayRequest;
  readonly caller: Caller;
  readonly catalog: Catalog;
  readonly schema: string;
};

/** All that Postgres is told before the statement. Policies know this door by `request.interface`. */
function makeResourceContexts(settings: ResourceContextSettings) {
  const contexts = makeCallerSettings(settings);
  const readYourWrites = makeReadYourWrites(settings);
  const searchPathFrom = makeSearchPathSetting(settings.extraSearchPath);
  return ({ request, caller, catalog, schema }: ResourceContextRequest): StatementContext => {
    const { id, method, path, headers } = request;
    const { role, settings: callerSettings } = contexts(
      caller,
      requestInfoOf("resource", { id, method, path, headers }),
    );
    return {
      role,
      settings: [searchPathFrom(schema), ...roleSettings(catalog.roles.get(role)), ...callerSettings],
      callerKey: () => callerKey(caller.claims, () => request.connection().address),
      ...readYourWrites(caller, request),
    };
  };
}

type KeyedChange = Pick<KeyedRequest, "key"> & {
  readonly make: (parsed: ResourceRequest, ask: RunStatement) => Promise<GatewayResponse>;
};

/** A write under an Idempotency-Key. What it is told under one version of the interface is not what it is told under another. */
async function toKeyedRequest(parsed: ResourceRequest, { key, make }: KeyedChange): Promise<KeyedRequest> {
  const { request, caller, address, collections } = parsed;
  const body = await readResourceBody(parsed);
  const repeated = withBody(parsed, body);
  return {
    key,
    scope: "resource",
    caller,
    request,
    parts: [request.method, address.canonical, queryWithoutApiKey(request.rawQuery), String(collections.version), body],
    shaping: RESPONSE_SHAPING_HEADERS,
    make: (ask) => make(repeated, ask),
  };
}
