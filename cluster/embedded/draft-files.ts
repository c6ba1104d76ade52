import { createHash, randomUUID } from "node:crypto";
import { readdir, readlink, rm, stat } from "node:fs/promises";
import { hostname } from "node:os";
import { join } from "node:path";
import { startTimeOf } from "./processes.ts";

/** The name of an unfinished file, which contains its writer: machine, process id and start time. */
const DRAFT_NAME = /\.([\da-f]{8})-(\d{1,10})-([\da-f]{8})\.[\da-f-]{36}\.part$/;
/** The name of an unfinished file of earlier releases, which named no writer. */
const UNNAMED_DRAFT = /\.gz\.[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}\.part$/;
/** A writer whose process is not visible from here counts as gone if it has written nothing for this time. */
const SILENCE_MS = 24 * 3_600_000;

/**
 * Returns a new name beside the file, for writing it before it is renamed. It names this process, so that others can detect
 * an abandoned file.
 */
export async function draftNameOf(file: string): Promise<string> {
  const start = shortHash((await startTimeOf(process.pid)) ?? "");
  return `${file}.${await machineTag()}-${process.pid}-${start}.${randomUUID()}.part`;
}

/** Deletes the unfinished files of writers that are gone, and returns their names. All other files stay. */
export async function deleteStaleDrafts(folder: string): Promise<string[]> {
  const stale = await listStaleDrafts(folder);
  const files: string[] = [];
  for (const name of stale) {
    const about = await stat(join(folder, name)).catch(() => null);
    if (!about?.isFile()) continue;
    await rm(join(folder, name), { force: true });
    files.push(name);
  }
  return files;
}

/** Returns the names of unfinished files and folders whose writers are gone. */
export async function listStaleDrafts(folder: string): Promise<string[]> {
  const names: string[] = [];
  for (const name of await readdir(folder).catch(() => [])) {
    if (await isStale(folder, name)) names.push(name);
  }
  return names;
}

async function isStale(folder: string, name: string): Promise<boolean> {
  const [, machine, pid, start] = DRAFT_NAME.exec(name) ?? [];
  if (machine !== undefined && machine === (await machineTag())) {
    const running = await startTimeOf(Number(pid));
    return running === null || shortHash(running) !== start;
  }
  if (machine === undefined && !UNNAMED_DRAFT.test(name)) return false;
  const written = await stat(join(folder, name)).catch(() => null);
  return written?.isFile() === true && Date.now() - written.mtimeMs > SILENCE_MS;
}

/** The tag is needed because process ids are those of a machine or container. */
async function machineTag(): Promise<string> {
  return shortHash(`${hostname()} ${await readlink("/proc/self/ns/pid").catch(() => "")}`);
}

function shortHash(text: string): string {
  return createHash("sha256").update(text).digest("hex").slice(0, 8);
}
