export { listArchives, recoverableRange, walFolder } from "./archive-folder.ts";
export { checkRecovery, withRecovered } from "./check-wal-archive.ts";
export type { RecoveryPlan } from "./choose-archive.ts";
export { readPointer } from "./open-archive.ts";
export { copySecrets, recoverCluster } from "./recover-cluster.ts";
export { parseRecoveryTarget, type RecoveryTarget } from "./recovery-time.ts";
export type { WalArchiveState } from "./wal-archiver.ts";
