import type { CacheHits } from "../../engine/cache/recent-map.ts";
import type { Catalog } from "../../engine/catalog/catalog.ts";
import { runStepwise } from "../../engine/concurrency/stepwise.ts";
import type { Config } from "../../engine/config/config.ts";
import type { Database } from "../../engine/database/database.ts";
import type { IsolationLevel } from "../../engine/database/pipelined-batch.ts";
import type { Statement, StatementContext } from "../../engine/database/statement.ts";
import type { RunStatement } from "../../engine/database/transaction.ts";
import type { ApiError } from "../../engine/errors.ts";
import type { Authenticator } from "../../engine/identity/authenticator.ts";
import type { Caller } from "../../engine/identity/caller.ts";
import { makeCallerSettings } from "../../engine/identity/caller-settings.ts";
import { makeServiceCounters, type ServiceCounters } from "../../engine/observability/counters.ts";
import { quotedName } from "../../engine/pg-client/quoted-name.ts";
import type { ResponseOptions } from "../../engine/statement/intent.ts";
import type { Plan } from "../../engine/statement/plan/plan.ts";
import { makeRequestPreparer, type PreparedRequest, type RequestPreparer } from "../../engine/statement/prepare.ts";
import { estimateTotal, runInTransaction, runRequest } from "../../engine/statement/run.ts";
import { makeBodyLimits } from "../../http/body-limit.ts";
import type { GatewayHandler, GatewayRequest } from "../http/request.ts";
import { type GatewayResponse, isBodyStream, type ResponseBody } from "../http/response.ts";
import { TABLE_PREFIX } from "../http/table-prefix.ts";
import { type KeyedRequest, makeIdempotentRunner, readIdempotencyKey } from "../idempotency/idempotent-runner.ts";
import { type PreparedTask, prefersAsync, type QueueTask, type TaskHandler } from "../tasks/task-request.ts";
import { authenticateTableCaller } from "./authenticate.ts";
import { toTableError, visibleColumnHint } from "./explain-error.ts";
import { NO_BODY, type ParsedBody, parseBody } from "./parse/body.ts";
import { parseContentType } from "./parse/media-type.ts";
import { queryWithoutApiKey } from "./parse/query-string.ts";
import {
  hasRequestBody,
  parseTableRequest,
  parseTableTarget,
  type TableParseSettings,
  type TableRequest,
} from "./parse/request.ts";
import { type PlannedTableRequest, RequestShapeCache, requestShape } from "./request-shape-cache.ts";
import { allowedMethods, makeRootDescription } from "./respond/describe.ts";
import { respond } from "./respond/respond.ts";
import { makeTableContext, requestedIsolation } from "./statement-context.ts";

const SHAPING_HEADERS = ["content-type", "content-profile", "accept", "prefer"] as const;

type TableDependencies = {
  readonly config: Config;
  readonly authenticator: Authenticator;
  readonly database: Database;
  readonly catalog: () => Catalog;
  /** Null: nothing can be left for later here, so calls are answered at once whatever the client would prefer. */
  readonly queueTask?: QueueTask | null;
  readonly counts?: ServiceCounters;
};

/** What was asked for, read and planned. */
type TableRequestState = PlannedTableRequest & {
  readonly request: GatewayRequest;
  readonly body: Buffer;
  readonly caller: Caller;
  readonly context: StatementContext;
  readonly isolation: IsolationLevel | null;
};

type TableInterface = TaskHandler & { readonly handle: GatewayHandler };

/** From here on a body's values are put together in steps. */
const LARGE_BODY_BYTES = 64 * 1024;

