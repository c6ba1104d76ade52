import type { OperationDefinitionNode } from "grafast/graphql";
import type { RowEvent } from "#plugins";
import type { BoundOperation } from "../compile/operation-plans.ts";
import type { CallerDatabase } from "./caller-database.ts";
import type { OperationDependencies, OperationOutcome, PlannedOperation } from "./operation.ts";
import { runOperationTransaction } from "./operation-transaction.ts";
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
  const start = async (): Promise<OperationOutcome> => {
    if (kind === "subscription") return runSubscription(dependencies, planned, runEvent);
    const running = isOneTransaction ? runTransaction(dependencies, planned, runInside) : runInside(dependencies);
    return { kind: "result", result: await running };
  };
  const runEvent = async ({ k: event }: RowEvent) => {
    const ofEvent = { ...planned, event };
    return bound ? runBound(dependencies, ofEvent, bound.forEvent(event)) : runUnbound(dependencies, ofEvent);
  };
  return tracing ? tracing.traceWork(kind, traceAttributes(selected), start) : start();
}

function traceAttributes({ operation, name }: OperationDefinitionNode): Record<string, string> {
  return { "graphql.operation.type": operation, ...(name && { "graphql.operation.name": name.value }) };
}

/** The database may be an open transaction. */
type RunDependencies = Omit<OperationDependencies, "database"> & { readonly database: CallerDatabase };

type RunOperation = (dependencies: RunDependencies) => Promise<OperationResult>;

/** Runs an operation in one transaction. If a statement fails by an error that is assigned to fields, all of it runs again, field by field. */
async function runTransaction(
  dependencies: OperationDependencies,
  planned: PlannedOperation,
  runInside: RunOperation,
): Promise<OperationResult> {
  const { database, compilation } = dependencies;
  const { context, memory, requestInfo } = planned;
  const transaction = { database, context, makeBudget: () => memory.statementBudget() };
  const runAll = (run: RunOperation) =>
    runOperationTransaction(transaction, (inside) => run({ ...dependencies, database: inside }));
  try {
    return await runAll(runInside);
  } catch (error) {
    noteNotCompiled(compilation, requestInfo.requestId, error);
    return runAll((inside) => runUnbound(inside, planned));
  }
}

async function runBound(
  dependencies: RunDependencies,
  planned: PlannedOperation,
  bound: BoundOperation,
): Promise<OperationResult> {
  const { memory, requestInfo, isOneTransaction } = planned;
  try {
    const options = compiledRunOptions(dependencies, planned);
    return await runCompiled(bound, options, async ({ document, countsSignUp }, reason) => {
      if (isOneTransaction) throw reason;
      noteNotCompiled(dependencies.compilation, requestInfo.requestId, reason);
      memory.endExecution();
      // A step that runs again is the same sign-up.
      const countSignUp = countsSignUp ? null : planned.countSignUp;
      return runUnbound(dependencies, { ...planned, countSignUp, args: { ...planned.args, document } });
    });
  } finally {
    memory.endExecution();
  }
}

/** Runs the fields of an operation by themselves. */
export async function runUnbound(dependencies: RunDependencies, planned: PlannedOperation): Promise<OperationResult> {
  try {
    const optionsFor = (database: CallerDatabase) => compiledRunOptions({ ...dependencies, database }, planned);
    return await runFields(planned, dependencies.database, optionsFor);
  } finally {
    planned.memory.endExecution();
  }
}

export function compiledRunOptions(
  { database, makeWriteRows }: Pick<RunDependencies, "database" | "makeWriteRows">,
  { memory, context, requestInfo, isOneTransaction, countSignUp, runFieldsRefusal }: PlannedOperation,
): CompiledRunOptions {
  return {
    database,
    context,
    signal: requestInfo.signal,
    budget: memory.rowBudget(),
    maxBytes: memory.maxBytes,
    admit: (bytes) => memory.admitBytes(bytes),
    writeRows: makeWriteRows(database, context),
    stopsAtError: isOneTransaction,
    countSignUp,
    runFieldsRefusal,
  };
}
