export { readCurrentState } from "./apply-migrations.ts";
export { readBackfillStatus, runBackfills } from "./backfill.ts";
export { type ListedBackfill, listBackfills, pauseBackfill } from "./backfill-progress.ts";
export { refuseRehearsalOnCitus } from "./citus-nodes.ts";
export { type ColumnChange, writeColumnPlan } from "./column-plan.ts";
export {
  allHistories,
  committedMigrations,
  displayPath,
  type MigrateSettings,
  type MigrationHistory,
  type ReleaseMigrateSettings,
  releaseHistories,
  writeMigration,
} from "./committed-migrations.ts";
export type { SchemaDifference } from "./compare-schemas.ts";
export { findDrift } from "./drift.ts";
export { listMigrations, type MigrationList } from "./list-migrations.ts";
export { lockLimitsOf } from "./lock-limits.ts";
export { lockModeName } from "./lock-modes.ts";
export { MANY_ROWS } from "./many-rows.ts";
export {
  bringUpToDate,
  readUsersAccess,
  runMigrations,
  setAccountSettings,
  setUsersAccess,
  withMigrationLock,
} from "./migrate.ts";
export { MigrationError } from "./migration-error.ts";
export { appliedMigrations, explainDivergence, readMigrationState } from "./migration-state.ts";
export { isAnyPending, type RehearsedStatement, rehearseMigrations, withCommittedSchema } from "./rehearse.ts";
export { makeSchemaChanges, SchemaChangeError, type SchemaChanges } from "./schema-changes.ts";
export { recreateDatabase, SCRATCH_MARK, withScratchDatabase } from "./scratch-database.ts";
export { lineAt, type SqlStatement, splitStatements, toUtf16Offset } from "./split-statements.ts";
export { isOneTransaction, isTransactionBoundary } from "./split-transactions.ts";
export { holdsOthers, type RequestRate } from "./statement-verdict.ts";
export { type MigrationUndo, undoMigration } from "./undo-migration.ts";
export type { UndoVerdict } from "./undo-verdict.ts";
export { type MigrationWatch, watchMigrations } from "./watch-migrations.ts";
