export { describeIntent } from "./intent/describe-intent.ts";
export {
  type AggregateName,
  ALL_COLUMNS,
  type CallArgument,
  type CallIntent,
  type ColumnOperators,
  type ComparisonName,
  type CountMethod,
  type CursorPage,
  type CursorPosition,
  type DeleteIntent,
  type ExplainOption,
  type FieldReference,
  type FilterOperation,
  type InsertIntent,
  type Intent,
  type JsonPathStep,
  type JsonValueSpans,
  MAX_SEARCHED_RELATIONS,
  MEASURE_NAMES,
  type Measure,
  type NestedRows,
  type NestedUpdate,
  type OperatorQuantifier,
  type OrderTerm,
  operandName,
  operatorName,
  type ReadIntent,
  type ResponseFormat,
  type ResponseOptions,
  type RowCondition,
  type RowPayload,
  type RowRange,
  type RowSelection,
  SEARCH_OPERATORS,
  type SearchedField,
  type SearchOperation,
  type SearchOperator,
  type SelectedAggregate,
  type SelectedColumn,
  type SelectedRelation,
  type SelectItem,
  UPDATE_OPERATORS,
  type UpdateIntent,
  type UpdateOperator,
  type WithEmbedPath,
} from "./intent/intent.ts";
export { type IntentOutline, outlineIntent, restoreIntent } from "./intent-outline.ts";
export { explainNestedError, explainRowsError, nestedPathOf } from "./nested-errors.ts";
export {
  findTable,
  isCallable,
  mayCallRoutine,
  mayNameColumn,
  mayNameTable,
  routineNotFound,
} from "./plan/find-target.ts";
export { cursorNotPossible, orderNotTotal } from "./plan/keyset-page.ts";
export { operatorSchemaOf } from "./plan/operator-schema.ts";
export { type CallPlan, notOneRow, type Plan, type ReadPlan, type WritePlan } from "./plan/plan.ts";
export type { NestedStep } from "./plan/plan-nested.ts";
export { operatorsOf } from "./plan/plan-update.ts";
export { isToOne, nameRelationships, type StoredRelationship } from "./plan/relationship.ts";
export { findRepresentation } from "./plan/scope.ts";
export type { LegacyTarget } from "./plan/select-tree.ts";
export type { SearchedPart } from "./plan/selection.ts";
export {
  bindRequest,
  bindRequestInSteps,
  makeRequestPlanner,
  type PlannedRequest,
  type PlanRequest,
  type PreparedRequest,
  retainedBytes,
} from "./prepare.ts";
export type { ResponseRow } from "./query/build-query.ts";
export { makeSearchSql, type SearchQuery } from "./query/search-sql.ts";
export { buildVersionCondition, rowVersionsSql, type VersionCondition } from "./row-versions.ts";
export {
  explainGroupError,
  type RunResult,
  readGroupResult,
  runInTransaction,
  runRequest,
  statementsOf,
} from "./run.ts";
export {
  type ColumnComparison,
  describeShownRows,
  isBodyOfRows,
  type ShownPage,
  type ShownRelation,
  type ShownRows,
  type ShownTable,
  toShownPage,
} from "./shown-tables.ts";
export { listUsedObjects } from "./used-objects.ts";
