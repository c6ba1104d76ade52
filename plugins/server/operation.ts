import type { IncomingHttpHeaders } from "node:http";
import { execute, subscribe } from "postgraphile/grafast";
import type { ExecutionArgs, ExecutionResult, GraphQLError, OperationTypeNode } from "postgraphile/graphql";
import type { AbortLike } from "../../engine/concurrency/abort.ts";
import { waitForLargeWorkSlot } from "../../engine/concurrency/event-loop-sharing.ts";
import type { Database } from "../../engine/database/database.ts";
import { changedButResponseTooLarge } from "../../engine/database/database-errors.ts";
import { ResponseBudget } from "../../engine/database/response-budget.ts";
import type { ResultRow, StatementContext } from "../../engine/database/statement.ts";
import type { AuthenticationResult } from "../../engine/identity/authenticator.ts";
import { callerKey } from "../../engine/identity/caller.ts";
import type { Tracing } from "../../engine/observability/tracing.ts";
import { estimateResponseBytes, tooComplexError } from "./document-size.ts";
import { GraphqlRefusal } from "./documents.ts";
import type { RowEventHub } from "./events.ts";
import type { OperationVariables } from "./exact-numbers.ts";
import type { IntrospectionAccess } from "./introspection-access.ts";
import { makeWithPgClient } from "./pg-client.ts";
import type { ServedSchema } from "./role-schemas.ts";
import { type GrafastResults, SubscriptionResults } from "./subscription-delivery.ts";

/** What a client asks, by whatever way it came. */
export type OperationParameters = {
  readonly query: string;
  readonly operationName: string | null;
  readonly variables: OperationVariables;
  /** The same, with ExactNumbers among them. */
  readonly parseExactVariables: () => OperationVariables;
};

/** Who asks, and what is known of the way it came. */
export type OperationRequestInfo = {
  readonly authentication: AuthenticationResult;
  readonly requestId: string;
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  /** Of the client; null where nobody knows. */
  readonly address: () => string | null;
  /** Aborted when nobody waits for the answer any more. */
  readonly signal?: AbortLike;
  /** Headers of the answer, where it has any. */
  readonly addResponseHeaders?: (headers: Readonly<Record<string, string>>) => void;
  /** The data as text, for who passes it on as it is. */
  readonly asText?: boolean;
};

/** Data is absent when nothing was executed. */
export type OperationResult = {
  readonly data?: ExecutionResult["data"] | string;
  readonly errors?: readonly GraphQLError[] | undefined;
};

export type OperationOutcome =
  | { readonly kind: "result"; readonly result: OperationResult }
  | { readonly kind: "stream"; readonly results: SubscriptionResults };

/** What may be executed, and has not been yet. */
export type PreparedOperation = ExecutionArgs & {
  readonly kind: `${OperationTypeNode}`;
  /** About what its document takes in memory, which other operations may share. */
  readonly documentBytes: number;
  run(): Promise<OperationOutcome>;
  /** To be called when the answer has been sent, or will not be. */
  release(): void;
};

/** At once, unless the schema of the caller's role is still to be made, or the document is large. */
export type PrepareOperation = (
  parameters: OperationParameters,
  circumstances: OperationRequestInfo,
) => PreparedOperation | Promise<PreparedOperation>;

type OperationDependencies = {
  readonly schemaOf: (role: string) => ServedSchema | Promise<ServedSchema>;
  readonly introspection: IntrospectionAccess;
  readonly database: Database;
  readonly events: RowEventHub;
  readonly contextOf: (circumstances: OperationRequestInfo, kind: PreparedOperation["kind"]) => StatementContext;
  /** How many bytes may be held of one operation's rows, of those of all together, and of the answers to all together. */
  readonly byteLimits: { readonly operation: number; readonly together: number; readonly answers: number };
  readonly anonymous: AnonymousLimits;
  /** Null: nobody follows what becomes of an operation. */
  readonly tracing?: Tracing | null;
};

/** What an operation in the anonymous role may have that is to be planned, and how long its answer may be. */
export type AnonymousLimits = {
  readonly role: string;
  readonly maxPlannedFields: number;
  readonly maxResponseBytes: number;
};

/** Longer answers are put together one after the other: a few milliseconds of work for each mebibyte. */
const SMALL_RESPONSE_BYTES = 256 * 1024;
/** A client that reads slowly takes the room of others for so long. */
const MAX_HELD_MS = 5_000;

