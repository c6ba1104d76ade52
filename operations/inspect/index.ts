export { makeAssumedContexts } from "./assumed-contexts.ts";
export { describeDatabase } from "./describe-database.ts";
export { explainStatement, inRolledBackTransaction } from "./explain.ts";
export { type AttemptOutcome, listRequestRoles, type PolicyMatrixRow, readPolicyMatrix } from "./policy-matrix.ts";
export {
  type PolicyTestDependencies,
  PolicyTestError,
  type PolicyTestResult,
  parsePolicyTest,
  runPolicyTest,
} from "./policy-tests.ts";
export { taskCountOf } from "./task-count.ts";
export { tryStatements } from "./try-statements.ts";
