import type { IncomingHttpHeaders } from "node:http";
import { execute, subscribe } from "grafast";
import type { ExecutionArgs, GraphQLError, OperationDefinitionNode, OperationTypeNode } from "grafast/graphql";
import type { LimitCreatedUsers } from "#accounts";
import { type AuthenticationResult, callerKey } from "#accounts/identity";
import type { KeyedCounter, Tracing } from "#http/observability";
import { isTransaction } from "#plugins";
import {
  changedButResponseTooLarge,
  type Database,
  ResponseBudget,
  type ResultRow,
  type StatementContext,
} from "#postgres/database";
import {
  type AbortLike,
  runLongWork,
  runToCompletion,
  type Stepwise,
  waitForLargeWorkSlot,
} from "#runtime/concurrency";
import type { Logger } from "#runtime/log";
import { NotCompiled } from "../compile/not-compiled.ts";
import type { BoundOperation } from "../compile/operation-plans.ts";
import { estimateResponseBytes, type ResponseAmplification, tooComplexError } from "./document-size.ts";
import { GraphqlRefusal } from "./documents.ts";
import type { RowEventHub } from "./events.ts";
import type { OperationVariables } from "./exact-numbers.ts";
import type { IntrospectionAccess } from "./introspection-access.ts";
import type { MakeInsertNested } from "./nested-writes.ts";
import { runOperationTransaction } from "./operation-transaction.ts";
import { type CallerDatabase, makeWithPgClient } from "./pg-client.ts";
import type { ServedSchema } from "./role-schemas.ts";
import { type CompiledRunOptions, type OperationResult, runCompiled } from "./run-compiled.ts";
import { type GrafastResults, SubscriptionResults } from "./subscription-delivery.ts";

/** The parameters of a GraphQL request, over HTTP or WebSocket. */
export type OperationParameters = {
  readonly query: string;
  readonly operationName: string | null;
  readonly variables: OperationVariables;
  /** The variables with ExactNumbers. */
  readonly parseExactVariables: () => OperationVariables;
};

/** The caller and the request that an operation came with. */
export type OperationRequestInfo = {
  readonly authentication: AuthenticationResult;
  readonly requestId: string;
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  /** The client's address; null when unknown. */
  readonly address: () => string | null;
  /** Aborted when the client has disconnected. */
  readonly signal?: AbortLike;
  /** Sets headers of the response, if it has any. */
  readonly addResponseHeaders?: (headers: Readonly<Record<string, string>>) => void;
  /** Return `data` as JSON text. */
  readonly asText?: boolean;
};

export type OperationOutcome =
  | { readonly kind: "result"; readonly result: OperationResult }
  | { readonly kind: "stream"; readonly results: SubscriptionResults };

/** A checked operation that is ready to run. */
export type PreparedOperation = ExecutionArgs & {
  readonly kind: `${OperationTypeNode}`;
  /** The approximate memory of its document, which other operations may share. */
  readonly documentBytes: number;
  run(): Promise<OperationOutcome>;
  /** Call when the response has been sent, or will not be. */
  release(): void;
};

/** Synchronous, unless the schema of the caller's role must be built first or the document is large. */
export type PrepareOperation = (
  parameters: OperationParameters,
  requestInfo: OperationRequestInfo,
) => PreparedOperation | Promise<PreparedOperation>;

type OperationDependencies = {
  readonly schemaOf: (role: string) => ServedSchema | Promise<ServedSchema>;
  readonly introspection: IntrospectionAccess;
  readonly database: Database;
  readonly events: RowEventHub;
  readonly makeInsertNested: MakeInsertNested;
  readonly contextOf: (requestInfo: OperationRequestInfo, kind: PreparedOperation["kind"]) => StatementContext;
  /** How many bytes are held at most: of one operation's rows, of all rows, and of all responses. */
  readonly byteLimits: { readonly operation: number; readonly together: number; readonly answers: number };
  readonly anonymous: AnonymousLimits;
  /** Counts the users that callers create. Null: no limit. */
  readonly limitCreatedUsers: LimitCreatedUsers | null;
  /** Null when tracing is off. */
  readonly tracing?: Tracing | null;
  readonly compilation: CompilationOptions;
};

export type CompilationOptions = {
  /** Whether operations are compiled to one statement where that is possible. */
  readonly isOn: boolean;
  /** Counts operations by the way that they ran, and by the reason. */
  readonly ways: KeyedCounter;
  readonly log: Pick<Logger, "debug">;
};

