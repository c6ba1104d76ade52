import { statfs } from "node:fs/promises";
import { ifPresent } from "./if-present.ts";

/** The share of a disk that uploads leave free, for Postgres and other writers. */
const RESERVED_SHARE = 0.05;
const MOST_RESERVED_BYTES = 1024 ** 3;
/** Below this multiple of the reserve, unneeded contents are deleted sooner. */
const SCARCE = 4;
const CHECK_EVERY_BYTES = 4 * 1024 * 1024;

/** The error for a disk without room for uploads. */
export class StoreFull extends Error {
  override name = "StoreFull";
}

/** Returns a function to call with the number of bytes to be written. It rejects with `StoreFull` before the reserve is used. */
export function makeSpaceCheck(folder: string): (bytes: number) => Promise<void> {
  let unchecked = CHECK_EVERY_BYTES;
  return async (bytes) => {
    unchecked += bytes;
    if (unchecked < CHECK_EVERY_BYTES) return;
    unchecked = 0;
    if ((await reservesFree(folder)) < 1) throw new StoreFull(`The disk of ${folder} has no room for more files`);
  };
}

export async function isSpaceScarce(folder: string): Promise<boolean> {
  return (await reservesFree(folder)) < SCARCE;
}

/** Returns the free space as a multiple of the reserve. */
async function reservesFree(folder: string): Promise<number> {
  const disk = await ifPresent(() => statfs(folder));
  // File systems without a size report 0.
  if (!disk || disk.blocks === 0) return Number.POSITIVE_INFINITY;
  const reserved = Math.min(disk.blocks * disk.bsize * RESERVED_SHARE, MOST_RESERVED_BYTES);
  return (disk.bavail * disk.bsize) / reserved;
}
