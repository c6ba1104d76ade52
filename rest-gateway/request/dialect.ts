import type { Caller, ValidateClaims } from "#accounts/identity";
import type { Catalog } from "#catalog";
import type { CatalogRefresh } from "#catalog/loading";
import type { GatewayRequest, GatewayResponse, HttpError, ResponseBody } from "#http";
import type { RequestRecorder } from "#http/observability";
import type { Plan, PlannedRequest, RunResult } from "#planner";
import type { Intent } from "#planner/intent";
import type { Database, IsolationLevel } from "#postgres/database";
import type { Statement, StatementContext } from "#postgres/statement";
import type { IdempotentRunner } from "../idempotency/idempotent-runner.ts";
import type { QueueTask } from "../tasks/task-queue.ts";

export { TASKS_COLLECTION } from "../tasks/task-queue.ts";

/** The media type of a list of requests, and of a list of responses. */
export const BATCH_TYPE = "application/vnd.batch+json";

export type Awaitable<T> = T | Promise<T>;

export type CallerAuthentication = {
  authenticate(request: GatewayRequest): Awaitable<Caller>;
  /** Validates the claims of a caller again, for a response that continues. */
  validateClaims: ValidateClaims;
};

/** The stages that differ between the interfaces. Query and run are the same for all. */
export type Dialect<Parsed extends ParsedRequest> = CallerAuthentication & {
  /** Parses the request; null for OPTIONS at an address that exists. */
  parse(request: GatewayRequest, caller: Caller): Awaitable<Parsed | ReadyResponse | null>;
  plan(parsed: Parsed, caller: Caller, intent: Intent, planKey: object | undefined): PlannedRequest;
  respond(parsed: Parsed, plan: Plan, result: RunResult, run: RunIntent): Awaitable<GatewayResponse<ResponseBody>>;
  /** Explains an error. `parsed` is null if parsing failed, `intent` if no statement failed. */
  explainError(thrown: unknown, caller: Caller, parsed: Parsed | null, intent: Intent | null): HttpError;
  /** Returns the value of `Allow`. */
  allowedMethods(request: GatewayRequest, caller: Caller): Awaitable<string>;
};

/** A request as a dialect has parsed it. */
export type ParsedRequest = {
  readonly catalog: Catalog;
  /** The intent; a function if it is parsed in the request's transaction, or if other rows have to be read for it first. */
  readonly intent: Intent | ((run: RunIntent) => Promise<Intent>);
  /** The same object for intents of one role that differ in their values only; the plan is found by it. */
  readonly planKey?: object | undefined;
  /** Runs before the statement, in the same transaction; it may refuse the request. */
  readonly precheck?: ((run: RunIntent) => Promise<void>) | undefined;
  /** Returns the path without keys, if the intent does not contain it. */
  readonly pathTemplate?: () => string;
  /** The first schema in which SQL looks for names. */
  readonly schema: string;
  readonly timezone: string | null;
  /** The version of the interface; null if it has none. */
  readonly version: number | null;
  /** The body; a function if it has not been read yet. */
  readonly body: Buffer | (() => Promise<Buffer>);
  /** True if the transaction is rolled back in the end. */
  readonly rollback: boolean;
  /** True if several statements have to succeed or fail together. */
  readonly needsTransaction: boolean;
  /**
   * The isolation level. If it is set, the transaction is repeated while a concurrent one prevents it; it has no effect without
   * `needsTransaction`.
   */
  readonly isolation?: IsolationLevel;
  /** True if `Prefer: respond-async` applies. */
  readonly isQueueable: boolean;
};

/** A response that needs no statement, such as a redirect. */
export type ReadyResponse = { readonly response: Awaitable<GatewayResponse<ResponseBody>> };

/** Runs a statement as the caller, in the request's transaction if it has one. */
export type RunIntent = (intent: Intent, planKey?: object) => Promise<RunResult>;

/** The maximum number of catalogues with which a request is tried while the schema changes. */
export const MAX_ATTEMPTS = 4;

/** One interface: its dialect, and the dependencies of the stages of all dialects. */
export type Pipeline<Parsed extends ParsedRequest> = {
  readonly name: "table" | "resource";
  readonly dialect: Dialect<Parsed>;
  readonly database: Database;
  readonly contextOf: StatementContexts;
  /** True if the called function or the caller's role chooses the isolation level. */
  readonly choosesIsolation: boolean;
  /** The statement that runs first in each transaction; it may refuse the request. */
  readonly preRequest: Statement | undefined;
  /** Refreshes the catalogue; if null, a request that names dropped objects is not tried again. */
  readonly refreshCatalog: CatalogRefresh | null;
  /** Queues a task; null if this deployment has no task queue. */
  readonly queueTask: QueueTask | null;
  readonly idempotency: IdempotentRunner;
  readonly recorder: RequestRecorder;
  /** The headers that a retry under the same Idempotency-Key must repeat. */
  readonly shapingHeaders: readonly string[];
  queryWithoutApiKey(request: GatewayRequest): string;
  readonly optionsStatus: 200 | 204;
};

/** The intent of a statement with its plan: two intents of one shape have the same plan. */
export type PlannedIntent = { readonly intent: Intent; readonly planned: PlannedRequest };

type ContextRequest = {
  readonly request: GatewayRequest;
  readonly caller: Caller;
  readonly catalog: Catalog;
  readonly schema: string;
  readonly timezone: string | null;
  /** The plan; null if there is none yet, and no function whose settings matter. */
  readonly plan: Plan | null;
};

export type StatementContexts = (request: ContextRequest) => StatementContext;

/** A request between its stages, with its caller and the dialect's parsed request. */
export type RequestState<Parsed extends ParsedRequest> = {
  readonly request: GatewayRequest;
  readonly caller: Caller;
  readonly pipeline: Pipeline<Parsed>;
  readonly parsed: Parsed;
  /** The context of the first statement, which all statements share, so that they read from the same replica. */
  context: StatementContext | null;
  /** The statement that failed: a dialect may explain the error by the values that it had. */
  failed: FailedStatement | null;
};

export type FailedStatement = { readonly error: unknown; readonly intent: Intent };
