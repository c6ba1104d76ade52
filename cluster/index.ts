export { type BranchOptions, BranchOptionsError, type BranchRequest, parseBranchOptions } from "./branch-options.ts";
export { createBranch, databaseOf, dropBranch, listBranches } from "./branches.ts";
export { openWalArchive } from "./embedded-wal-archive.ts";
export { describePlannedTime, type LostRows, restoreLostRows } from "./lost-rows.ts";
export { findRecoverableTimes, planFor, refuseExternal } from "./restore-plan.ts";
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