/** Limits for operations in the anonymous role. */
export type AnonymousLimits = {
  readonly role: string;
  readonly maxPlannedFields: number;
  readonly maxResponseBytes: number;
};

/** Larger responses are built one after the other: a few milliseconds per mebibyte. */
const SMALL_RESPONSE_BYTES = 256 * 1024;
/** How long a slow client's response counts against the shared budget. */
const MAX_HELD_MS = 5_000;

/** Prepares operations. Throws a GraphqlRefusal for those that the client must correct. */
export function makePrepareOperation(dependencies: OperationDependencies): PrepareOperation {
  const { schemaOf, byteLimits } = dependencies;
  const shared: SharedBudgets = {
    rows: new ResponseBudget(byteLimits.together),
    responses: new ResponseBudget(byteLimits.answers),
  };
  const prepare = (
    served: ServedSchema,
    parameters: OperationParameters,
    requestInfo: OperationRequestInfo,
  ): PreparedOperation | Promise<PreparedOperation> => {
    const steps = prepareOperation(dependencies, shared, served, parameters, requestInfo);
    if (parameters.query.length <= SHORT_DOCUMENT_LENGTH) return runToCompletion(steps);
    return runLongWork(ownerOf(requestInfo), steps, requestInfo.signal);
  };
  return (parameters, requestInfo) => {
    const served = schemaOf(requestInfo.authentication.caller.role);
    if (!(served instanceof Promise)) return prepare(served, parameters, requestInfo);
    return served.then((built) => prepare(built, parameters, requestInfo));
  };
}

/** Documents up to this length are parsed and compiled in a few milliseconds. */
const SHORT_DOCUMENT_LENGTH = 1_000;

function ownerOf({ authentication, address }: OperationRequestInfo): string {
  return callerKey(authentication.caller.claims, address);
}

function* prepareOperation(
  dependencies: OperationDependencies,
  shared: SharedBudgets,
  served: ServedSchema,
  { query, operationName, variables: sentVariables, parseExactVariables }: OperationParameters,
  requestInfo: OperationRequestInfo,
): Stepwise<PreparedOperation> {
  const { introspection, contextOf, byteLimits, anonymous, tracing = null } = dependencies;
  const { role } = requestInfo.authentication.caller;
  const checked = yield* served.documents.read(query);
  if (checked.isIntrospection) introspection.check(role);
  const isAnonymous = role === anonymous.role;
  const planRefusal = isAnonymous ? refusalToPlan(checked.plannedFields, anonymous.maxPlannedFields) : null;
  const selected = checked.operation(operationName);
  const kind = selected.operation;
  const variables = checked.restoreDigits(selected)?.(sentVariables, parseExactVariables) ?? sentVariables;
  checked.checkVariables(selected, variables);

  const isOneTransaction = isTransaction(selected);
  const memory = new OperationMemory(shared, {
    kind,
    commitsBeforeResponse: kind === "mutation" && !isOneTransaction,
    maxRowBytes: byteLimits.operation,
    maxResponseBytes: isAnonymous ? anonymous.maxResponseBytes : byteLimits.operation,
    amplification: () => checked.amplification(selected),
    waitForSlot: () => waitForLargeWorkSlot(ownerOf(requestInfo)),
  });
  const { schema } = served;
  const args = { schema, document: checked.document, variableValues: variables, operationName };
  const context = contextOf(requestInfo, kind);
  const isLong = query.length > SHORT_DOCUMENT_LENGTH;
  const request = { served, args, kind, isOneTransaction, memory, requestInfo, context, isLong, planRefusal };
  const binding = checked.plans(selected).bind(variables, planRefusal === null);
  const bound = yield* bindOperation(dependencies.compilation, requestInfo, binding);
  if (!bound && planRefusal) throw new GraphqlRefusal([planRefusal]);
  const runInside = (own: RunDependencies) => (bound ? runBound(own, request, bound) : runByGrafast(own, request));
  const run = isOneTransaction ? () => runTransaction(dependencies, request, runInside) : () => runInside(dependencies);
  return {
    ...args,
    kind,
    documentBytes: checked.bytes,
    run: tracing ? () => tracing.traceWork(kind, traceAttributes(selected), run) : run,
    release: () => memory.release(),
  };
}

