import { createHash } from "node:crypto";
import { chmod, lstat, mkdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { chownTo, type SystemAccount } from "./processes.ts";

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

/** In a shared temporary folder, another user may have created it to intercept connections. */
async function refuseForeignFolder(folder: string, account: SystemAccount | null): Promise<void> {
  const found = await lstat(folder);
  const ours = [process.getuid?.() ?? found.uid, account?.uid];
  if (found.isDirectory() && ours.includes(found.uid)) return;
  throw new Error(
    `${folder} belongs to another user: run the service as that user, or set DATA_DIR to another folder.`,
  );
}
