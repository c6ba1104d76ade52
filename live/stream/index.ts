export { openReplication } from "./change-stream.ts";
export type {
  ChangeFollower,
  ChangeSubscription,
  CommittedTransaction,
  HistoryPosition,
  LogicalMessage,
  ReplicatedColumn,
  ReplicatedRelation,
  ReplicatedRow,
  ReplicationGap,
  ReplicationStream,
  RowChange,
} from "./changes.ts";
export { PositionGoneError } from "./position-gone-error.ts";
export {
  FRAME_HEADER_BYTES,
  KEEPALIVE,
  KEEPALIVE_BYTES,
  makeReplicationClient,
  standbyStatus,
  WAL_DATA,
} from "./replication-connection.ts";
export { KEEPER_SLOT_NAME, REALTIME_PUBLICATION } from "./replication-slots.ts";
export { validUntil } from "./stream-history.ts";
export { type AwaitVisible, makeAwaitVisible } from "./transaction-visibility.ts";
