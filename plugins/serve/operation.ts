import type { IncomingHttpHeaders } from "node:http";
import { execute, subscribe } from "postgraphile/grafast";
import type { ExecutionArgs, ExecutionResult, GraphQLError, OperationTypeNode } from "postgraphile/graphql";
import type { Abort } from "../../engine/abort.ts";
import type { AuthenticationResult } from "../../engine/caller/caller.ts";
import { callerKey } from "../../engine/caller/caller-key.ts";
import { Budget } from "../../engine/database/budget.ts";
import type { Database } from "../../engine/database/database.ts";
import { madeButTooLarge } from "../../engine/database/faults.ts";
import type { Context, Row } from "../../engine/database/statement.ts";
import { turnForLargeWork } from "../../engine/large-work.ts";
import type { Tracing } from "../../engine/tracing/tracing.ts";
import { Delivery, type Results } from "./delivery.ts";
import { Refusal } from "./documents.ts";
import { toldBytes } from "./echo.ts";
import type { Events } from "./events.ts";
import type { Variables } from "./exact-variables.ts";
import type { Introspection } from "./introspection.ts";
import { tooComplex } from "./limits.ts";
import { makeWithPgClient } from "./pg-client.ts";
import type { ServedSchema } from "./role-schemas.ts";

/** What a client asks, by whatever way it came. */
export type Parameters = {
  readonly query: string;
  readonly operationName: string | null;
  readonly variables: Variables;
  /** The same, with ExactNumbers among them. */
  readonly parseExactVariables: () => Variables;
};

/** Who asks, and what is known of the way it came. */
export type Circumstances = {
  readonly asker: AuthenticationResult;
  readonly requestId: string;
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  /** Of the client; null where nobody knows. */
  readonly address: () => string | null;
  /** Aborted when nobody waits for the answer any more. */
  readonly signal?: Abort;
  /** Headers of the answer, where it has any. */
  readonly tell?: (headers: Readonly<Record<string, string>>) => void;
  /** The data as text, for who passes it on as it is. */
  readonly asText?: boolean;
};

/** Data is absent when nothing was executed. */
export type Result = {
  readonly data?: ExecutionResult["data"] | string;
  readonly errors?: readonly GraphQLError[] | undefined;
};

export type Outcome =
  | { readonly kind: "result"; readonly result: Result }
  | { readonly kind: "stream"; readonly results: Delivery };

/** What may be executed, and has not been yet. */
export type Operation = ExecutionArgs & {
  readonly kind: `${OperationTypeNode}`;
  /** About what its document takes in memory, which other operations may share. */
  readonly documentBytes: number;
  run(): Promise<Outcome>;
  /** To be called when the answer has been sent, or will not be. */
  release(): void;
};

/** At once, unless the schema of the caller's role is still to be made, or the document is large. */
export type Prepare = (parameters: Parameters, circumstances: Circumstances) => Operation | Promise<Operation>;

type Services = {
  readonly schemaOf: (role: string) => ServedSchema | Promise<ServedSchema>;
  readonly introspection: Introspection;
  readonly database: Database;
  readonly events: Events;
  readonly contextOf: (circumstances: Circumstances, kind: Operation["kind"]) => Context;
  /** How many bytes may be held of one operation's rows, of those of all together, and of the answers to all together. */
  readonly most: { readonly operation: number; readonly together: number; readonly answers: number };
  readonly anonymous: AnonymousLimits;
  /** Null: nobody follows what becomes of an operation. */
  readonly tracing?: Tracing | null;
};

/** What an operation in the anonymous role may have that is to be planned, and how long its answer may be. */
export type AnonymousLimits = { readonly role: string; readonly mostPlanned: number; readonly mostAnswerBytes: number };

/** Longer answers are put together one after the other: a few milliseconds of work for each mebibyte. */
const LONGEST_SHORT_ANSWER = 256 * 1024;
/** A client that reads slowly takes the room of others for so long. */
const MOST_HELD_MS = 5_000;

