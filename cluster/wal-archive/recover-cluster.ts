import { chmod, copyFile, mkdir, readdir, rename, rm, statfs, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { type Cluster, startCluster } from "../embedded/cluster.ts";
import { clusterFolders, findFileOwner } from "../embedded/cluster-folders.ts";
import { findBinaries } from "../embedded/create-cluster.ts";
import { chooseAccount, chownTo, removeDraft } from "../embedded/processes.ts";
import { syncFolder } from "../embedded/sync-folder.ts";
import type { RecoveryPlan } from "./choose-archive.ts";
import { unpackBase, unpackSegments } from "./unpack-base.ts";

const DRAFT_SUFFIX = ".incomplete";
/** Postgres's message if no transaction was committed after the time: all WAL is before it then. */
const NOTHING_LATER = "recovery ended before configured recovery target was reached";
/** Postgres needs some space besides the files. */
const SPARE_BYTES = 256 * 2 ** 20;

type RecoverOptions = {
  readonly plan: RecoveryPlan;
  /** A data folder that does not exist yet, or is empty. */
  readonly into: string;
  readonly report: (step: string) => void;
};

/**
 * Restores the cluster into a new data folder: unpacks the base backup, lets Postgres replay the WAL until the time and
 * continue as a primary, runs the work on it and its folder, and stops it. The new folder appears when all of this has
 * succeeded.
 */
export async function recoverCluster<T>(
  { plan, into, report }: RecoverOptions,
  work: (url: Cluster["url"], folder: string) => Promise<T>,
): Promise<T> {
  const target = resolve(into);
  await refuseExisting(target);
  await refuseOtherMajor(plan);
  const draft = `${target}${DRAFT_SUFFIX}`;
  await removeAbandoned(draft);
  try {
    await requireSpace(plan, dirname(target));
    await unpack(plan, draft, report);
    report("replaying the WAL");
    const cluster = await startRecovered(plan, draft);
    let result: T;
    try {
      result = await work(cluster.url, draft);
    } finally {
      await cluster.stop();
    }
    await rm(target, { recursive: true, force: true });
    await rename(draft, target);
    await syncFolder(dirname(target));
    return result;
  } catch (error) {
    await rm(draft, { recursive: true, force: true });
    throw error;
  }
}

/** Tokens and the encrypted secrets in the database need the keys of the archive's original folder. */
export async function copySecrets(from: string, into: string): Promise<boolean> {
  const target = join(resolve(into), "secrets.json");
  try {
    await copyFile(join(resolve(from), "secrets.json"), target);
    await chmod(target, 0o600);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return false;
    throw error;
  }
}

async function refuseExisting(target: string): Promise<void> {
  const found = await readdir(target).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return [];
    throw error;
  });
  if (found.length === 0) return;
  throw new Error(`${target} exists and is not empty. Restore into a new folder (--into); nothing was changed.`);
}

async function refuseOtherMajor({ archive }: RecoveryPlan): Promise<void> {
  const { major } = await findBinaries();
  if (archive.major === major) return;
  throw new Error(
    `The WAL archive ${archive.folder} is of Postgres ${archive.major}, and the embedded Postgres is ${major}. ` +
      "Restore it with a release that has that version.",
  );
}

/** Removes the folder of a restore that was killed. */
async function removeAbandoned(draft: string): Promise<void> {
  const owner = await findFileOwner(clusterFolders(draft).ownerFile);
  if (owner !== null) throw new Error(`Process ${owner} is restoring into this folder already.`);
  await removeDraft(clusterFolders(draft).data);
  await rm(draft, { recursive: true, force: true });
}

async function requireSpace({ base, segments, archive }: RecoveryPlan, folder: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  const { bavail, bsize } = await statfs(folder);
  const needed = base.bytes + segments.length * archive.segmentBytes + SPARE_BYTES;
  if (bavail * bsize >= needed) return;
  const [need, free] = [needed, bavail * bsize].map((bytes) => Math.ceil(bytes / 2 ** 20));
  throw new Error(
    `The restored folder needs ${need} MB, and the disk of ${folder} has ${free} MB left. Choose another with --into.`,
  );
}

async function unpack(
  { base, segments, archive }: RecoveryPlan,
  draft: string,
  report: (step: string) => void,
): Promise<void> {
  const account = await chooseAccount();
  const { data } = clusterFolders(draft);
  await mkdir(draft, { recursive: true });
  report(`unpacking the base backup of ${base.completedAt.toISOString()}`);
  await unpackBase(base, data, account);
  report(`unpacking ${segments.length} WAL segments`);
  await unpackSegments(segments, { target: join(data, "pg_wal"), segmentBytes: archive.segmentBytes, account });
  const signal = join(data, "recovery.signal");
  await writeFile(signal, "", { mode: 0o600 });
  await chownTo(account, signal);
}

/** These settings are on the command line only: the restored cluster keeps none of them. */
const RECOVERY_SETTINGS = {
  // All WAL is in its folder already; Postgres requires a command.
  restore_command: "false",
  recovery_target_timeline: "current",
  recovery_target_action: "promote",
  hot_standby: "off",
  // The original cluster may run at the same time.
  shared_buffers: "128MB",
};

async function startRecovered({ until }: RecoveryPlan, draft: string): Promise<Cluster> {
  const start = (settings: Readonly<Record<string, string>>) =>
    startCluster({ dataDir: draft, port: null, settings: { ...RECOVERY_SETTINGS, ...settings }, tell: () => {} });
  if (until === null) return start({});
  try {
    return await start({ recovery_target_time: until.toISOString().replace("T", " ").replace("Z", "+00") });
  } catch (error) {
    if (!(error as Error).message.includes(NOTHING_LATER)) throw error;
    return start({});
  }
}
