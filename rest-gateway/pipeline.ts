import type { Caller } from "#accounts/identity";
import type { Catalog, CatalogRefresh } from "#catalog";
import {
  type GatewayRequest,
  type GatewayResponse,
  type HttpError,
  isBodyStream,
  notFound,
  type ResponseBody,
} from "#http";
import {
  bindRequest,
  bindRequestInSteps,
  type Intent,
  type Plan,
  type PlannedRequest,
  type PreparedRequest,
  type RunResult,
  runInTransaction,
  runRequest,
} from "#planner";
import {
  type Database,
  type IsolationLevel,
  isSchemaOutdated,
  type RunStatement,
  type Statement,
  type StatementContext,
} from "#postgres/database";
import { runStepwise } from "#runtime/concurrency";
import { type IdempotentRunner, type KeyedRequest, readIdempotencyKey } from "./idempotency/idempotent-runner.ts";
import { requestedIsolation, type StatementContexts } from "./statement-context.ts";
import { prefersAsync, type QueueTask } from "./tasks/task-queue.ts";
import type { PreparedTask } from "./tasks/task-runner.ts";

/** What a dialect has read in a request. */
export type ParsedRequest = {
  readonly catalog: Catalog;
  /** A function where it is parsed in the request's transaction, or where other rows have to be read for it first. */
  readonly intent: Intent | ((run: RunIntent) => Promise<Intent>);
  /** The same object for intents that differ in their values only: their plan is found by it. */
  readonly planKey?: object | undefined;
  /** Runs before the statement, in the same transaction; it may refuse the request. */
  readonly precheck?: ((run: RunIntent) => Promise<void>) | undefined;
  /** The first schema in which SQL looks for names. */
  readonly schema: string;
  readonly timezone: string | null;
  /** The version of the interface; null where it has none. */
  readonly version: number | null;
  /** A function where it has not been read yet. */
  readonly body: Buffer | (() => Promise<Buffer>);
  /** Whether the transaction is rolled back in the end. */
  readonly rollback: boolean;
  /** Whether several statements have to succeed or fail together. */
  readonly needsTransaction: boolean;
  /** Whether `Prefer: respond-async` applies. */
  readonly isQueueable: boolean;
};

/** What a request gets that needs no statement, such as a redirect. */
export type ReadyResponse = { readonly response: Awaitable<GatewayResponse<ResponseBody>> };

/** Runs a statement as the caller, in the request's transaction if it has one. */
export type RunIntent = (intent: Intent, planKey?: object) => Promise<RunResult>;

type Awaitable<T> = T | Promise<T>;

/** How clients of one interface write requests, and how they get responses and errors. */
export type Dialect<Parsed extends ParsedRequest> = {
  /** Null for OPTIONS at an address that exists. */
  parse(request: GatewayRequest, caller: Caller): Awaitable<Parsed | ReadyResponse | null>;
  respond(parsed: Parsed, plan: Plan, result: RunResult, run: RunIntent): Awaitable<GatewayResponse<ResponseBody>>;
  /** `parsed` is null where parsing failed, `intent` where it was no statement that failed. */
  explainError(thrown: unknown, caller: Caller, parsed: Parsed | null, intent: Intent | null): HttpError;
  /** The value of `Allow`. */
  allowedMethods(request: GatewayRequest, caller: Caller): Awaitable<string>;
};

/** One interface: its dialect, and what the other stages need. */
export type Pipeline<Parsed extends ParsedRequest> = {
  readonly name: "table" | "resource";
  readonly dialect: Dialect<Parsed>;
  authenticate(request: GatewayRequest): Awaitable<Caller>;
  plan(parsed: Parsed, caller: Caller, intent: Intent, planKey: object | undefined): PlannedRequest;
  readonly database: Database;
  readonly contextOf: StatementContexts;
  /** Whether the called function or the caller's role chooses the isolation level. */
  readonly choosesIsolation: boolean;
  /** Runs first in each transaction; it may refuse the request. */
  readonly preRequest: Statement | undefined;
  /** Null: a request that names what was dropped is not tried again. */
  readonly refreshCatalog: CatalogRefresh | null;
  /** Null: this deployment has no task queue. */
  readonly queueTask: QueueTask | null;
  readonly idempotency: IdempotentRunner;
  /** The headers that a retry under the same Idempotency-Key must repeat. */
  readonly shapingHeaders: readonly string[];
  queryWithoutApiKey(request: GatewayRequest): string;
  readonly optionsStatus: 200 | 204;
};

