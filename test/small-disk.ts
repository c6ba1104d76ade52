import { execFileSync } from "node:child_process";
import { mkdtemp, open, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Only root may mount a disk that is small enough to fill, and not in every container. */
export const MAY_MOUNT = mayMount();

export function saySkipped(what: string): void {
  if (!MAY_MOUNT) console.log(`${what} is not tried: only root may mount a disk that is small enough to fill.`);
}

export type SmallDisk = AsyncDisposable & {
  readonly folder: string;
  resize(size: string): void;
  /** Writes this file until there is no space left, whoever else takes or frees some meanwhile. */
  fill(file: string): Promise<void>;
};

/** A disk in memory, of this size (`160m`). */
export async function mountSmallDisk(size: string): Promise<SmallDisk> {
  const folder = await mkdtemp(join(tmpdir(), "content-service-disk-"));
  execFileSync("mount", ["-t", "tmpfs", "-o", `size=${size},mode=755`, "tmpfs", folder]);
  return {
    folder,
    resize: (other) => void execFileSync("mount", ["-o", `remount,size=${other}`, folder]),
    async fill(file) {
      await using ballast = await open(join(folder, file), "a");
      for (let bytes = 1 << 20; bytes > 0; ) {
        const isWritten = await ballast.appendFile(Buffer.alloc(bytes)).then(
          () => true,
          () => false,
        );
        if (!isWritten) bytes >>= 1;
      }
    },
    async [Symbol.asyncDispose]() {
      execFileSync("umount", ["-l", folder]);
      await rm(folder, { recursive: true, force: true });
    },
  };
}

function mayMount(): boolean {
  try {
    execFileSync("unshare", ["--mount", "mount", "-t", "tmpfs", "tmpfs", tmpdir()], { stdio: "ignore" });
    return true;
  } catch {
    return false;
  }
}
