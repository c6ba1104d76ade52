import { createHash, randomUUID } from "node:crypto";
import { chmod, link, lstat, mkdir, readFile, rm, rmdir, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { chownTo, type SystemAccount, startTimeOf } from "./processes.ts";

export type ClusterFolders = {
  /** Postgres's data folder. */
  readonly data: string;
  /** Contains the unix socket; closed to other users. */
  readonly socket: string;
  /** Contains the id of the process that has claimed the folder. */
  readonly ownerFile: string;
};

/** The kernel's limit for a socket's path is 107 bytes on Linux and 103 on macOS. */
const MAX_SOCKET_PATH = 103;

export function clusterFolders(dataDir: string): ClusterFolders {
  const root = resolve(dataDir);
  return { data: join(root, "postgres"), socket: socketFolder(root), ownerFile: join(root, "service.pid") };
}

function socketFolder(root: string): string {
  const inside = join(root, "socket");
  // The setting is a comma-separated list, so paths with special characters cannot be used.
  if (/^[\w/.+ -]+$/.test(inside) && join(inside, ".s.PGSQL.5432").length <= MAX_SOCKET_PATH) return inside;
  return join(tmpdir(), `content-service-${createHash("sha256").update(root).digest("hex").slice(0, 16)}`);
}

export async function createFolders(
  dataDir: string,
  { socket }: ClusterFolders,
  account: SystemAccount | null,
): Promise<void> {
  await mkdir(dataDir, { recursive: true });
  await mkdir(socket, { mode: 0o700 }).catch(async (error: NodeJS.ErrnoException) => {
    if (error.code !== "EEXIST") throw error;
    await refuseForeignFolder(socket, account);
  });
  await chownTo(account, socket);
  await chmod(socket, 0o700);
}

/** Another user may have created the socket's folder in a shared temporary folder to intercept connections. */
async function refuseForeignFolder(folder: string, account: SystemAccount | null): Promise<void> {
  const found = await lstat(folder);
  const ours = [process.getuid?.() ?? found.uid, account?.uid];
  if (found.isDirectory() && ours.includes(found.uid)) return;
  throw new Error(
    `${folder} belongs to another user: run the service as that user, or set DATA_DIR to another folder.`,
  );
}

/** Acquires the file for this process. Null on success, otherwise the id of the process that owns it. */
export async function acquireFile(file: string): Promise<number | null> {
  const own = await processIdentity(process.pid);
  // The file is written under another name first, so that nobody reads an incomplete file.
  const draft = `${file}.${randomUUID()}`;
  try {
    await writeFile(draft, own);
    for (;;) {
      if (await linkIfAbsent(draft, file)) return null;
      const found = await readIfPresent(file);
      if (found === own) return null;
      if (found === null) continue;
      const owner = await livingOwner(found);
      if (owner !== null) return owner;
      await replaceDeadOwner(file, found, draft);
      await sleep(5);
    }
  } finally {
    await rm(draft, { force: true });
  }
}

export async function releaseFile(file: string): Promise<void> {
  if ((await readIfPresent(file)) === (await processIdentity(process.pid))) await rm(file, { force: true });
}

/** Releases the claim, and removes the socket's folder if it is outside of the data folder: nothing else would. */
export async function releaseFolders({ data, socket, ownerFile }: ClusterFolders): Promise<void> {
  // The folder is empty, unless a killed server has left its socket there, or another user has created it.
  if (dirname(socket) !== dirname(data)) await rmdir(socket).catch(() => {});
  await releaseFile(ownerFile);
}

/** Returns the id of the running process that owns the file. */
export async function findFileOwner(file: string): Promise<number | null> {
  const found = await readIfPresent(file);
  return found === null ? null : livingOwner(found);
}

/** Only one of several processes may replace the same dead owner, so the replacement itself is acquired too. */
async function replaceDeadOwner(file: string, dead: string, draft: string): Promise<void> {
  const claim = `${file}.after-${createHash("sha256").update(dead).digest("hex").slice(0, 8)}`;
  if ((await acquireFile(claim)) !== null) return;
  try {
    if ((await readIfPresent(file)) !== dead) return;
    await rm(file);
    await linkIfAbsent(draft, file);
  } finally {
    await releaseFile(claim);
  }
}

/** Process ids are reused, in a restarted container even immediately; together with the start time they are unique. */
async function processIdentity(pid: number): Promise<string> {
  return `${pid}\n${await startTimeOf(pid)}\n`;
}

async function livingOwner(name: string): Promise<number | null> {
  const pid = Number.parseInt(name, 10);
  if (!(pid > 0) || (await startTimeOf(pid)) === null) return null;
  return (await processIdentity(pid)) === name ? pid : null;
}

async function linkIfAbsent(from: string, to: string): Promise<boolean> {
  try {
    await link(from, to);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
}

async function readIfPresent(file: string): Promise<string | null> {
  return readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return null;
    throw error;
  });
}
