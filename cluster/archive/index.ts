export { checkArchive, checkInScratch, type RestoreResult, restoreArchive } from "./restore-archive.ts";
export { type BackupState, ScheduledBackup } from "./scheduled-backup.ts";
export { upgradeCluster } from "./upgrade-cluster.ts";
export { writeArchive } from "./write-archive.ts";
