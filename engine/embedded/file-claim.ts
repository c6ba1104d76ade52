import { createHash, randomUUID } from "node:crypto";
import { link, readFile, rm, writeFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { startTimeOf } from "./processes.ts";

/** Claims the file for this process. Null on success, otherwise the id of the process that has claimed it. */
export async function claimFile(file: string): Promise<number | null> {
  const own = await processIdentity(process.pid);
  // Written under another name first, so that nobody reads an incomplete file.
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

/** The id of the running process that has claimed the file. */
export async function findClaimant(file: string): Promise<number | null> {
  const found = await readIfPresent(file);
  return found === null ? null : livingOwner(found);
}

/** Only one of several processes may replace the same dead owner, so the replacement itself is claimed too. */
async function replaceDeadOwner(file: string, dead: string, draft: string): Promise<void> {
  const claim = `${file}.after-${createHash("sha256").update(dead).digest("hex").slice(0, 8)}`;
  if ((await claimFile(claim)) !== null) return;
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