/** `/rest/v1`: each stage may refuse in its own way, and only the one called run asks Postgres. */
export function makeTableInterface({
  config,
  authenticator,
  database,
  catalog: current,
  queueTask,
  counts = makeServiceCounters(),
}: TableDependencies): TableInterface {
  const { prepare, prepareInSteps } = makeTablePreparer(config, counts.plans);
  const contextOf = makeTableContext(makeCallerSettings(config), config);
  const deployment = tableParseSettings(config);
  const deploymentWith = ({ timeZones }: Catalog): TableParseSettings => ({ ...deployment, timeZones });
  const shapeCache = new RequestShapeCache(counts.forms);
  const describe = makeRootDescription(config);
  const before = preRequestStatement(config);
  const bodyLimitOf = makeBodyLimits(config);
  const { run: runOnce, runInTransaction: runOnceInTransaction } = makeIdempotentRunner(config, counts);

  const answer = (
    request: GatewayRequest,
    caller: Caller,
    content: ParsedBody,
  ): GatewayResponse<ResponseBody> | Promise<GatewayResponse<ResponseBody>> => {
    const catalog = current();
    const { method, rawQuery, headers } = request;
    const raw = { method, path: pathBelowPrefix(request), rawQuery, headers, content };
    const shape = requestShape(raw);
    const cached = shape && shapeCache.find(shape, rawQuery, caller.role, catalog);
    const parsed = cached?.parsed ?? parseTableRequest(raw, deploymentWith(catalog));
    if (parsed.action.kind === "options") {
      request.stages.enter("response");
      return respondToOptions(parsed, catalog, caller.role);
    }
    if (parsed.action.kind === "describe") {
      return describe({ request, parsed, tables: parsed.action.tables, caller, catalog });
    }

    request.stages.enter("plan");
    const { intent } = parsed.action;
    const { body } = content;
    if (body.length > LARGE_BODY_BYTES) {
      const steps = prepareInSteps(intent, responseOptions(parsed), catalog, caller.role);
      const perform = (prepared: PreparedRequest) => run(request, caller, body, catalog, { parsed, intent, prepared });
      const prepared = runStepwise(steps, request.signal);
      return prepared instanceof Promise ? prepared.then(perform) : perform(prepared);
    }
    const planned = cached ?? {
      parsed,
      intent,
      prepared: prepare(intent, responseOptions(parsed), catalog, caller.role),
    };
    if (shape && !cached) shapeCache.add(shape, rawQuery, caller.role, planned);
    return run(request, caller, body, catalog, planned);
  };

  const run = (
    request: GatewayRequest,
    caller: Caller,
    body: Buffer,
    catalog: Catalog,
    { parsed, intent, prepared }: PlannedTableRequest,
  ): GatewayResponse<ResponseBody> | Promise<GatewayResponse<ResponseBody>> => {
    const { plan } = prepared;
    const context = contextOf({ request, path: pathBelowPrefix(request), caller, catalog, parsed, plan });

    request.stages.enter("transaction");
    const isolation = requestedIsolation({ caller, catalog, plan });
    const state: TableRequestState = { request, body, caller, parsed, intent, prepared, context, isolation };
    if (rollsBack(config, parsed)) return answerNow(state, true);
    // A key that cannot be read is refused whatever the client would prefer.
    const key = plan.readOnly ? null : readIdempotencyKey(request.headers);
    const isCall = plan.kind === "call" && request.method === "POST";
    if (queueTask && isCall && prefersAsync(request)) {
      const rawQuery = queryWithoutApiKey(request.headers, request.rawQuery);
      return queueTask({ request: { ...request, rawQuery }, body, caller, version: null });
    }
    return key === null ? answerNow(state, false) : answerOnce(state, key);
  };

  const answerOnce = (
    { request, body, caller, parsed, prepared, context, isolation }: TableRequestState,
    key: string,
  ) => {
    const make = respondInTransaction(parsed, prepared);
    return runOnce(
      toKeyedRequest({ key, request, body, caller, make }),
      makeTransaction({ context, database, isolation, before }),
    );
  };

  const answerNow = async (state: TableRequestState, rollback: boolean): Promise<GatewayResponse<ResponseBody>> => {
    const { request, parsed, intent, prepared, context, isolation } = state;
    const { plan } = prepared;
    const result = await runRequest(prepared, context, database, {
      rollback,
      isolation,
      before,
      signal: request.signal,
    });
    try {
      const dependencies = { context, database, maxRows: config.maxRows };
      const total = intent.count === null ? result.total : await estimateTotal(plan, intent, result, dependencies);
      request.stages.enter("response");
      return respond(parsed, plan, { ...result, total, body: decodeBinaryBody(result.body, plan) });
    } catch (error) {
      // Nobody is going to read what is still coming.
      if (isBodyStream(result.body)) await result.body.return?.();
      throw error;
    }
  };

  /** As 405 has to (RFC 9110), unless somebody has told them already. */
  const addAllowHeader = (error: ApiError, request: GatewayRequest, role: string): ApiError => {
    if (error.headers.Allow !== undefined) return error;
    const catalog = current();
    const { resource, profile } = parseTableTarget(
      { ...request, path: pathBelowPrefix(request) },
      deploymentWith(catalog),
    );
    return error.withHeaders({ Allow: allowedMethods(resource, { schema: profile.schema, catalog, role }) });
  };

  const prepareTask: TaskHandler["prepareTask"] = async (request, caller) => {
    const catalog = current();
    const content = await readContentOf(request, caller);
    const { body } = content;
    const path = pathBelowPrefix(request);
    const parsed = parseTableRequest({ ...request, path, content }, deploymentWith(catalog));
    if (parsed.action.kind !== "statement") throw new TypeError("Only statements are left for later");
    const { intent } = parsed.action;
    const prepared = await runStepwise(prepareInSteps(intent, responseOptions(parsed), catalog, caller.role));
    const { plan } = prepared;
    const context = contextOf({ request, path, caller, catalog, parsed, plan });
    const isolation = requestedIsolation({ caller, catalog, plan });
    const timeoutMs = config.taskTimeout * 1000;
    const make = respondInTransaction(parsed, prepared);
    const key = readIdempotencyKey(request.headers);
    const change = key === null ? null : toKeyedRequest({ key, request, body, caller, make });
    return {
      transact: makeTransaction({ context, database, isolation, before, timeoutMs }),
      execute: change ? (ask) => runOnceInTransaction(change, ask) : make,
    };
  };

  const readContentOf = async (request: GatewayRequest, caller: Caller): Promise<ParsedBody> => {
    const body = await request.readBody(bodyLimitOf(caller));
    const format = parseContentType(request.headers["content-type"]);
    return runStepwise(parseBody(body, format, request.holdMemory), request.signal);
  };

  const explain: TaskHandler["explainError"] = (thrown, { role }) =>
    toTableError(thrown, {
      anonymous: role === config.anonRole,
      columnHint: (hint) => visibleColumnHint(hint, current(), role),
    });

  const handle: GatewayHandler = async (request) => {
    request.stages.enter("jwt");
    const identified = authenticateTableCaller(request, authenticator, config.requireApiKey);
    const caller = identified instanceof Promise ? await identified : identified;
    request.admit(caller);
    try {
      request.stages.enter("parse");
      const content = hasRequestBody(request.method) ? await readContentOf(request, caller) : NO_BODY;
      return await answer(request, caller, content);
    } catch (thrown) {
      const error = explain(thrown, caller);
      throw error.status === 405 ? addAllowHeader(error, request, caller.role) : error;
    }
  };

  return { handle, prepareTask, explainError: explain };
}

