import { execute } from "grafast";
import type { CallerDatabase } from "../../../graphql/operations/caller-database.ts";
import type {
  OperationDependencies,
  OperationStages,
  PlannedOperation,
} from "../../../graphql/operations/operation.ts";
import { runOperationTransaction } from "../../../graphql/operations/operation-transaction.ts";
import type { OperationResult } from "../../../graphql/operations/run-compiled.ts";
import type { ServiceOptions } from "../../../service/wiring/running-service.ts";
import { attachPlans } from "./attach-plans.ts";
import { keepLiteralDigits } from "./literal-digits.ts";
import { makeWithPgClient } from "./pg-client.ts";

/** A service whose operations Grafast runs, PostGraphile's executor, with which tests compare the statements. */
export const BY_GRAFAST: Partial<ServiceOptions> = { graphqlStages: byGrafast };

function byGrafast(stages: OperationStages, dependencies: OperationDependencies): OperationStages {
  return {
    ...stages,
    query: (planned) => (isOther(planned) ? stages.query(planned) : null),
    async run(planned, bound) {
      if (isOther(planned)) return stages.run(planned, bound);
      const { isOneTransaction, context, memory } = planned;
      const { database } = dependencies;
      const runIn = (inside: CallerDatabase) => runByGrafast(dependencies, inside, planned);
      const transaction = { database, context, makeBudget: () => memory.statementBudget() };
      const result = await (isOneTransaction ? runOperationTransaction(transaction, runIn) : runIn(database));
      return { kind: "result", result };
    },
  };
}

function isOther({ kind, live }: PlannedOperation): boolean {
  return kind === "subscription" || live !== null;
}

async function runByGrafast(
  { makeWriteRows }: OperationDependencies,
  database: CallerDatabase,
  { args, kind, isOneTransaction, memory, requestInfo, context, countSignUp }: PlannedOperation,
): Promise<OperationResult> {
  const { signal } = requestInfo;
  const withPgClient = makeWithPgClient(database, context, {
    readOnly: kind !== "mutation",
    refusesUnsuccessful: isOneTransaction,
    writeRows: makeWriteRows(database, context),
    budgetOf: () => memory.rowBudget(),
    ...(signal && { signal }),
  });
  attachPlans(args.schema);
  // No middleware: PostGraphile's would only set the context values that are set here.
  const contextValue = { pgSettings: null, withPgClient, countSignUp };
  try {
    const document = keepLiteralDigits(args.document, args.schema);
    const result = await execute({ ...args, document, middleware: null, contextValue, outputDataAsString: true });
    if (Symbol.asyncIterator in result) throw new TypeError("Results are not delivered in parts");
    return result;
  } finally {
    memory.endExecution();
  }
}
