export { copySchema, withSchemaCopy } from "./copy-schema.ts";
export { checkArchive, checkInScratch, type RestoreResult, restoreArchive } from "./restore-archive.ts";
export { type BackupState, ScheduledBackup } from "./scheduled-backup.ts";
export {
  type DifferingRow,
  isDifferent,
  type RestoredTable,
  type RestoreTablesOptions,
  restoreTables,
} from "./table-restore/restore-tables.ts";
export { openArchiveSource, openDatabaseSource, type TableSource } from "./table-restore/table-source.ts";
export { writeArchive } from "./write-archive.ts";
