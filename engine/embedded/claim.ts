import { createHash, randomUUID } from "node:crypto";
import { link, readFile, rm, writeFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { startOf } from "./processes.ts";

/** Makes the file this process's own; returns the process that has it already, or null when it is ours. */
export async function claim(file: string): Promise<number | null> {
  const own = await nameOf(process.pid);
  // The file must never be seen half written, so it is written under another name first.
  const draft = `${file}.${randomUUID()}`;
  try {
    await writeFile(draft, own);
    for (;;) {
      if (await linkNew(draft, file)) return null;
      const found = await read(file);
      if (found === own) return null;
      if (found === null) continue;
      const owner = await livingOwner(found);
      if (owner !== null) return owner;
      await replaceDead(file, found, draft);
      await sleep(5);
    }
  } finally {
    await rm(draft, { force: true });
  }
}

export async function release(file: string): Promise<void> {
  if ((await read(file)) === (await nameOf(process.pid))) await rm(file, { force: true });
}

/** The living process that has claimed the file. */
export async function claimantOf(file: string): Promise<number | null> {
  const found = await read(file);
  return found === null ? null : livingOwner(found);
}

/** Of several that find the same dead owner one alone may put itself in its place, so that right is claimed as well. */
async function replaceDead(file: string, dead: string, draft: string): Promise<void> {
  const right = `${file}.after-${createHash("sha256").update(dead).digest("hex").slice(0, 8)}`;
  if ((await claim(right)) !== null) return;
  try {
    if ((await read(file)) !== dead) return;
    await rm(file);
    await linkNew(draft, file);
  } finally {
    await release(right);
  }
}

/** A process id comes again, after a restart of a container even at once; with its start time it does not. */
async function nameOf(pid: number): Promise<string> {
  return `${pid}\n${await startOf(pid)}\n`;
}

async function livingOwner(name: string): Promise<number | null> {
  const pid = Number.parseInt(name, 10);
  if (!(pid > 0) || (await startOf(pid)) === null) return null;
  return (await nameOf(pid)) === name ? pid : null;
}

async function linkNew(from: string, to: string): Promise<boolean> {
  try {
    await link(from, to);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
    throw error;
  }
}

async function read(file: string): Promise<string | null> {
  return readFile(file, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return null;
    throw error;
  });
}
