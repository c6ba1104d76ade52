import { once } from "node:events";
import { createWriteStream, type WriteStream } from "node:fs";
import { mkdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import type pg from "pg";
import { makeReplicationClient } from "#live/stream";
import { findServer } from "#postgres/client";
import { type Lsn, parseLsn } from "#postgres/database";
import { syncFolder } from "../embedded/sync-folder.ts";
import { BASES, type BaseBackup, DRAFT_SUFFIX, describeBase } from "./archive-folder.ts";
import { readManifest } from "./base-manifest.ts";

export const BASE_FILE = "base.tar.gz";
export const MANIFEST_FILE = "backup_manifest";
const APPLICATION_NAME = "content-service base backup";
/**
 * The server verifies the checksums of the pages and compresses; it waits neither for a slow checkpoint nor for archive_command, which is
 * not used.
 */
const COMMAND = `BASE_BACKUP (LABEL 'content-service', CHECKPOINT 'fast', WAIT false, MANIFEST 'yes',
  MANIFEST_CHECKSUMS 'SHA256', COMPRESSION 'gzip', COMPRESSION_DETAIL 'level=1')`;
const [ARCHIVE, MANIFEST, DATA, PROGRESS] = ["n", "m", "d", "p"].map((kind) => kind.charCodeAt(0));
/** The number of bytes that are written between two checks of the free space. */
const CHECK_BYTES = 64 * 2 ** 20;

type BaseBackupOptions = {
  /** The URL of the owner. */
  readonly url: string;
  /** The folder of the archive. */
  readonly folder: string;
  readonly signal: AbortSignal;
  /** Throws if there is no space for more. */
  readonly checkSpace: () => Promise<void>;
  /** Resolves when the archive has all WAL below that position. */
  readonly awaitArchived: (lsn: Lsn) => Promise<void>;
};

/** Writes a base backup by Postgres's replication protocol, like pg_basebackup. It appears when it can be restored. */
export async function takeBaseBackup(options: BaseBackupOptions): Promise<BaseBackup> {
  const { url, folder, signal, awaitArchived } = options;
  const name = new Date().toISOString().replace(/[:.]/g, "-");
  const target = join(folder, BASES, name);
  const draft = `${target}${DRAFT_SUFFIX}`;
  await mkdir(draft, { recursive: true, mode: 0o700 });
  const { client } = await findServer(url).connect((server) => makeReplicationClient(server, APPLICATION_NAME));
  const abandon = () => client.connection.stream.destroy();
  signal.addEventListener("abort", abandon);
  try {
    signal.throwIfAborted();
    await refuseTablespaces(client);
    const { start, end } = await receiveBase(client, draft, options);
    const { rows } = await client.query<{ now: Date }>("select pg_catalog.clock_timestamp() as now");
    const { bytes } = await readManifest(join(draft, MANIFEST_FILE));
    await awaitArchived(end);
    const base = { start, end, completedAt: rows[0]!.now, bytes };
    await describeBase({ folder: draft, ...base });
    await syncFolder(draft);
    await rename(draft, target);
    await syncFolder(join(folder, BASES));
    return { folder: target, ...base };
  } catch (error) {
    await rm(draft, { recursive: true, force: true });
    throw error;
  } finally {
    signal.removeEventListener("abort", abandon);
    await client.end().catch(() => {});
  }
}

/** Refuses tablespaces: their files would have to be restored over those of the running database. */
async function refuseTablespaces(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ name: string }>(
    "select spcname as name from pg_catalog.pg_tablespace where oid >= 16384",
  );
  if (rows.length === 0) return;
  throw new Error(
    `Base backups cannot contain tablespaces: move what is in ${rows.map(({ name }) => name).join(", ")} to pg_default, and drop them.`,
  );
}

type BasePositions = { readonly start: Lsn; readonly end: Lsn };

async function receiveBase(
  client: pg.Client,
  draft: string,
  { checkSpace }: BaseBackupOptions,
): Promise<BasePositions> {
  const receiver = new BaseReceiver(client, draft, checkSpace);
  const results = (await client.query(COMMAND)) as unknown as readonly pg.QueryResult<{ recptr: string }>[];
  await receiver.finish();
  const positions = results.flatMap(({ rows }) => rows.map(({ recptr }) => parseLsn(recptr ?? ""))).filter(isPosition);
  const [start, end] = [positions[0], positions.at(-1)];
  if (start === undefined || end === undefined) throw new Error("The server reported no positions of the base backup.");
  return { start, end };
}

function isPosition(lsn: Lsn | null): lsn is Lsn {
  return lsn !== null;
}

/** Writes the files of the stream that the server sends. */
class BaseReceiver {
  readonly #client: pg.Client;
  readonly #folder: string;
  readonly #checkSpace: () => Promise<void>;
  readonly #files: WriteStream[] = [];
  #unchecked = 0;

  constructor(client: pg.Client, folder: string, checkSpace: () => Promise<void>) {
    this.#client = client;
    this.#folder = folder;
    this.#checkSpace = checkSpace;
    client.connection.on("copyData", ({ chunk }: { chunk: Buffer }) => this.#receive(chunk));
  }

  async finish(): Promise<void> {
    await Promise.all(this.#files.map((file) => once(file.end(), "close")));
    // A file that ends emits no "drain".
    this.#client.connection.stream.resume();
  }

  #receive(frame: Buffer): void {
    const [kind] = frame;
    if (kind === ARCHIVE) this.#open(this.#files.length === 0 ? BASE_FILE : `unexpected-${this.#files.length}`);
    else if (kind === MANIFEST) this.#open(MANIFEST_FILE);
    else if (kind === DATA) this.#write(Buffer.from(frame.subarray(1)));
    else if (kind !== PROGRESS) this.#fail(new Error("The server sent an unknown message in a base backup."));
  }

  #open(name: string): void {
    const file = createWriteStream(join(this.#folder, name), { flags: "wx", mode: 0o600, flush: true });
    file.on("error", (error) => this.#fail(error));
    this.#files.push(file);
  }

  /** Writes bytes; the server waits while the disk is slower. */
  #write(bytes: Buffer): void {
    const socket = this.#client.connection.stream;
    const file = this.#files.at(-1)!;
    this.#unchecked += bytes.length;
    if (this.#unchecked > CHECK_BYTES) {
      this.#unchecked = 0;
      this.#checkSpace().catch((error: Error) => this.#fail(error));
    }
    if (file.write(bytes)) return;
    socket.pause();
    file.once("drain", () => socket.resume());
  }

  #fail(error: Error): void {
    this.#client.connection.stream.destroy(error);
  }
}