/** A request whose caller and meaning are known. */
export type ExecutableRequest<Parsed extends ParsedRequest> = {
  readonly request: GatewayRequest;
  readonly caller: Caller;
  readonly parsed: Parsed;
  readonly pipeline: Pipeline<Parsed>;
  /** That of the first statement serves them all: so they read from the same replica. */
  context: StatementContext | null;
};

/** While the schema changes, a request is tried with at most so many catalogues. */
export const MAX_ATTEMPTS = 4;

/** The values of a larger body are bound in steps, between which other requests are served. */
const LARGE_BODY_BYTES = 64 * 1024;

/** The request: authenticate → parse → plan → query → run → respond, the last four in `executeRequest`. */
export async function handleRequest<Parsed extends ParsedRequest>(
  received: GatewayRequest,
  pipeline: Pipeline<Parsed>,
): Promise<GatewayResponse<ResponseBody>> {
  const { dialect, refreshCatalog } = pipeline;
  received.stages.enter("authenticate");
  const authenticated = pipeline.authenticate(received);
  const caller = authenticated instanceof Promise ? await authenticated : authenticated;
  received.admit(caller);
  const request = refreshCatalog && mayHaveBody(received) ? withRereadableBody(received) : received;
  for (let attempt = 1; ; attempt++) {
    let parsed: Parsed | null = null;
    try {
      request.stages.enter("parse");
      const parsing = dialect.parse(request, caller);
      const found = parsing instanceof Promise ? await parsing : parsing;
      if (found === null) return await respondToOptions(request, caller, pipeline);
      if ("response" in found) return await found.response;
      parsed = found;
      const executable = { request, caller, parsed, pipeline, context: null };
      if (isQueued(executable)) return await queueRequest(executable);
      const key = idempotencyKeyOf(executable);
      if (key !== null) return await executeOnce(executable, key);
      return await (parsed.needsTransaction ? executeInTransaction(executable) : executeRequest(executable, null));
    } catch (thrown) {
      // A statement that names what was dropped has changed nothing.
      const mayRetry = parsed && refreshCatalog && attempt < MAX_ATTEMPTS && isSchemaOutdated(thrown);
      if (mayRetry && (await refreshCatalog(parsed!.catalog))) continue;
      throw await explainError(thrown, caller, parsed, request, pipeline);
    }
  }
}

/** plan → query → run → respond: in the transaction that was begun, or else in one round trip. */
async function executeRequest<Parsed extends ParsedRequest>(
  executable: ExecutableRequest<Parsed>,
  transaction: RunStatement | null,
): Promise<GatewayResponse<ResponseBody>> {
  const { request, parsed, pipeline } = executable;
  const { stages } = request;
  const runIntent: RunIntent = (intent, planKey) => runFurther(executable, transaction, intent, planKey);
  const preparing = prepareExecution(executable, runIntent);
  const { intent, prepared } = preparing instanceof Promise ? await preparing : preparing;
  let result: RunResult | null = null;
  try {
    stages.enter("run");
    result = await runPrepared(executable, transaction, prepared);
    stages.enter("respond");
    const response = pipeline.dialect.respond(parsed, prepared.plan, result, runIntent);
    return response instanceof Promise ? await response : response;
  } catch (error) {
    if (result === null) rememberIntent(error, intent);
    // Nobody reads the rest of the rows.
    else if (isBodyStream(result.body)) await result.body.return?.();
    throw error;
  }
}

type PreparedExecution = { readonly intent: Intent; readonly prepared: PreparedRequest };

/** plan → query: at once, unless rows have to be read for the intent, or the body is large. */
export function prepareExecution<Parsed extends ParsedRequest>(
  executable: ExecutableRequest<Parsed>,
  runIntent: RunIntent,
): Awaitable<PreparedExecution> {
  const { parsed } = executable;
  if (typeof parsed.intent === "function" || parsed.precheck || isLarge(parsed)) {
    return prepareInSteps(executable, runIntent);
  }
  const { intent } = parsed;
  return { intent, prepared: bindRequest(planOwn(executable, intent), intent) };
}

async function prepareInSteps<Parsed extends ParsedRequest>(
  executable: ExecutableRequest<Parsed>,
  runIntent: RunIntent,
): Promise<PreparedExecution> {
  const { request, parsed } = executable;
  const intent = typeof parsed.intent === "function" ? await parsed.intent(runIntent) : parsed.intent;
  if (parsed.precheck) await parsed.precheck(runIntent);
  const planned = planOwn(executable, intent);
  const prepared = isLarge(parsed)
    ? await runStepwise(bindRequestInSteps(planned, intent), request.signal)
    : bindRequest(planned, intent);
  return { intent, prepared };
}

