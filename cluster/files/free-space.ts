import { statfs } from "node:fs/promises";
import { ifPresent } from "./if-present.ts";

/** Uploads leave this much of a disk free, for Postgres and whatever else writes to it. */
const RESERVED_SHARE = 0.05;
const MOST_RESERVED_BYTES = 1024 ** 3;
/** With less than so many times the reserve, what is not needed any more goes sooner. */
const SCARCE = 4;
const CHECK_EVERY_BYTES = 4 * 1024 * 1024;

/** The disk has no room for uploads. */
export class StoreFull extends Error {
  override name = "StoreFull";
}

/** Call it with the size of what is about to be written. Rejects with `StoreFull` before the reserve is used. */
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

/** How many times the reserve is free. */
async function reservesFree(folder: string): Promise<number> {
  const disk = await ifPresent(() => statfs(folder));
  // File systems without a size say 0.
  if (!disk || disk.blocks === 0) return Number.POSITIVE_INFINITY;
  const reserved = Math.min(disk.blocks * disk.bsize * RESERVED_SHARE, MOST_RESERVED_BYTES);
  return (disk.bavail * disk.bsize) / reserved;
}
