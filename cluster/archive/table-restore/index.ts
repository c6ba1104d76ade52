export { type RestoredTable, type RestoreTablesOptions, restoreTables } from "./restore-tables.ts";
export { openArchiveSource, openDatabaseSource, type TableSource } from "./table-source.ts";