function planOwn<Parsed extends ParsedRequest>(
  { request, caller, parsed, pipeline }: ExecutableRequest<Parsed>,
  intent: Intent,
): PlannedRequest {
  request.stages.enter("plan");
  const planned = pipeline.plan(parsed, caller, intent, parsed.planKey);
  request.stages.enter("query");
  return planned;
}

/** A statement besides the request's own, such as one that reads the row above in the address. */
export async function runFurther<Parsed extends ParsedRequest>(
  executable: ExecutableRequest<Parsed>,
  transaction: RunStatement | null,
  intent: Intent,
  planKey: object | undefined,
): Promise<RunResult> {
  const { request, caller, parsed, pipeline } = executable;
  request.stages.enter("plan");
  const planned = pipeline.plan(parsed, caller, intent, planKey);
  request.stages.enter("query");
  const prepared = bindRequest(planned, intent);
  request.stages.enter("run");
  try {
    return await runPrepared(executable, transaction, prepared);
  } catch (error) {
    rememberIntent(error, intent);
    throw error;
  }
}

function runPrepared<Parsed extends ParsedRequest>(
  executable: ExecutableRequest<Parsed>,
  transaction: RunStatement | null,
  prepared: PreparedRequest,
): Promise<RunResult> {
  if (transaction) return runInTransaction(transaction, prepared);
  const { request, parsed, pipeline } = executable;
  const { plan } = prepared;
  return runRequest(prepared, contextOf(executable, plan), pipeline.database, {
    rollback: parsed.rollback,
    isolation: isolationOf(executable, plan),
    before: pipeline.preRequest,
    signal: request.signal,
  });
}

export function contextOf<Parsed extends ParsedRequest>(
  executable: ExecutableRequest<Parsed>,
  plan: Plan | null,
): StatementContext {
  const { request, caller, parsed, pipeline } = executable;
  const { catalog, schema, timezone } = parsed;
  executable.context ??= pipeline.contextOf({ request, caller, catalog, schema, timezone, plan });
  return executable.context;
}

function isolationOf<Parsed extends ParsedRequest>(
  { caller, parsed, pipeline }: ExecutableRequest<Parsed>,
  plan: Plan | null,
): IsolationLevel | null {
  return pipeline.choosesIsolation ? requestedIsolation(caller, parsed.catalog, plan) : null;
}

function isLarge({ body }: ParsedRequest): boolean {
  return typeof body !== "function" && body.length > LARGE_BODY_BYTES;
}

async function respondToOptions<Parsed extends ParsedRequest>(
  request: GatewayRequest,
  caller: Caller,
  { dialect, optionsStatus }: Pipeline<Parsed>,
): Promise<GatewayResponse> {
  request.stages.enter("respond");
  return { status: optionsStatus, headers: { Allow: await dialect.allowedMethods(request, caller) }, body: null };
}

/** Which statement failed: a dialect may explain the error by the values that it had. */
const failedIntents = new WeakMap<Error, Intent>();

export function rememberIntent(error: unknown, intent: Intent): void {
  if (error instanceof Error) failedIntents.set(error, intent);
}

/** A 405 names the methods that the resource has (RFC 9110, section 15.5.6). */
export async function explainError<Parsed extends ParsedRequest>(
  thrown: unknown,
  caller: Caller,
  parsed: Parsed | null,
  request: GatewayRequest,
  { dialect }: Pipeline<Parsed>,
): Promise<HttpError> {
  const intent = thrown instanceof Error ? (failedIntents.get(thrown) ?? null) : null;
  const error = dialect.explainError(thrown, caller, parsed, intent);
  if (error.status !== 405 || error.headers.Allow !== undefined) return error;
  return error.withHeaders({ Allow: await dialect.allowedMethods(request, caller) });
}

function isQueued<Parsed extends ParsedRequest>({ request, parsed, pipeline }: ExecutableRequest<Parsed>): boolean {
  return pipeline.queueTask !== null && parsed.isQueueable && !parsed.rollback && prefersAsync(request);
}

/** A request is queued only if it can be parsed and planned. */
async function queueRequest<Parsed extends ParsedRequest>(
  executable: ExecutableRequest<Parsed>,
): Promise<GatewayResponse> {
  const { request, caller, parsed, pipeline } = executable;
  const body = await bodyOf(parsed);
  if (typeof parsed.intent === "function") await parsed.intent(rejectStatement);
  else planAhead(executable);
  const rawQuery = pipeline.queryWithoutApiKey(request);
  return pipeline.queueTask!({ request: { ...request, rawQuery }, body, caller, version: parsed.version });
}