/** Reads and checks what is asked. What cannot be executed is refused by throwing: with a Refusal when that is the client's doing. */
export function makePrepareOperation({
  schemaOf,
  introspection,
  database,
  events,
  contextOf,
  byteLimits,
  anonymous,
  tracing = null,
}: OperationDependencies): PrepareOperation {
  const allRows = new ResponseBudget(byteLimits.together);
  const allResponses = new ResponseBudget(byteLimits.answers);
  const prepareFor = (
    served: ServedSchema,
    parameters: OperationParameters,
    requestInfo: OperationRequestInfo,
  ): PreparedOperation => {
    const { query, operationName, variables: sentVariables, parseExactVariables } = parameters;
    const { role, claims } = requestInfo.authentication.caller;
    const { schema, resolvedPreset, documents } = served;
    const checkedDocument = documents.read(query);
    const {
      document,
      bytes: documentBytes,
      plannedFields,
      isIntrospection,
      operation,
      amplification,
      checkVariables,
    } = checkedDocument;
    if (isIntrospection) introspection.check(role);
    const isAnonymous = role === anonymous.role;
    if (isAnonymous) refuseLargePlan(plannedFields, anonymous.maxPlannedFields);
    const selected = operation(operationName);
    const variables = checkedDocument.restoreDigits(selected)?.(sentVariables, parseExactVariables) ?? sentVariables;
    checkVariables(selected, variables);
    const kind = selected.operation;
    const { signal, asText = false } = requestInfo;
    const rowBudget = new ResponseBudget(byteLimits.operation, allRows);
    // A subscription has no end: each of its events has a budget of its own.
    const budgetOf = () => (kind === "subscription" ? new ResponseBudget(byteLimits.operation) : rowBudget);
    const readOnly = kind !== "mutation";
    // Rows are few bytes beside what aliases can make of them.
    const responseBudget = new ResponseBudget(
      isAnonymous ? anonymous.maxResponseBytes : byteLimits.operation,
      allResponses,
    );
    const release = () => void responseBudget.giveAllBack();
    const releaseSoon = () => {
      if (responseBudget.isSmall) release();
      else setTimeout(release, MAX_HELD_MS).unref();
    };
    const admit = (rows: readonly ResultRow[]): Promise<void> | void => {
      if (kind === "subscription") release();
      const bytes = estimateResponseBytes(rows, amplification(selected));
      if (!responseBudget.take(bytes)) {
        const refusal = readOnly ? responseBudget.refusal() : changedButResponseTooLarge();
        release();
        throw refusal;
      }
      if (kind === "subscription") releaseSoon();
      if (bytes > SMALL_RESPONSE_BYTES) return waitForLargeWorkSlot(callerKey(claims, requestInfo.address));
    };
    const client = { readOnly, budgetOf, admit, ...(signal && { signal }) };
    const withPgClient = makeWithPgClient(database, contextOf(requestInfo, kind), client);
    const contextValue = { pgSettings: null, withPgClient };
    // Nobody's middleware runs: what PostGraphile's own would put into the context is there already.
    const executionArgs = { schema, document, variableValues: variables, operationName };
    const args = { ...executionArgs, resolvedPreset, middleware: null };

    const executed = async () => {
      try {
        return await execute({ ...args, contextValue, outputDataAsString: asText });
      } finally {
        rowBudget.giveAllBack();
        releaseSoon();
      }
    };

    const execution = async (): Promise<OperationOutcome> => {
      const result = await executed();
      if (Symbol.asyncIterator in result) throw new TypeError("Results are not delivered in parts");
      return { kind: "result", result };
    };

    const subscription = async (): Promise<OperationOutcome> => {
      const inbox = await events.open();
      const results = await subscribe({ ...args, contextValue: { ...contextValue, events: inbox } });
      if (Symbol.asyncIterator in results)
        return { kind: "stream", results: new SubscriptionResults(results as GrafastResults, inbox) };
      inbox.close();
      return { kind: "result", result: results };
    };

    const run = kind === "subscription" ? subscription : execution;
    if (!tracing) return { ...executionArgs, kind, documentBytes, run, release };
    const attributes = {
      "graphql.operation.type": kind,
      ...(selected.name && { "graphql.operation.name": selected.name.value }),
    };
    return { ...executionArgs, kind, documentBytes, run: () => tracing.traceWork(kind, attributes, run), release };
  };
  const prepareInTurn = (
    served: ServedSchema,
    parameters: OperationParameters,
    requestInfo: OperationRequestInfo,
  ): PreparedOperation | Promise<PreparedOperation> => {
    if (!served.documents.isLongWork(parameters.query)) return prepareFor(served, parameters, requestInfo);
    const { claims } = requestInfo.authentication.caller;
    const turn = waitForLargeWorkSlot(callerKey(claims, requestInfo.address));
    return turn.then(() => prepareFor(served, parameters, requestInfo));
  };
  return (parameters, requestInfo) => {
    const served = schemaOf(requestInfo.authentication.caller.role);
    if (!(served instanceof Promise)) return prepareInTurn(served, parameters, requestInfo);
    return served.then((made) => prepareInTurn(made, parameters, requestInfo));
  };
}

function refuseLargePlan(planned: number, most: number): void {
  if (planned <= most) return;
  const fact = `The operation of an anonymous caller has ${planned} fields with fields of their own`;
  throw new GraphqlRefusal([tooComplexError(fact, most)]);
}
