import type { Caller } from "#accounts/identity";
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

export type Awaitable<T> = T | Promise<T>;

/** The stages that differ between the interfaces. Query and run are the same for all. */
export type Dialect<Parsed extends ParsedRequest> = {
  authenticate(request: GatewayRequest): Awaitable<Caller>;
  /** Null for OPTIONS at an address that exists. */
  parse(request: GatewayRequest, caller: Caller): Awaitable<Parsed | ReadyResponse | null>;
  plan(parsed: Parsed, caller: Caller, intent: Intent, planKey: object | undefined): PlannedRequest;
  respond(parsed: Parsed, plan: Plan, result: RunResult, run: RunIntent): Awaitable<GatewayResponse<ResponseBody>>;
  /** `parsed` is null where parsing failed, `intent` where it was no statement that failed. */
  explainError(thrown: unknown, caller: Caller, parsed: Parsed | null, intent: Intent | null): HttpError;
  /** The value of `Allow`. */
  allowedMethods(request: GatewayRequest, caller: Caller): Awaitable<string>;
};

/** What a dialect has read in a request. */
export type ParsedRequest = {
  readonly catalog: Catalog;
  /** A function where it is parsed in the request's transaction, or where other rows have to be read for it first. */
  readonly intent: Intent | ((run: RunIntent) => Promise<Intent>);
  /** The same object for intents that differ in their values only: their plan is found by it. */
  readonly planKey?: object | undefined;
  /** Runs before the statement, in the same transaction; it may refuse the request. */
  readonly precheck?: ((run: RunIntent) => Promise<void>) | undefined;
  /** The path without keys, where the intent does not say it. */
  readonly pathTemplate?: () => string;
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
  /** If set, the transaction is repeated while a concurrent one prevents it; it has no effect without `needsTransaction`. */
  readonly isolation?: IsolationLevel;
  /** Whether `Prefer: respond-async` applies. */
  readonly isQueueable: boolean;
};

/** What a request gets that needs no statement, such as a redirect. */
export type ReadyResponse = { readonly response: Awaitable<GatewayResponse<ResponseBody>> };

/** Runs a statement as the caller, in the request's transaction if it has one. */
export type RunIntent = (intent: Intent, planKey?: object) => Promise<RunResult>;

/** One interface: its dialect, and what the stages of all dialects need. */
export type Pipeline<Parsed extends ParsedRequest> = {
  readonly name: "table" | "resource";
  readonly dialect: Dialect<Parsed>;
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
  readonly recorder: RequestRecorder;
  /** The headers that a retry under the same Idempotency-Key must repeat. */
  readonly shapingHeaders: readonly string[];
  queryWithoutApiKey(request: GatewayRequest): string;
  readonly optionsStatus: 200 | 204;
};

/** What a statement is to do, and how: two intents of one shape have the same plan. */
export type PlannedIntent = { readonly intent: Intent; readonly planned: PlannedRequest };

type ContextRequest = {
  readonly request: GatewayRequest;
  readonly caller: Caller;
  readonly catalog: Catalog;
  readonly schema: string;
  readonly timezone: string | null;
  /** Null: not planned yet, and no function whose settings matter. */
  readonly plan: Plan | null;
};

export type StatementContexts = (request: ContextRequest) => StatementContext;

/** A request between its stages: its caller is known, and what the dialect has read in it. */
export type RequestState<Parsed extends ParsedRequest> = {
  readonly request: GatewayRequest;
  readonly caller: Caller;
  readonly pipeline: Pipeline<Parsed>;
  readonly parsed: Parsed;
  /** That of the first statement serves them all: so they read from the same replica. */
  context: StatementContext | null;
  /** The statement that failed: a dialect may explain the error by the values that it had. */
  failed: FailedStatement | null;
};

export type FailedStatement = { readonly error: unknown; readonly intent: Intent };
