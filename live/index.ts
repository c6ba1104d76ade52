export { DependencyCache } from "./dependencies/dependency-cache.ts";
export {
  claimsKey,
  type FindMissingPolicyColumns,
  makeFindMissingPolicyColumns,
  makePolicyClaimsReader,
  type PolicyClaims,
  type PolicyClaimsReader,
} from "./dependencies/policy-dependencies.ts";
export type { QueryDependencies } from "./dependencies/query-dependencies.ts";
export {
  type LiveEvent,
  LiveQueries,
  type LiveResult,
  type LiveSource,
  type LiveSubscription,
} from "./queries/live-queries.ts";
export { filtersOf } from "./queries/result-contents.ts";
export type { LiveShape } from "./shapes/live-shape.ts";
export {
  defineShape,
  invalidShape,
  readRowsOfRun,
  type ShapeDefinition,
  type ShapeParameters,
} from "./shapes/shape-definition.ts";
export type { ShapeChange, ShapePosition, ShapeRow } from "./shapes/shape-log.ts";
export { openShapes, type ShapeRegistry } from "./shapes/shape-registry.ts";
export { defineSubset, type ShapeSubset } from "./shapes/shape-subset.ts";
export { parseNames } from "./shapes/where/condition-tokens.ts";
export { openReplication } from "./stream/change-stream.ts";
export type {
  ChangeFollower,
  ChangeSubscription,
  CommittedTransaction,
  LogicalMessage,
  ReplicatedColumn,
  ReplicatedRelation,
  ReplicatedRow,
  ReplicationGap,
  ReplicationStream,
  RowChange,
} from "./stream/changes.ts";
export {
  FRAME_HEADER_BYTES,
  KEEPALIVE,
  KEEPALIVE_BYTES,
  makeReplicationClient,
  standbyStatus,
  WAL_DATA,
} from "./stream/replication-connection.ts";
export { KEEPER_SLOT_NAME, REALTIME_PUBLICATION } from "./stream/replication-slots.ts";
export { type HistoryPosition, validUntil } from "./stream/stream-history.ts";
export { type AwaitVisible, makeAwaitVisible } from "./stream/transaction-visibility.ts";
