import { execute } from "grafast";
import type { OperationDefinitionNode } from "grafast/graphql";
import { callerKey } from "#accounts/identity";
import type { RowEvent } from "#plugins";
import { waitForLargeWorkSlot } from "#runtime/concurrency";
import { NotCompiled } from "../compile/not-compiled.ts";
import type { BoundOperation } from "../compile/operation-plans.ts";
import type { CallerDatabase } from "./caller-database.ts";
import type { OperationDependencies, OperationOutcome, PlannedOperation } from "./operation.ts";
import type { OperationMemory } from "./operation-memory.ts";
import { runOperationTransaction } from "./operation-transaction.ts";
import { makeWithPgClient } from "./pg-client.ts";
import { noteNotCompiled } from "./query.ts";
import { type CompiledRunOptions, type OperationResult, runCompiled } from "./run-compiled.ts";
import { runFields } from "./run-fields.ts";
import { runSubscription } from "./run-subscription.ts";

/** Runs the statements, or each field by itself where there are none; in one transaction if the operation asks for that. */
export function run(
  dependencies: OperationDependencies,
  planned: PlannedOperation,
  bound: BoundOperation | null,
): Promise<OperationOutcome> {
  const { kind, selected, isOneTransaction } = planned;
  const { tracing = null } = dependencies;
  const runInside = (inside: RunDependencies) =>
    bound ? runBound(inside, planned, bound) : runUnbound(inside, planned);
  const start = () => {
    if (kind === "subscription") return runSubscription(dependencies, planned, runEvent);
    return isOneTransaction ? runTransaction(dependencies, planned, runInside) : runInside(dependencies);
  };
  const runEvent = async ({ k: event }: RowEvent) => {
    const ofEvent = { ...planned, event };
    return resultOf(
      await (bound ? runBound(dependencies, ofEvent, bound.forEvent(event)) : runUnbound(dependencies, ofEvent)),
    );
  };
  return tracing ? tracing.traceWork(kind, traceAttributes(selected), start) : start();
}

function traceAttributes({ operation, name }: OperationDefinitionNode): Record<string, string> {
  return { "graphql.operation.type": operation, ...(name && { "graphql.operation.name": name.value }) };
}

/** The database may be an open transaction. */
type RunDependencies = Omit<OperationDependencies, "database"> & { readonly database: CallerDatabase };

type RunOperation = (dependencies: RunDependencies) => Promise<OperationOutcome>;

/** Runs an operation in one transaction. If a statement fails by an error that is assigned to fields, all of it runs again, field by field. */
async function runTransaction(
  dependencies: OperationDependencies,
  planned: PlannedOperation,
  runInside: RunOperation,
): Promise<OperationOutcome> {
  const { database, compilation } = dependencies;
  const { context, memory, requestInfo } = planned;
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
    return runAll((inside) => runUnbound(inside, planned));
  }
}

export function resultOf(outcome: OperationOutcome): OperationResult {
  if (outcome.kind !== "result") throw new TypeError("Queries and mutations have one result");
  return outcome.result;
}

async function runBound(
  dependencies: RunDependencies,
  planned: PlannedOperation,
  bound: BoundOperation,
): Promise<OperationOutcome> {
  const { memory, requestInfo, isOneTransaction } = planned;
  try {
    const options = compiledRunOptions(dependencies, planned);
    const result = await runCompiled(bound, options, async ({ document, countsSignUp }, reason) => {
      if (isOneTransaction) throw reason;
      noteNotCompiled(dependencies.compilation, requestInfo.requestId, reason);
      memory.endExecution();
      // A step that runs again is the same sign-up.
      const countSignUp = countsSignUp ? null : planned.countSignUp;
      return resultOf(await runUnbound(dependencies, { ...planned, countSignUp, args: { ...planned.args, document } }));
    });
    return { kind: "result", result };
  } finally {
    memory.endExecution();
  }
}

/** Runs the fields of an operation by themselves; Grafast runs those without a statement, such as unions. */
export async function runUnbound(dependencies: RunDependencies, planned: PlannedOperation): Promise<OperationOutcome> {
  if (!dependencies.compilation.isOn && planned.kind !== "subscription") return runByGrafast(dependencies, planned);
  try {
    const optionsFor = (database: CallerDatabase) => compiledRunOptions({ ...dependencies, database }, planned);
    return { kind: "result", result: await runFields(planned, dependencies.database, optionsFor) };
  } catch (error) {
    if (!(error instanceof NotCompiled)) throw error;
    return runByGrafast(dependencies, planned);
  } finally {
    planned.memory.endExecution();
  }
}

export function compiledRunOptions(
  { database, makeWriteRows }: Pick<RunDependencies, "database" | "makeWriteRows">,
  { kind, memory, context, requestInfo, isOneTransaction, countSignUp, planRefusal }: PlannedOperation,
): CompiledRunOptions {
  const { signal, asText = false } = requestInfo;
  return {
    database,
    context,
    signal,
    budget: memory.rowBudget(),
    admit: (bytes) => memory.admitBytes(bytes),
    asText: asText && kind !== "subscription",
    writeRows: makeWriteRows(database, context),
    stopsAtError: isOneTransaction,
    countSignUp,
    planRefusal,
  };
}

/** Documents that Grafast has planned. */
const plannedDocuments = new WeakSet<object>();

async function runByGrafast(
  { database, makeWriteRows }: RunDependencies,
  { served, args, kind, isOneTransaction, memory, requestInfo, context, isLong, countSignUp }: PlannedOperation,
): Promise<OperationOutcome> {
  if (isLong && !plannedDocuments.has(args.document)) {
    await waitForLargeWorkSlot(callerKey(requestInfo.authentication.caller.claims, requestInfo.address));
    plannedDocuments.add(args.document);
  }
  const { signal, asText = false } = requestInfo;
  const withPgClient = makeWithPgClient(database, context, {
    readOnly: kind !== "mutation",
    refusesUnsuccessful: isOneTransaction,
    writeRows: makeWriteRows(database, context),
    budgetOf: () => memory.rowBudget(),
    admit: (rows) => memory.admit(rows),
    ...(signal && { signal }),
  });
  const { resolvedPreset } = served;
  // No middleware: PostGraphile's would only set the context values that are set here.
  const contextValue = { pgSettings: null, withPgClient, countSignUp };
  const executionArgs = { ...args, resolvedPreset, middleware: null, contextValue };
  return runToResult({ ...executionArgs, outputDataAsString: asText }, memory);
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