const rejectStatement: RunIntent = () => {
  throw new TypeError("The intent of a request that can be queued depends on no rows");
};

/** Null for an intent that is only known in the transaction: it is that of a write. */
function planAhead<Parsed extends ParsedRequest>({ caller, parsed, pipeline }: ExecutableRequest<Parsed>): Plan | null {
  if (typeof parsed.intent === "function") return null;
  return pipeline.plan(parsed, caller, parsed.intent, parsed.planKey).plan;
}

/** Null without the header, and for reads, where the header has no effect. */
function idempotencyKeyOf<Parsed extends ParsedRequest>(executable: ExecutableRequest<Parsed>): string | null {
  const { request, parsed } = executable;
  if (request.headers["idempotency-key"] === undefined || parsed.rollback) return null;
  return planAhead(executable)?.readOnly ? null : readIdempotencyKey(request.headers);
}

async function executeOnce<Parsed extends ParsedRequest>(
  executable: ExecutableRequest<Parsed>,
  key: string,
): Promise<GatewayResponse> {
  return executable.pipeline.idempotency.run(await toKeyedRequest(executable, key), beginTransaction(executable));
}

async function executeInTransaction<Parsed extends ParsedRequest>(
  executable: ExecutableRequest<Parsed>,
): Promise<GatewayResponse> {
  // While a slow client sends its body, no connection is held.
  await bodyOf(executable.parsed);
  return beginTransaction(executable)((run) => executeWhole(executable, run));
}

/** In a transaction the result is never streamed. */
function executeWhole<Parsed extends ParsedRequest>(
  executable: ExecutableRequest<Parsed>,
  transaction: RunStatement,
): Promise<GatewayResponse> {
  return executeRequest(executable, transaction) as Promise<GatewayResponse>;
}

/** A transaction with the caller's settings, for one or more statements. */
function beginTransaction<Parsed extends ParsedRequest>(
  executable: ExecutableRequest<Parsed>,
): PreparedTask["transact"] {
  const { database, preRequest } = executable.pipeline;
  const plan = planAhead(executable);
  const context = contextOf(executable, plan);
  const isolation = isolationOf(executable, plan);
  const options = isolation === null ? {} : { isolation };
  return (work) => {
    const runWork = async (run: RunStatement) => {
      if (preRequest) await run(preRequest);
      return work(run);
    };
    return database.transaction(context, runWork, options);
  };
}

async function toKeyedRequest<Parsed extends ParsedRequest>(
  executable: ExecutableRequest<Parsed>,
  key: string,
): Promise<KeyedRequest> {
  const { request, caller, parsed, pipeline } = executable;
  // Versions may respond differently to the same request.
  const version = parsed.version === null ? [] : [String(parsed.version)];
  const body = await bodyOf(parsed);
  return {
    key,
    scope: pipeline.name,
    caller,
    request,
    parts: [request.method, request.path, pipeline.queryWithoutApiKey(request), ...version, body],
    shaping: pipeline.shapingHeaders,
    make: (run) => executeWhole(executable, run),
  };
}

/** A queued request, run later: its caller is known, and the transaction is begun by the task runner. */
export async function prepareTask<Parsed extends ParsedRequest>(
  request: GatewayRequest,
  caller: Caller,
  pipeline: Pipeline<Parsed>,
): Promise<PreparedTask> {
  const parsed = await pipeline.dialect.parse(request, caller);
  if (parsed === null || "response" in parsed || !parsed.isQueueable) throw notFound();
  const executable = { request, caller, parsed, pipeline, context: null };
  const key = readIdempotencyKey(request.headers);
  const keyed = key === null ? null : await toKeyedRequest(executable, key);
  return {
    transact: beginTransaction(executable),
    execute: async (run) => {
      try {
        return await (keyed ? pipeline.idempotency.runInTransaction(keyed, run) : executeWhole(executable, run));
      } catch (thrown) {
        throw await explainError(thrown, caller, parsed, request, pipeline);
      }
    },
  };
}

function bodyOf({ body }: ParsedRequest): Awaitable<Buffer> {
  return typeof body === "function" ? body() : body;
}

function mayHaveBody({ method }: GatewayRequest): boolean {
  return method !== "GET" && method !== "HEAD";
}

/** The same request, whose body can be read again when it is tried again. */
function withRereadableBody(request: GatewayRequest): GatewayRequest {
  let body: Promise<Buffer> | null = null;
  return { ...request, readBody: (limit) => (body ??= request.readBody(limit)) };
}
