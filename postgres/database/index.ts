export { type IsolationLevel, makeOpeningStatements, type TransactionEnd } from "./batch-steps.ts";
export type { RunningStatement } from "./connection.ts";
export { type ConnectionCapabilities, probeSessions } from "./connection-capabilities.ts";
export type { ConnectionPoolState, ConnectionPoolsState } from "./connection-pools.ts";
export { Database, openDatabase } from "./database.ts";
export {
  ANONYMOUS_NOT_SERVED,
  ContextError,
  changedButResponseTooLarge,
  clientDetailOf,
  connectionLost,
  databaseUnreachable,
  failedStatementOf,
  isContextRefused,
  isOutcomeUnknown,
  isQueryCanceled,
  isResponseTooLarge,
  isRoleRefused,
  isSchemaOutdated,
  isSerializationFailure,
  outcomeUnknown,
  PrecedingStatementError,
  responseTooLarge,
  SCHEMA_CHANGED_MESSAGE,
  shuttingDown,
} from "./database-errors.ts";
export type { RunStatementOptions, SharedRunOptions } from "./database-options.ts";
export { BECOME_LOGIN } from "./login-role.ts";
export { formatLsn, type Lsn, parseLsn } from "./lsn.ts";
export {
  combineObservers,
  joinStatementTexts,
  logSlowStatements,
  type SlowStatement,
  SlowStatements,
  type StatementObserver,
} from "./observe-statements.ts";
export { type AsOwner, inOwnerTransaction, makeOwnerFunction } from "./owner-pool.ts";
export { shorterLimit } from "./pipelined-batch.ts";
export type { PoolName } from "./pool-sizes.ts";
export { openPostgresSocket, type PostgresSocket } from "./postgres-socket.ts";
export type { ConnectionCounters } from "./prepared-statements.ts";
export { CURRENT_TIMELINE, type PrimarySnapshot } from "./primary-snapshot.ts";
export { MessageEncoder } from "./protocol-messages.ts";
export type { ReplicaState } from "./replicas.ts";
export { type MemoryAllowance, ResponseBudget, UNLIMITED } from "./response-budget.ts";
export type { RowChunk } from "./result-collectors.ts";
export { suspectsStandby } from "./standby-check.ts";
export type { ReadYourWrites } from "./statement.ts";
export { findNamedRelations } from "./statement-shape.ts";
export {
  asLogin,
  type QueryInTransaction,
  type QueryTogether,
  type RunStatement,
} from "./transaction.ts";