function pathBelowPrefix({ path }: Pick<GatewayRequest, "path">): string {
  return path.slice(TABLE_PREFIX.length);
}

/** In a transaction that is begun and ended by somebody else. */
function respondInTransaction(
  parsed: TableRequest,
  prepared: PreparedRequest,
): (ask: RunStatement) => Promise<GatewayResponse> {
  const { plan } = prepared;
  return async (ask) => {
    const result = await runInTransaction(ask, prepared);
    return respond(parsed, plan, { ...result, body: decodeBinaryBody(result.body, plan) });
  };
}

/** Binary bodies come as hexadecimal digits. */
function decodeBinaryBody<B extends ResponseBody>(body: B | null, { body: bodyPlan }: Plan): B | Buffer | null {
  const isBinary = (bodyPlan.kind === "aggregate" || bodyPlan.kind === "value") && bodyPlan.isBinary;
  return isBinary && body !== null ? Buffer.from(String(body), "hex") : body;
}

function responseOptions({ accept, method, preferences }: TableRequest): ResponseOptions {
  return {
    formats: accept,
    includesBody: method !== "HEAD",
    maxAffected: preferences.handling === "strict" ? preferences.maxAffected : null,
  };
}

function rollsBack({ txEnd }: Config, { preferences }: TableRequest): boolean {
  return preferences.tx === null ? txEnd.startsWith("rollback") : preferences.tx === "rollback";
}

