import { open, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { formatLsn, type Lsn, parseLsn } from "#postgres/database";
import { syncFolder } from "../embedded/sync-folder.ts";
import { segmentStart, type WalLayout } from "./wal-segments.ts";

/**
 * One archive is one folder: base backups, and the WAL of one cluster and timeline without a gap. After a gap a new archive begins, so
 * that every time between the first base backup and the last WAL can be restored.
 */
export type WalArchive = WalLayout & {
  readonly folder: string;
  /** The identifier of the cluster; restored copies of it have the same one. */
  readonly systemIdentifier: string;
  /** The major version of Postgres. */
  readonly major: number;
};

export type BaseBackup = {
  readonly folder: string;
  /** The position at which recovery begins. */
  readonly start: Lsn;
  /** The first position that can be recovered; earlier ones cannot be recovered from this backup. */
  readonly end: Lsn;
  /** The time of completion; everything committed until then is below `end`. */
  readonly completedAt: Date;
  /** The uncompressed size of all files. */
  readonly bytes: number;
};

/** The time until which all commits are archived, with the position. */
export type ArchiveProgress = { readonly lsn: Lsn; readonly at: Date };

export type ArchivedSegment = {
  readonly name: string;
  readonly file: string;
  readonly start: Lsn;
  readonly state: "compressed" | "complete" | "partial";
};

/** The content of one archive, which can be restored. */
export type ArchiveContent = WalArchive & {
  /** The base backups, the oldest first. */
  readonly bases: readonly BaseBackup[];
  readonly segments: readonly ArchivedSegment[];
  /** The progress; null if the file is unreadable, or nothing was archived yet. */
  readonly progress: ArchiveProgress | null;
};

export const BASES = "base";
export const SEGMENTS = "segments";
const DESCRIPTION = "archive.json";
const BASE_DESCRIPTION = "base.json";
const PROGRESS = "progress.json";
/** The id of the process that writes to the archive. */
export const WRITER_FILE = "writer.pid";
export const DRAFT_SUFFIX = ".part";
export const PARTIAL_SUFFIX = ".partial";
export const COMPRESSED_SUFFIX = ".gz";
const SEGMENT_FILE = /^([\dA-F]{24})(\.gz|\.partial)?$/;

/** Returns the folder of WAL in the folder of backups. */
export function walFolder(backupDir: string): string {
  return join(backupDir, "wal");
}

export async function describeArchive({ folder, ...description }: WalArchive): Promise<void> {
  await replaceFile(join(folder, DESCRIPTION), JSON.stringify(description));
}

export async function describeBase({ folder, start, end, completedAt, bytes }: BaseBackup): Promise<void> {
  const positions = { start: formatLsn(start), end: formatLsn(end) };
  await replaceFile(join(folder, BASE_DESCRIPTION), JSON.stringify({ ...positions, completedAt, bytes }));
}

/** The file is written in place, because a new file every second would cost more; a torn one is unreadable. */
export async function openProgress(folder: string): Promise<{
  write(progress: ArchiveProgress): Promise<void>;
  close(): Promise<void>;
}> {
  const handle = await open(join(folder, PROGRESS), "a", 0o600).then(async (created) => {
    await created.close();
    return open(join(folder, PROGRESS), "r+");
  });
  return {
    async write({ lsn, at }) {
      await handle.write(`${JSON.stringify({ lsn: formatLsn(lsn), at }).padEnd(PROGRESS_BYTES - 1)}\n`, 0);
      await handle.datasync();
    },
    close: () => handle.close(),
  };
}

const PROGRESS_BYTES = 128;

/** Lists all archives in the folder, the oldest first. */
export async function listArchives(folder: string): Promise<ArchiveContent[]> {
  const names = (await readNames(folder)).sort();
  const archives = await Promise.all(names.map((name) => readArchiveFolder(join(folder, name))));
  return archives.filter((archive) => archive !== null);
}

/** Returns null if the folder is not an archive. */
export async function readArchiveFolder(folder: string): Promise<ArchiveContent | null> {
  const description = await readJson<Omit<WalArchive, "folder">>(join(folder, DESCRIPTION));
  if (!description) return null;
  const archive = { folder, ...description };
  return {
    ...archive,
    bases: await readBases(folder),
    segments: await readSegments(archive),
    progress: await readProgress(folder),
  };
}

async function readBases(folder: string): Promise<BaseBackup[]> {
  const names = (await readNames(join(folder, BASES))).filter((name) => !name.endsWith(DRAFT_SUFFIX)).sort();
  const bases = await Promise.all(names.map((name) => readBase(join(folder, BASES, name))));
  return bases.filter((base) => base !== null);
}

async function readBase(folder: string): Promise<BaseBackup | null> {
  const found = await readJson<Record<"start" | "end" | "completedAt", string> & { bytes: number }>(
    join(folder, BASE_DESCRIPTION),
  );
  const [start, end] = [parseLsn(found?.start ?? ""), parseLsn(found?.end ?? "")];
  if (!found || start === null || end === null) return null;
  return { folder, start, end, completedAt: new Date(found.completedAt), bytes: found.bytes };
}

async function readSegments(archive: WalArchive): Promise<ArchivedSegment[]> {
  const folder = join(archive.folder, SEGMENTS);
  const byStart = new Map<Lsn, ArchivedSegment>();
  for (const entry of await readNames(folder)) {
    const [, name, suffix] = SEGMENT_FILE.exec(entry) ?? [];
    const start = name === undefined ? null : segmentStart(name, archive);
    if (name === undefined || start === null) continue;
    const state = suffix === COMPRESSED_SUFFIX ? "compressed" : suffix === undefined ? "complete" : "partial";
    const known = byStart.get(start);
    // A process may be killed between compressing a file and deleting the original.
    if (!known || known.state === "partial" || state === "complete") {
      byStart.set(start, { name, file: join(folder, entry), start, state });
    }
  }
  return [...byStart.values()].sort((one, other) => (one.start < other.start ? -1 : 1));
}

async function readProgress(folder: string): Promise<ArchiveProgress | null> {
  const found = await readJson<{ lsn: string; at: string }>(join(folder, PROGRESS));
  const lsn = parseLsn(found?.lsn ?? "");
  return found && lsn !== null ? { lsn, at: new Date(found.at) } : null;
}

/** Returns the segments from that position up to the first gap. */
export function segmentsFrom({ segments, segmentBytes }: ArchiveContent, start: Lsn): ArchivedSegment[] {
  const first = segments.findIndex((segment) => segment.start + BigInt(segmentBytes) > start);
  if (first < 0 || segments[first]!.start > start) return [];
  const following = segments.slice(first);
  const gap = following.findIndex(
    (segment, index) => segment.start !== following[0]!.start + BigInt(index * segmentBytes),
  );
  return gap < 0 ? following : following.slice(0, gap);
}

/** Returns the earliest and the latest time that the archive can restore; null before its first base backup. */
export function recoverableRange({
  bases,
  progress,
}: ArchiveContent): { readonly from: Date; readonly to: Date } | null {
  if (!bases[0]) return null;
  const from = bases[0].completedAt;
  return { from, to: progress && progress.at > from ? progress.at : from };
}

/** Returns the size of all files in the folder. */
export async function folderBytes(folder: string): Promise<number> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true }).catch(() => []);
  const files = entries.filter((entry) => entry.isFile());
  const sizes = await Promise.all(
    files.map(({ parentPath, name }) =>
      stat(join(parentPath, name)).then(
        ({ size }) => size,
        () => 0,
      ),
    ),
  );
  return sizes.reduce((sum, size) => sum + size, 0);
}

async function replaceFile(file: string, text: string): Promise<void> {
  const draft = `${file}${DRAFT_SUFFIX}`;
  try {
    await writeFile(draft, `${text}\n`, { mode: 0o600, flush: true });
    await rename(draft, file);
    await syncFolder(join(file, ".."));
  } catch (error) {
    await rm(draft, { force: true });
    throw error;
  }
}

async function readNames(folder: string): Promise<string[]> {
  return readdir(folder).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT" || error.code === "ENOTDIR") return [];
    throw error;
  });
}

/** Returns null if the file is missing or damaged. */
async function readJson<T>(file: string): Promise<T | null> {
  try {
    return JSON.parse(await readFile(file, "utf8")) as T;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === "ENOENT" || code === "ENOTDIR" || error instanceof SyntaxError) return null;
    throw error;
  }
}
