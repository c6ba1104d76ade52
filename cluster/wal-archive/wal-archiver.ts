import { once } from "node:events";
import { mkdir, statfs } from "node:fs/promises";
import { resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { makeReplicationClient } from "#live/stream";
import { findServer } from "#postgres/client";
import type { Lsn } from "#postgres/database";
import { retryDelay } from "#runtime/concurrency";
import type { Logger } from "#runtime/log";
import { releaseFile } from "../embedded/cluster-folders.ts";
import {
  type ArchiveProgress,
  folderBytes,
  openProgress,
  readArchiveFolder,
  recoverableRange,
} from "./archive-folder.ts";
import { takeBaseBackup } from "./base-backup.ts";
import { type OpenedArchive, openArchive, WAL_SLOT } from "./open-archive.ts";
import { deleteDrafts, deleteUnneeded } from "./retention.ts";
import { SegmentWriter } from "./segment-writer.ts";
import { WalReceiver } from "./wal-receiver.ts";

export type WalArchiverOptions = {
  /** The data folder of the embedded cluster. */
  readonly dataDir: string;
  /** The folder of all archives. */
  readonly folder: string;
  /** The URL of the owner. */
  readonly url: string;
  /** The age of the newest base backup at which another one is made. */
  readonly baseHours: number;
  readonly keepDays: number;
  /** The free space that stays on the disk of the archive. */
  readonly reserveBytes: number;
  /** Restores the archive in a temporary folder after each base backup; null if archives are not checked. */
  readonly check: ((archive: string) => Promise<unknown>) | null;
  readonly log: Pick<Logger, "info" | "warn" | "error">;
  readonly onChange?: (state: WalArchiveState) => void;
};

export type WalArchiveState = {
  /** The earliest and the latest time that can be restored; null before the first base backup. */
  readonly range: { readonly from: Date; readonly to: Date } | null;
  /** A description of the current fault, without file names; null if there is none. */
  readonly fault: string | null;
  readonly lastBase: Date | null;
  /** The size of the archive when the last base backup was made. */
  readonly bytes: number;
  readonly failures: number;
};

type Fault = "archive" | "base" | "check";

const FAULTS: Readonly<Record<Fault, string>> = {
  archive: "WAL is not archived.",
  base: "The last base backup failed.",
  check: "The last check of the WAL archive failed.",
};
const APPLICATION_NAME = "content-service WAL archive";
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const MAX_DELAY_MS = 30_000;
/** The pause after a base backup that failed. */
const BASE_RETRY_MS = 300_000;
/** The interval between checks of the age of the newest base backup. */
const BASE_POLL_MS = 60_000;
/** The interval between records of the progress while nothing is written. */
const IDLE_PROGRESS_MS = 5_000;

/** Archives the WAL of the embedded cluster while it runs, makes base backups, and deletes files that are older than configured. */
export class WalArchiver {
  readonly #options: WalArchiverOptions;
  readonly #stopping = new AbortController();
  readonly #ended: Promise<void>;
  readonly #faults = new Set<Fault>();
  #state: WalArchiveState = { range: null, fault: null, lastBase: null, bytes: 0, failures: 0 };
  #abandon: (() => void) | null = null;
  #archived: Lsn = 0n;
  #waiting: { readonly lsn: Lsn; readonly done: () => void }[] = [];

  constructor(options: WalArchiverOptions) {
    this.#options = options;
    this.#ended = this.#run();
  }

  get state(): WalArchiveState {
    return this.#state;
  }

  /** Stops Postgres, which first sends the rest of the WAL, and then archiving. */
  async closeWith(stopPostgres: () => Promise<void>): Promise<void> {
    this.#stopping.abort(new Error("The service is stopping."));
    await stopPostgres();
    this.#abandon?.();
    await this.#ended;
  }

  async #run(): Promise<void> {
    for (let attempt = 1; !this.#isStopping; attempt++) {
      const begin = performance.now();
      try {
        await this.#archive();
      } catch (err) {
        if (this.#isStopping) return;
        this.#fail("archive", err, attempt);
      }
      if (performance.now() - begin > MAX_DELAY_MS) attempt = 1;
      const delay = attempt > 5 ? MAX_DELAY_MS : retryDelay(attempt);
      await sleep(delay, undefined, { signal: this.#stopping.signal }).catch(() => {});
    }
  }

  get #isStopping(): boolean {
    return this.#stopping.signal.aborted;
  }

  /** Archives over one connection, until Postgres or the disk fails. */
  async #archive(): Promise<void> {
    const { url, folder, log } = this.#options;
    await mkdir(resolve(folder), { recursive: true, mode: 0o700 });
    await this.#checkSpace();
    await using opened = new AsyncDisposableStack();
    const { client } = await findServer(url).connect((server) => makeReplicationClient(server, APPLICATION_NAME));
    opened.defer(() => client.end().catch(() => {}));
    const archive = await openArchive(client, { dataDir: this.#options.dataDir, folder: resolve(folder), log });
    opened.defer(() => releaseFile(archive.claim));
    await deleteDrafts(archive.folder);
    const ending = new AbortController();
    const progress = await openProgress(archive.folder);
    opened.defer(() => progress.close());
    const onError = (err: Error) => log.warn({ err }, "a WAL segment could not be compressed");
    const writer = new SegmentWriter(archive, archive.resumeAt, onError);
    opened.defer(() => writer.close());
    await writer.compressLeftOver();
    await this.#readState(archive.folder);
    this.#archived = archive.resumeAt;
    const receiver = new WalReceiver({
      ...archive,
      client,
      slot: WAL_SLOT,
      writer,
      onProgress: (lsn, at) => this.#onProgress({ lsn, at }, progress.write),
      checkSpace: () => this.#checkSpace(),
    });
    const bases = this.#makeBases(archive, AbortSignal.any([ending.signal, this.#stopping.signal]));
    this.#abandon = () => ending.abort();
    try {
      await receiver.run(ending.signal);
    } finally {
      ending.abort();
      this.#waiting = [];
      await bases;
    }
  }

  #written: ArchiveProgress = { lsn: 0n, at: new Date(0) };

  async #onProgress(reached: ArchiveProgress, write: (progress: ArchiveProgress) => Promise<void>): Promise<void> {
    this.#archived = reached.lsn;
    for (const { lsn, done } of this.#waiting) if (lsn <= reached.lsn) done();
    this.#waiting = this.#waiting.filter(({ lsn }) => lsn > reached.lsn);
    this.#recover("archive");
    const isIdle = reached.lsn === this.#written.lsn;
    if (isIdle && reached.at.getTime() - this.#written.at.getTime() < IDLE_PROGRESS_MS) return;
    await write(reached);
    this.#written = reached;
    const { range } = this.#state;
    if (range) this.#change({ range: { ...range, to: reached.at > range.from ? reached.at : range.from } });
  }

  /** Makes a base backup whenever the newest one is old, until the archive ends. */
  async #makeBases(archive: OpenedArchive, signal: AbortSignal): Promise<void> {
    const { baseHours } = this.#options;
    while (!signal.aborted) {
      const { lastBase } = this.#state;
      const isDue = lastBase === null || Date.now() - lastBase.getTime() >= baseHours * HOUR_MS;
      const isFine = !isDue || (await this.#makeBase(archive, signal));
      await sleep(isFine ? BASE_POLL_MS : BASE_RETRY_MS, undefined, { signal }).catch(() => {});
    }
  }

  /** Returns false if it failed. */
  async #makeBase(archive: OpenedArchive, signal: AbortSignal): Promise<boolean> {
    const { url, log } = this.#options;
    const begin = performance.now();
    try {
      await this.#checkSpace();
      const base = await takeBaseBackup({
        url,
        folder: archive.folder,
        signal,
        checkSpace: () => this.#checkSpace(),
        awaitArchived: (lsn) => this.#awaitArchived(lsn, signal),
      });
      const seconds = (performance.now() - begin) / 1_000;
      log.info({ folder: base.folder, bytes: base.bytes, seconds }, "a base backup was written");
      this.#recover("base");
      await this.#deleteOld(archive);
      await this.#readState(archive.folder);
    } catch (err) {
      if (signal.aborted) return true;
      this.#fail("base", err);
      return false;
    }
    await this.#check(archive, signal);
    return true;
  }

  async #check({ folder }: OpenedArchive, signal: AbortSignal): Promise<void> {
    const { check, log } = this.#options;
    if (!check) return;
    try {
      // A stop does not wait for the check; the next check deletes its files.
      await Promise.race([check(folder), rejectOnAbort(signal)]);
      log.info({ folder }, "the WAL archive was checked");
      this.#recover("check");
    } catch (err) {
      if (!signal.aborted) this.#fail("check", err);
    }
  }

  async #deleteOld({ folder: current, systemIdentifier }: OpenedArchive): Promise<void> {
    const keepFrom = new Date(Date.now() - this.#options.keepDays * DAY_MS);
    await deleteUnneeded(resolve(this.#options.folder), { current, systemIdentifier, keepFrom });
  }

  async #readState(folder: string): Promise<void> {
    const content = await readArchiveFolder(folder);
    if (!content) return;
    const lastBase = content.bases.at(-1)?.completedAt ?? null;
    this.#change({ range: recoverableRange(content), lastBase, bytes: await folderBytes(folder) });
  }

  async #awaitArchived(lsn: Lsn, signal: AbortSignal): Promise<void> {
    if (lsn <= this.#archived) return;
    const { promise, resolve: done, reject } = Promise.withResolvers<void>();
    const abandon = () => reject(signal.reason);
    signal.addEventListener("abort", abandon);
    this.#waiting.push({ lsn, done });
    await promise.finally(() => signal.removeEventListener("abort", abandon));
  }

  /** Throws if the reserve is used: a full disk would also stop Postgres if its files are on it. */
  async #checkSpace(): Promise<void> {
    const { folder, reserveBytes } = this.#options;
    const { bavail, bsize } = await statfs(resolve(folder));
    if (bavail * bsize >= reserveBytes) return;
    const free = Math.floor((bavail * bsize) / 2 ** 20);
    throw new Error(
      `The disk of ${resolve(folder)} has only ${free} MB left, and BACKUP_WAL_RESERVE_MB is ${Math.floor(reserveBytes / 2 ** 20)}. ` +
        "Free some space, move BACKUP_DIR to another disk, or keep the archive for fewer days (BACKUP_WAL_KEEP).",
    );
  }

  #fail(fault: Fault, err: unknown, attempt = 1): void {
    const isNew = !this.#faults.has(fault);
    this.#faults.add(fault);
    // A lasting fault is logged at first, and then occasionally.
    if (isNew || fault !== "archive" || attempt % 20 === 0) this.#options.log.error({ err }, FAULTS[fault]);
    this.#change({ fault: this.#currentFault, failures: this.#state.failures + 1 });
  }

  #recover(fault: Fault): void {
    if (!this.#faults.delete(fault)) return;
    this.#change({ fault: this.#currentFault });
    if (fault === "archive") this.#options.log.info("WAL is archived again");
  }

  get #currentFault(): string | null {
    const [first] = (Object.keys(FAULTS) as Fault[]).filter((fault) => this.#faults.has(fault));
    return first ? FAULTS[first] : null;
  }

  #change(changed: Partial<WalArchiveState>): void {
    this.#state = { ...this.#state, ...changed };
    this.#options.onChange?.(this.#state);
  }
}

async function rejectOnAbort(signal: AbortSignal): Promise<never> {
  if (!signal.aborted) await once(signal, "abort");
  throw signal.reason;
}