/** Reads and checks what is asked. What cannot be executed is refused by throwing: with a Refusal when that is the client's doing. */
export function makePrepare({
  schemaOf,
  introspection,
  database,
  events,
  contextOf,
  most,
  anonymous,
  tracing = null,
}: Services): Prepare {
  const together = new Budget(most.together);
  const answers = new Budget(most.answers);
  const prepareFor = (served: ServedSchema, parameters: Parameters, circumstances: Circumstances): Operation => {
    const { query, operationName, variables: sent, parseExactVariables } = parameters;
    const { role, claims } = circumstances.asker.caller;
    const { schema, resolvedPreset, documents } = served;
    const found = documents.read(query);
    const { document, bytes: documentBytes, planned, isIntrospection, operation, echo, checkVariables } = found;
    if (isIntrospection) introspection.check(role);
    const isAnonymous = role === anonymous.role;
    if (isAnonymous) refusePlan(planned, anonymous.mostPlanned);
    const chosen = operation(operationName);
    const variables = found.restoreDigits(chosen)?.(sent, parseExactVariables) ?? sent;
    checkVariables(chosen, variables);
    const kind = chosen.operation;
    const { signal, asText = false } = circumstances;
    const budget = new Budget(most.operation, together);
    // A subscription has no end: each of its events has a budget of its own.
    const budgetOf = () => (kind === "subscription" ? new Budget(most.operation) : budget);
    const readOnly = kind !== "mutation";
    // Rows are few bytes beside what aliases can make of them.
    const answer = new Budget(isAnonymous ? anonymous.mostAnswerBytes : most.operation, answers);
    const release = () => void answer.giveAllBack();
    const releaseSoon = () => {
      if (answer.isSmall) release();
      else setTimeout(release, MOST_HELD_MS).unref();
    };
    const admit = (rows: readonly Row[]): Promise<void> | void => {
      if (kind === "subscription") release();
      const bytes = toldBytes(rows, echo(chosen));
      if (!answer.take(bytes)) {
        const refusal = readOnly ? answer.refusal() : madeButTooLarge();
        release();
        throw refusal;
      }
      if (kind === "subscription") releaseSoon();
      if (bytes > LONGEST_SHORT_ANSWER) return turnForLargeWork(callerKey(claims, circumstances.address));
    };
    const client = { readOnly, budgetOf, admit, ...(signal && { signal }) };
    const withPgClient = makeWithPgClient(database, contextOf(circumstances, kind), client);
    const contextValue = { pgSettings: null, withPgClient };
    // Nobody's middleware runs: what PostGraphile's own would put into the context is there already.
    const plain = { schema, document, variableValues: variables, operationName };
    const args = { ...plain, resolvedPreset, middleware: null };

    const executed = async () => {
      try {
        return await execute({ ...args, contextValue, outputDataAsString: asText });
      } finally {
        budget.giveAllBack();
        releaseSoon();
      }
    };

    const execution = async (): Promise<Outcome> => {
      const result = await executed();
      if (Symbol.asyncIterator in result) throw new TypeError("Results are not delivered in parts");
      return { kind: "result", result };
    };

    const subscription = async (): Promise<Outcome> => {
      const inbox = await events.open();
      const results = await subscribe({ ...args, contextValue: { ...contextValue, events: inbox } });
      if (Symbol.asyncIterator in results) return { kind: "stream", results: new Delivery(results as Results, inbox) };
      inbox.close();
      return { kind: "result", result: results };
    };

    const run = kind === "subscription" ? subscription : execution;
    if (!tracing) return { ...plain, kind, documentBytes, run, release };
    const attributes = {
      "graphql.operation.type": kind,
      ...(chosen.name && { "graphql.operation.name": chosen.name.value }),
    };
    return { ...plain, kind, documentBytes, run: () => tracing.traceWork(kind, attributes, run), release };
  };
  const prepareInTurn = (
    served: ServedSchema,
    parameters: Parameters,
    circumstances: Circumstances,
  ): Operation | Promise<Operation> => {
    if (!served.documents.isLongWork(parameters.query)) return prepareFor(served, parameters, circumstances);
    const { claims } = circumstances.asker.caller;
    const turn = turnForLargeWork(callerKey(claims, circumstances.address));
    return turn.then(() => prepareFor(served, parameters, circumstances));
  };
  return (parameters, circumstances) => {
    const served = schemaOf(circumstances.asker.caller.role);
    if (!(served instanceof Promise)) return prepareInTurn(served, parameters, circumstances);
    return served.then((made) => prepareInTurn(made, parameters, circumstances));
  };
}

function refusePlan(planned: number, most: number): void {
  if (planned <= most) return;
  const fact = `The operation of an anonymous caller has ${planned} fields with fields of their own`;
  throw new Refusal([tooComplex(fact, most)]);
}
