import { createHash } from "node:crypto";
import { chmod, lstat, mkdir } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { type Account, giveTo } from "./account.ts";

export type Folders = {
  /** Postgres's own data folder. */
  readonly data: string;
  /** Holds the unix socket; nobody else may enter. */
  readonly socket: string;
  /** Names the process that has claimed the folder. */
  readonly ownerFile: string;
};

/** The kernel's limit for a socket's path is 107 bytes on Linux and 103 on macOS. */
const LONGEST_SOCKET_PATH = 103;

export function foldersOf(dataDir: string): Folders {
  const root = resolve(dataDir);
  return { data: join(root, "postgres"), socket: socketFolder(root), ownerFile: join(root, "service.pid") };
}

function socketFolder(root: string): string {
  const inside = join(root, "socket");
  // Postgres reads a list of folders here, so a path with its punctuation must not be one of them.
  if (/^[\w/.+ -]+$/.test(inside) && join(inside, ".s.PGSQL.5432").length <= LONGEST_SOCKET_PATH) return inside;
  return join(tmpdir(), `content-service-${createHash("sha256").update(root).digest("hex").slice(0, 16)}`);
}

export async function makeFolders(dataDir: string, { socket }: Folders, account: Account | null): Promise<void> {
  await mkdir(dataDir, { recursive: true });
  await mkdir(socket, { mode: 0o700 }).catch(async (error: NodeJS.ErrnoException) => {
    if (error.code !== "EEXIST") throw error;
    await refuseForeign(socket, account);
  });
  await giveTo(account, socket);
  await chmod(socket, 0o700);
}

/** In a shared temporary folder somebody else may have made it first, to sit between us and the server. */
async function refuseForeign(folder: string, account: Account | null): Promise<void> {
  const found = await lstat(folder);
  const ours = [process.getuid?.() ?? found.uid, account?.uid];
  if (found.isDirectory() && ours.includes(found.uid)) return;
  throw new Error(
    `${folder} belongs to another user: run the service as the one who made it, or set DATA_DIR to another folder.`,
  );
}
