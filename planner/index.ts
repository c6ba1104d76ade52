export { describeShownRows, isBodyOfRows } from "./describe-shown-rows.ts";
export { describeIntent } from "./intent/describe-intent.ts";
export { type IntentOutline, outlineIntent, restoreIntent } from "./intent-outline.ts";
export { explainNestedError, explainRowsError, nestedPathOf } from "./nested-errors.ts";
export { cursorNotPossible, orderNotTotal } from "./plan/keyset-page.ts";
export { type CallPlan, notOneRow, type Plan, type ReadPlan, type WritePlan } from "./plan/plan.ts";
export { operatorsOf } from "./plan/plan-update.ts";
export { isToOne, nameRelationships, type StoredRelationship } from "./plan/relationship.ts";
export type { LegacyTarget } from "./plan/select-tree.ts";
export {
  bindRequest,
  bindRequestInSteps,
  makeRequestPlanner,
  type PlannedRequest,
  type PlanRequest,
  type PreparedRequest,
} from "./prepare.ts";
export type { ResponseRow } from "./query/build-query.ts";
export { buildVersionCondition, rowVersionsSql, type VersionCondition } from "./row-versions.ts";
export {
  explainGroupError,
  type RunResult,
  readGroupResult,
  runInTransaction,
  runRequest,
  statementsOf,
} from "./run.ts";
export { listUsedObjects } from "./used-objects.ts";
