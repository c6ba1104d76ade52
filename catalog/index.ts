export {
  applicablePolicies,
  bypassesPolicies,
  bypassesRowSecurity,
  hasAnyColumnPrivilege,
  policyCondition,
  policyConditionSql,
} from "./access.ts";
export {
  type Catalog,
  exposedSchemas,
  exposedTables,
  findRepresentation,
  hasSmartTag,
  mayCallRoutine,
  mayNameColumn,
  mayNameTable,
  publicComment,
  readSmartTag,
} from "./catalog.ts";
export type { CatalogQuery } from "./catalog-query.ts";
export {
  type ArrayType,
  type BaseType,
  baseTypeOf,
  type CompositeType,
  comparabilityOf,
  type DataType,
  type EnumType,
  type QualifiedName,
  type TypeAttribute,
} from "./data-types.ts";
export { databaseErrorMessage, INVALID_VALUE, invalidValueMessage, isOfSqlText } from "./database-error-message.ts";
export type { DistanceFunction } from "./distances.ts";
export { readDistributedTables } from "./distributed-tables.ts";
export { makeGrantsParser } from "./grants.ts";
export { findMissingGrants } from "./missing-grants.ts";
export { isBuiltInType, operatorSchemaOf, operatorSchemaOfRows } from "./operator-schema.ts";
export { type OwnValue, ownValuesOf } from "./own-values.ts";
export type { Grants, TablePrivilege } from "./privileges.ts";
export {
  type ColumnPair,
  type ComputedRelationship,
  type DirectRelationship,
  type Relationship,
  reverseRelationship,
} from "./relationships.ts";
export type { CatalogRole } from "./roles.ts";
export type { MediaHandler, Routine, RoutineArgument, RoutineReturn } from "./routines.ts";
export type { CatalogSchema } from "./schemas.ts";
export { type RowVisibility, readsAllRows, readTableAccess, type TableAccess } from "./table-access.ts";
export {
  ALL_EVENTS,
  type CatalogColumn,
  type CatalogTable,
  mayRepeatKeys,
  type Policy,
  updatableEvents,
} from "./tables.ts";
export type { UsedObjects } from "./used-objects.ts";
