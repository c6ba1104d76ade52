export { dimensionsOf, itemCodecOf } from "./ArrayDimensionsPlugin.ts";
export { baseCodecOf, isInstantCodec } from "./codecs.ts";
export { IS_EMPTY_FIELD } from "./EmptySchemaPlugin.ts";
export {
  type FieldSource,
  type FilterSource,
  type FunctionArgument,
  type NodeTable,
  ownValueSql,
  type PagePart,
  rowFilterOf,
  sourceOf,
  withSource,
} from "./field-sources.ts";
export {
  failureTextOf,
  fitsInSetting,
  keepResult,
  keepRow,
  keptRow,
  keptRows,
  RESULT_SETTING,
  resultRows,
  UnsuccessfulResult,
} from "./function-call.ts";
export { pgServiceOf } from "./gather-query.ts";
export { isIdScalar, takesExactNumbers } from "./graphql-types.ts";
export { isIdCodec, toOriginalCodec, validIdOf } from "./IdScalarPlugin.ts";
export { isLosableInterface } from "./NodePlugins.ts";
export { compareRanks } from "./name-claims.ts";
export { hasNestedFields, isNestedValue, type RowInput, readRowInput } from "./nested-inputs.ts";
export { type ObjectValue, objectValueOf } from "./object-values.ts";
export {
  findFunctionsWithoutField,
  functionSignature,
  inputTypesOf,
  isKnownTo,
  type ObjectHolder,
  type OmittedObject,
  quoteSqlName,
  sqlTypeName,
} from "./omitted-objects.ts";
export { equals, haveValues, operatorOf, rowOperatorOf } from "./operators.ts";
export {
  type OrderSql,
  orderExpressionsOf,
  type RowOrder,
  readLimit,
  readOffset,
  readPage,
} from "./PaginationPlugin.ts";
export {
  isInsertedRow,
  isWrittenRow,
  type RowsWrite,
  writtenKeys,
} from "./planned-write.ts";
export { makePreset } from "./preset.ts";
export { conditionOf, joinPairs } from "./row-conditions.ts";
export { parseRowEvent, type RowEvent, topicsOf } from "./row-events.ts";
export type { BindValue } from "./row-operators.ts";
export { rowTypesOf } from "./row-types.ts";
export { type SelectionValues, shownRowsOf } from "./shown-fields.ts";
export { emptyInputError, mutationsOfTable } from "./TableMutationsPlugin.ts";
export { isTransaction } from "./TransactionPlugin.ts";
export { collectTypesInOrder } from "./TypesInOrderPlugin.ts";
export {
  type Codec,
  type GraphqlTableNames,
  keyOf,
  listGraphqlTableNames,
  outputTypeOf,
  type PgRelation,
  type PgTable,
  type SchemaResource,
  tablesOf,
} from "./table.ts";
export {
  fallbackTypeOf,
  isVisibleTo,
  type RolePrivileges,
  withheldValueOf,
} from "./VisibilityPlugin.ts";
export { hasRowArgument, isRowArgument } from "./WherePlugin.ts";
export { wholeRow } from "./whole-row.ts";
export { writtenColumnOf } from "./written-columns.ts";
