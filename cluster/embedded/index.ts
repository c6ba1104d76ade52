export { type Cluster, startCluster } from "./cluster.ts";
export { acquireFile, clusterFolders, findFileOwner, releaseFile } from "./cluster-folders.ts";
export { type Binaries, findBinaries, stagingFolder } from "./create-cluster.ts";
export { deleteStaleDrafts, draftNameOf } from "./draft-files.ts";
export {
  chooseAccount,
  chownTo,
  endWithParent,
  processesIn,
  removeDraft,
  signal,
  spawnAs,
  stopOrphans,
} from "./processes.ts";
export { syncFolder } from "./sync-folder.ts";
export { withTemporaryFolder } from "./temporary-folder.ts";
