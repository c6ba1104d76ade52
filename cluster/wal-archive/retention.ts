import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { findFileOwner } from "../embedded/cluster-folders.ts";
import {
  type ArchiveContent,
  type ArchivedSegment,
  BASES,
  type BaseBackup,
  DRAFT_SUFFIX,
  listArchives,
  WRITER_FILE,
} from "./archive-folder.ts";

type Unneeded = { readonly bases: readonly BaseBackup[]; readonly segments: readonly ArchivedSegment[] };

/**
 * Returns the files that no time since `keepFrom` needs: base backups before the newest one that was complete then, and the
 * WAL below it. An archive without such a base backup needs all of its files.
 */
export function findUnneeded({ bases, segments, segmentBytes }: ArchiveContent, keepFrom: Date): Unneeded {
  const first = bases.findLast(({ completedAt }) => completedAt <= keepFrom) ?? bases[0];
  if (!first) return { bases: [], segments: [] };
  return {
    bases: bases.slice(0, bases.indexOf(first)),
    segments: segments.filter(({ start }) => start + BigInt(segmentBytes) <= first.start),
  };
}

/** True if an archive that is no longer written to can restore no time since `keepFrom`. */
export function isExpired({ bases, progress }: ArchiveContent, keepFrom: Date): boolean {
  const newest = bases.at(-1);
  return !newest || (progress?.at ?? newest.completedAt) < keepFrom;
}

/** Deletes unneeded files in the archives of this cluster, and of its copies, unless another process writes to them. */
export async function deleteUnneeded(
  folder: string,
  {
    current,
    systemIdentifier,
    keepFrom,
  }: {
    /** The folder of the archive that this process writes to. */
    readonly current: string;
    readonly systemIdentifier: string;
    readonly keepFrom: Date;
  },
): Promise<void> {
  for (const archive of await listArchives(folder)) {
    if (archive.systemIdentifier !== systemIdentifier) continue;
    const isCurrent = archive.folder === current;
    if (!isCurrent && (await findFileOwner(join(archive.folder, WRITER_FILE))) !== null) continue;
    if (!isCurrent && isExpired(archive, keepFrom)) {
      await rm(archive.folder, { recursive: true, force: true });
      continue;
    }
    const { bases, segments } = findUnneeded(archive, keepFrom);
    // A base backup without its WAL is useless, and WAL without it does no harm.
    for (const { folder: base } of bases) await rm(base, { recursive: true, force: true });
    for (const { file } of segments) await rm(file, { force: true });
  }
}

/** Deletes the drafts of killed processes. The caller is the only one that writes to the archive. */
export async function deleteDrafts(archive: string): Promise<void> {
  const folder = join(archive, BASES);
  for (const name of await readdir(folder).catch(() => [])) {
    if (name.endsWith(DRAFT_SUFFIX)) await rm(join(folder, name), { recursive: true, force: true });
  }
}