/** What both ways of running an operation need. */
type OperationRequest = {
  readonly served: ServedSchema;
  readonly args: Pick<ExecutionArgs, "schema" | "document" | "variableValues" | "operationName">;
  readonly kind: PreparedOperation["kind"];
  /** Whether all fields of the mutation are committed or none. */
  readonly isOneTransaction: boolean;
  readonly memory: OperationMemory;
  readonly requestInfo: OperationRequestInfo;
  readonly context: StatementContext;
  readonly isLong: boolean;
  /** Why Grafast may not plan it, which cannot be interrupted; null if it may. */
  readonly planRefusal: GraphQLError | null;
};

/** The database may be an open transaction. */
type RunDependencies = Omit<OperationDependencies, "database"> & { readonly database: CallerDatabase };

type RunOperation = (dependencies: RunDependencies) => Promise<OperationOutcome>;

/** Where a compiled field fails by an error that Grafast assigns to fields, nothing was changed, and Grafast runs the whole operation. */
async function runTransaction(
  dependencies: OperationDependencies,
  request: OperationRequest,
  runInside: RunOperation,
): Promise<OperationOutcome> {
  const { database, compilation } = dependencies;
  const { context, memory, requestInfo } = request;
  const transaction = { database, context, makeBudget: () => memory.statementBudget() };
  const runAll = async (run: RunOperation): Promise<OperationOutcome> => {
    const result = await runOperationTransaction(transaction, async (inside) =>
      resultOf(await run({ ...dependencies, database: inside })),
    );
    return { kind: "result", result };
  };
  try {
    return await runAll(runInside);
  } catch (error) {
    noteNotCompiled(compilation, requestInfo.requestId, error);
    return runAll((inside) => runByGrafast(inside, request));
  }
}

function resultOf(outcome: OperationOutcome): OperationResult {
  if (outcome.kind === "stream") throw new TypeError("A mutation has one result");
  return outcome.result;
}

/** Null when Grafast runs it. */
function* bindOperation(
  compilation: CompilationOptions,
  { requestId }: OperationRequestInfo,
  binding: Stepwise<BoundOperation>,
): Stepwise<BoundOperation | null> {
  if (!compilation.isOn) return null;
  try {
    const bound = yield* binding;
    compilation.ways.add("compiled");
    return bound;
  } catch (error) {
    noteNotCompiled(compilation, requestId, error);
    return null;
  }
}

function noteNotCompiled({ ways, log }: CompilationOptions, request: string, error: unknown): void {
  if (!(error instanceof NotCompiled)) throw error;
  const { reason, message: detail } = error;
  ways.add(reason);
  log.debug({ request, reason, detail }, "the operation was not compiled");
}

async function runBound(
  dependencies: RunDependencies,
  request: OperationRequest,
  bound: BoundOperation,
): Promise<OperationOutcome> {
  const { memory, context, requestInfo, isOneTransaction, planRefusal } = request;
  const { signal, asText = false, requestId } = requestInfo;
  const options: CompiledRunOptions = {
    database: dependencies.database,
    context,
    signal,
    budget: memory.rowBudget(),
    admit: (bytes) => memory.admitBytes(bytes),
    asText,
    insertNested: dependencies.makeInsertNested(dependencies.database, context),
    stopsAtError: isOneTransaction,
    planRefusal,
  };
  try {
    const result = await runCompiled(bound, options, async ({ document }, reason) => {
      if (isOneTransaction) throw reason;
      noteNotCompiled(dependencies.compilation, requestId, reason);
      memory.endExecution();
      const outcome = await runByGrafast(dependencies, { ...request, args: { ...request.args, document } });
      return resultOf(outcome);
    });
    return { kind: "result", result };
  } finally {
    memory.endExecution();
  }
}

/** Documents that Grafast has planned. */
const plannedDocuments = new WeakSet<object>();

async function runByGrafast(
  { database, events, makeInsertNested, limitCreatedUsers }: RunDependencies,
  { served, args, kind, isOneTransaction, memory, requestInfo, context, isLong }: OperationRequest,
): Promise<OperationOutcome> {
  if (isLong && !plannedDocuments.has(args.document)) {
    await waitForLargeWorkSlot(ownerOf(requestInfo));
    plannedDocuments.add(args.document);
  }
  const { signal, asText = false } = requestInfo;
  const withPgClient = makeWithPgClient(database, context, {
    readOnly: kind !== "mutation",
    refusesUnsuccessful: isOneTransaction,
    insertNested: makeInsertNested(database, context),
    budgetOf: () => memory.rowBudget(),
    admit: (rows) => memory.admit(rows),
    ...(signal && { signal }),
  });
  const { resolvedPreset } = served;
  const countSignUp =
    limitCreatedUsers && (() => limitCreatedUsers(requestInfo.authentication.caller, requestInfo.address));
  // No middleware: PostGraphile's would only set the context values that are set here.
  const contextValue = { pgSettings: null, withPgClient, countSignUp };
  const executionArgs = { ...args, resolvedPreset, middleware: null, contextValue };
  return kind === "subscription"
    ? runSubscription(executionArgs, events)
    : runToResult({ ...executionArgs, outputDataAsString: asText }, memory);
}

