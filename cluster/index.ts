export { type BranchOptions, BranchOptionsError, type BranchRequest, parseBranchOptions } from "./branch-options.ts";
export { createBranch, databaseOf, dropBranch, listBranches } from "./branches.ts";
export { withTemporaryFolder } from "./embedded/temporary-folder.ts";
export { openWalArchive } from "./embedded-wal-archive.ts";
export {
  describePlannedTime,
  findRecoverableTimes,
  type LostRows,
  planFor,
  refuseExternal,
  restoreLostRows,
} from "./restore-to-time.ts";
export {
  awaitLogin,
  EMBEDDED_DATABASE,
  joinPostgres,
  loginRoleOf,
  type PostgresUrls,
  reachPostgres,
  type ServedPostgres,
  startPostgres,
  toClientUrl,
} from "./served-postgres.ts";
export { upgradeCluster } from "./upgrade-cluster.ts";
