import { randomBytes } from "node:crypto";
import { mkdir, readFile, rename, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import type pg from "pg";
import { type Lsn, parseLsn } from "#postgres/database";
import type { Logger } from "#runtime/log";
import { acquireFile } from "../embedded/cluster-folders.ts";
import {
  type ArchiveContent,
  BASES,
  DRAFT_SUFFIX,
  describeArchive,
  readArchiveFolder,
  SEGMENTS,
  type WalArchive,
  WRITER_FILE,
} from "./archive-folder.ts";
import { parseByteSize, startOfSegment } from "./wal-segments.ts";

/** A physical slot, so that Postgres keeps the WAL that is not archived yet, at most max_slot_wal_keep_size. */
export const WAL_SLOT = "content_service_wal";
/** The file in DATA_DIR that names the archive of its WAL. A restored or new cluster has none. */
const POINTER = "wal-archive.json";
/** Undefined object: there is no such slot. */
const UNDEFINED_OBJECT = "42704";

export type OpenedArchive = WalArchive & {
  /** The beginning of the segment from which WAL is missing. */
  readonly resumeAt: Lsn;
  /** The file that this process has claimed. */
  readonly claim: string;
};

type OpenArchiveOptions = {
  readonly dataDir: string;
  /** The folder of all archives. */
  readonly folder: string;
  readonly log: Pick<Logger, "info" | "warn">;
};

type Slot = { readonly restart: string | null; readonly status: string | null };

/**
 * Returns the archive of the cluster, claimed for this process, and the slot from which it continues. If the WAL in between
 * is gone, or the cluster is another one, a new archive begins.
 */
export async function openArchive(client: pg.Client, options: OpenArchiveOptions): Promise<OpenedArchive> {
  const cluster = await identifyCluster(client);
  const slot = await readSlot(client);
  const known = await readPointer(options.dataDir);
  const content = known === null ? null : await readArchiveFolder(join(options.folder, known));
  const resumeAt = content && continuation(content, cluster, slot);
  if (content && resumeAt !== null) return claimArchive({ ...content, resumeAt });
  if (content) options.log.warn({ folder: content.folder }, "the WAL after this archive is gone: a new one begins");
  return beginArchive(client, cluster, options);
}

/** Drops the slot; otherwise Postgres would keep WAL although archiving is off. */
export async function dropWalSlot(query: (text: string, values: unknown[]) => Promise<unknown>): Promise<void> {
  await query(
    `select pg_catalog.pg_drop_replication_slot(slot_name)
       from pg_catalog.pg_replication_slots where slot_name = $1 and not active`,
    [WAL_SLOT],
  );
}

type ClusterIdentity = Omit<WalArchive, "folder"> & { readonly flushed: Lsn };

async function identifyCluster(client: pg.Client): Promise<ClusterIdentity> {
  const { rows: identity } = await client.query<{ systemid: string; timeline: number | string; xlogpos: string }>(
    "IDENTIFY_SYSTEM",
  );
  const { rows: size } = await client.query<{ wal_segment_size: string }>("SHOW wal_segment_size");
  const { rows: version } = await client.query<{ server_version_num: string }>("SHOW server_version_num");
  const { systemid, timeline, xlogpos } = identity[0]!;
  return {
    systemIdentifier: systemid,
    timeline: Number(timeline),
    segmentBytes: parseByteSize(size[0]!.wal_segment_size),
    major: Math.floor(Number(version[0]!.server_version_num) / 10_000),
    flushed: parseLsn(xlogpos)!,
  };
}

async function readSlot(client: pg.Client): Promise<Slot | null> {
  const { rows } = await client.query<Slot>(
    `select restart_lsn::pg_catalog.text as restart, wal_status as status
       from pg_catalog.pg_replication_slots where slot_name = '${WAL_SLOT}'`,
  );
  return rows[0] ?? null;
}

/** Returns the beginning of the first incomplete segment; null if the archive cannot be continued without a gap. */
function continuation(
  content: ArchiveContent,
  { systemIdentifier, timeline, segmentBytes, flushed }: ClusterIdentity,
  slot: Slot | null,
): Lsn | null {
  const isSame =
    content.systemIdentifier === systemIdentifier &&
    content.timeline === timeline &&
    content.segmentBytes === segmentBytes;
  const kept = parseLsn(slot?.restart ?? "");
  const last = content.segments.at(-1);
  if (!isSame || kept === null || slot?.status === "lost" || !last) return null;
  const resumeAt = last.state === "partial" ? last.start : last.start + BigInt(segmentBytes);
  // An archive that is ahead belongs to a copy of this cluster.
  const isAhead = resumeAt > flushed || (content.progress?.lsn ?? 0n) > flushed;
  return isAhead || startOfSegment(kept, segmentBytes) > resumeAt ? null : resumeAt;
}

async function beginArchive(
  client: pg.Client,
  { flushed: _, ...cluster }: ClusterIdentity,
  { dataDir, folder, log }: OpenArchiveOptions,
): Promise<OpenedArchive> {
  await client.query(`DROP_REPLICATION_SLOT ${WAL_SLOT}`).catch((error: pg.DatabaseError) => {
    if (error.code !== UNDEFINED_OBJECT) throw error;
  });
  await client.query(`CREATE_REPLICATION_SLOT ${WAL_SLOT} PHYSICAL RESERVE_WAL`);
  const slot = await readSlot(client);
  const resumeAt = startOfSegment(parseLsn(slot?.restart ?? "")!, cluster.segmentBytes);
  const name = `${new Date().toISOString().slice(0, 19).replaceAll(":", "-")}Z-${randomBytes(3).toString("hex")}`;
  const archive = { ...cluster, folder: join(folder, name) };
  for (const part of [BASES, SEGMENTS]) await mkdir(join(archive.folder, part), { recursive: true, mode: 0o700 });
  await describeArchive(archive);
  const opened = await claimArchive({ ...archive, resumeAt });
  await writePointer(dataDir, name);
  log.info({ folder: archive.folder }, "a WAL archive begins");
  return opened;
}

async function claimArchive(archive: WalArchive & { readonly resumeAt: Lsn }): Promise<OpenedArchive> {
  const claim = join(archive.folder, WRITER_FILE);
  const owner = await acquireFile(claim);
  if (owner === null) return { ...archive, claim };
  throw new Error(
    `Another service, with process id ${owner}, writes to the WAL archive ${archive.folder}: this DATA_DIR is a copy of its folder. ` +
      `Delete ${POINTER} in this one.`,
  );
}

/** Returns the name of the archive that the cluster in the folder writes to; null if it never had one. */
export async function readPointer(dataDir: string): Promise<string | null> {
  try {
    const { archive } = JSON.parse(await readFile(join(resolve(dataDir), POINTER), "utf8")) as { archive: string };
    return archive;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT" || error instanceof SyntaxError) return null;
    throw error;
  }
}

async function writePointer(dataDir: string, archive: string): Promise<void> {
  const file = join(resolve(dataDir), POINTER);
  await writeFile(`${file}${DRAFT_SUFFIX}`, `${JSON.stringify({ archive })}\n`, { flush: true });
  await rename(`${file}${DRAFT_SUFFIX}`, file);
}