async function runToResult(args: Parameters<typeof execute>[0], memory: OperationMemory): Promise<OperationOutcome> {
  try {
    const result = await execute(args);
    if (Symbol.asyncIterator in result) throw new TypeError("Results are not delivered in parts");
    return { kind: "result", result };
  } finally {
    memory.endExecution();
  }
}

async function runSubscription(
  args: Parameters<typeof subscribe>[0] & { readonly contextValue: object },
  events: RowEventHub,
): Promise<OperationOutcome> {
  const queue = await events.open();
  const results = await subscribe({ ...args, contextValue: { ...args.contextValue, events: queue } });
  if (Symbol.asyncIterator in results) {
    return { kind: "stream", results: new SubscriptionResults(results as GrafastResults, queue) };
  }
  queue.close();
  return { kind: "result", result: results };
}

function traceAttributes({ operation, name }: OperationDefinitionNode): Record<string, string> {
  return { "graphql.operation.type": operation, ...(name && { "graphql.operation.name": name.value }) };
}

function refusalToPlan(planned: number, max: number): GraphQLError | null {
  if (planned <= max) return null;
  const fact = `An operation of an anonymous caller that cannot run as one statement has ${planned} fields with subselections`;
  return tooComplexError(fact, max);
}

/** What all operations together may hold. */
type SharedBudgets = { readonly rows: ResponseBudget; readonly responses: ResponseBudget };

type OperationMemoryOptions = {
  readonly kind: PreparedOperation["kind"];
  /** Whether a change stays when its response is too large. */
  readonly commitsBeforeResponse: boolean;
  readonly maxRowBytes: number;
  readonly maxResponseBytes: number;
  readonly amplification: () => ResponseAmplification;
  readonly waitForSlot: () => Promise<void>;
};

/** Limits what one operation holds: its rows while it runs, and its response until that is sent. */
class OperationMemory {
  readonly #options: OperationMemoryOptions;
  readonly #sharedRows: ResponseBudget;
  readonly #rows: ResponseBudget;
  readonly #response: ResponseBudget;

  constructor({ rows, responses }: SharedBudgets, options: OperationMemoryOptions) {
    this.#options = options;
    this.#sharedRows = rows;
    this.#rows = new ResponseBudget(options.maxRowBytes, rows);
    // Aliases can make a response much larger than its rows.
    this.#response = new ResponseBudget(options.maxResponseBytes, responses);
  }

  /** A subscription has no end, so each of its events has a budget of its own. */
  rowBudget(): ResponseBudget {
    const { kind, maxRowBytes } = this.#options;
    return kind === "subscription" ? new ResponseBudget(maxRowBytes) : this.#rows;
  }

  /** For a statement of an open transaction. */
  statementBudget(): ResponseBudget {
    return new ResponseBudget(this.#options.maxRowBytes, this.#sharedRows);
  }

  /** Takes what the response for these rows will need; throws when that is too much, and waits before a large one is built. */
  admit(rows: readonly ResultRow[]): Promise<void> | void {
    const { kind, amplification } = this.#options;
    if (kind === "subscription") this.release();
    return this.admitBytes(estimateResponseBytes(rows, amplification()));
  }

  admitBytes(bytes: number): Promise<void> | void {
    const { kind, commitsBeforeResponse, waitForSlot } = this.#options;
    if (!this.#response.take(bytes)) {
      const refusal = commitsBeforeResponse ? changedButResponseTooLarge() : this.#response.refusal();
      this.release();
      throw refusal;
    }
    if (kind === "subscription") this.#releaseSoon();
    if (bytes > SMALL_RESPONSE_BYTES) return waitForSlot();
  }

  endExecution(): void {
    this.#rows.giveAllBack();
    this.#releaseSoon();
  }

  release(): void {
    this.#response.giveAllBack();
  }

  #releaseSoon(): void {
    if (this.#response.isSmall) this.release();
    else setTimeout(() => this.release(), MAX_HELD_MS).unref();
  }
}