function respondToOptions({ action, profile }: TableRequest, catalog: Catalog, role: string): GatewayResponse {
  if (action.kind !== "options") throw new TypeError("Only OPTIONS asks for methods");
  return {
    status: 200,
    headers: { Allow: allowedMethods(action.resource, { schema: profile.schema, catalog, role }) },
    body: null,
  };
}

/** The call of PGRST_DB_PRE_REQUEST, a name with or without its schema; ahead of each request's own statement. */
function preRequestStatement({ preRequest: name }: Config): Statement | undefined {
  if (name === null) return undefined;
  return { text: `select ${quotedName(...name.split("."))}()`, values: [] };
}

type RunTransaction = PreparedTask["transact"];
type TableTransaction = {
  readonly context: StatementContext;
  readonly database: Database;
  readonly isolation: IsolationLevel | null;
  /** Called at every attempt: it may refuse one that would be told what an earlier one was. */
  readonly before: Statement | undefined;
  /** Of each statement; without it the usual limit holds. */
  readonly timeoutMs?: number;
};
type KeyedTableRequest = {
  readonly key: string;
  readonly request: GatewayRequest;
  readonly body: Buffer;
  readonly caller: Caller;
  readonly make: (ask: RunStatement) => Promise<GatewayResponse>;
};

/** A write under an Idempotency-Key. */
function toKeyedRequest({ key, request, body, caller, make }: KeyedTableRequest): KeyedRequest {
  return {
    key,
    scope: "table",
    caller,
    request,
    parts: [request.method, request.path, queryWithoutApiKey(request.headers, request.rawQuery), body],
    shaping: SHAPING_HEADERS,
    make,
  };
}

/** Begun by itself, as the function that is called or the caller's role would have it. */
function makeTransaction({ context, database, isolation, before, timeoutMs }: TableTransaction): RunTransaction {
  return (work) => {
    const inside = async (ask: RunStatement) => {
      if (before) await ask(before);
      return work(ask);
    };
    const options = { ...(isolation !== null && { isolation }), ...(timeoutMs !== undefined && { timeoutMs }) };
    return database.transaction(context, inside, options);
  };
}

/** What the settings say of reading requests. */
export function tableParseSettings({
  schemas,
  rootSpec,
  openapiMode,
  txEnd,
}: Config): Omit<TableParseSettings, "timeZones"> {
  return {
    schemas,
    // The schema is that of the profile.
    rootFunction: rootSpec?.split(".").at(-1) ?? null,
    describesItself: openapiMode !== "disabled",
    txOverride: txEnd.endsWith("allow-override"),
  };
}

/** What they say of planning them. */
export function makeTablePreparer(config: Config, hits?: CacheHits): RequestPreparer {
  const { aggregates, maxRows, safeWrites, legacyTargetNames, planEnabled } = config;
  return makeRequestPreparer({ aggregates, maxRows, safeWrites, legacyTargetNames, explainEnabled: planEnabled }, hits);
}
