import { mkdir, readdir, rename, rm, stat, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import type { CronItem, Task, TaskList } from "graphile-worker";
import type { FileStore } from "#files";
import { withServiceClient } from "#postgres/client";
import type { AsOwner } from "#postgres/database";
import type { Logger } from "#runtime/log";
import { writeArchive } from "./write-archive.ts";

/** The name of the task in the queue, and the key of its only job. */
export const BACKUP_TASK = "content_service_backup";
/** The job has no queue name: the queue of a killed process would stay locked for hours. A lock replaces it. */
const JOB = { maxAttempts: 3, jobKey: BACKUP_TASK };
/** The lock belongs to the session, so that it ends with the process. */
const TRY_LOCK = "select pg_catalog.pg_try_advisory_lock(pg_catalog.hashtextextended($1, 0)) as locked";
const RETRY_LOCK_MS = 60_000;
const FILE_NAME = /^backup-\d{4}-\d\d-\d\dT[\d-]+Z\.gz$/;

/**
 * The suffix of the mark beside a backup that was restored and compared. `REJECTED_SUFFIX` is the suffix of one that could
 * not be restored.
 */
const CHECKED_SUFFIX = ".checked";
const CHECKED_NAME = /^backup-.*\.gz\.checked$/;
const UNCHECKED_SUFFIX = ".unchecked";
/** The name of a backup whose process was killed during the check. */
const UNCHECKED_NAME = /^backup-.*\.gz\.unchecked$/;
const REJECTED_SUFFIX = ".rejected";
const REJECTED_NAME = /^backup-.*\.gz\.rejected$/;
const CHECK_FAILED = "The backup cannot be restored as it was: ";

/** `last_error` remains until the job succeeds or is scheduled again. */
const FAILURE = "select last_error as error from graphile_worker.jobs where key = $1 and last_error is not null";

type ScheduledBackupOptions = {
  /** The URL of the owner, without a pooler. */
  readonly url: string;
  readonly asOwner: AsOwner;
  /** The schedule of backups, in cron's syntax and UTC. */
  readonly schedule: string;
  readonly directory: string;
  /** The number of backups to keep. */
  readonly keep: number;
  /** Restores a backup into a temporary database, and throws if the result differs; null if backups are not checked. */
  readonly check: ((file: string) => Promise<unknown>) | null;
  /** The file store whose contents become part of the backups. */
  readonly store?: FileStore;
  readonly log: Pick<Logger, "info" | "error">;
};

export type BackupState = {
  /** The time of the newest backup in the directory; null if there is none. */
  readonly lastSuccess: Date | null;
  readonly lastBytes: number;
  /** True if the last backup failed, in any gateway. */
  readonly isFailing: boolean;
  /** True if the backup was written, but could not be restored. */
  readonly isRejected: boolean;
  /** The last time at which a backup in the directory was restored and compared. Undefined if backups are not checked. */
  readonly lastCheck: Date | null | undefined;
  /** The number of backups that this process has written. */
  readonly succeeded: number;
  readonly failed: number;
};

/** Writes backups at the scheduled times: once for all gateways, which share the queue. */
export class ScheduledBackup {
  readonly #options: ScheduledBackupOptions;
  readonly #stopping = new AbortController();
  #state: BackupState = {
    ...{ lastSuccess: null, lastBytes: 0, isFailing: false, isRejected: false, lastCheck: undefined },
    ...{ succeeded: 0, failed: 0 },
  };

  constructor(options: ScheduledBackupOptions) {
    this.#options = options;
    if (options.check) this.#state = { ...this.#state, lastCheck: null };
  }

  get state(): BackupState {
    return this.#state;
  }

  /** The item for graphile-worker, which records each scheduled time in the database. */
  get cron(): CronItem {
    return { task: BACKUP_TASK, identifier: BACKUP_TASK, match: this.#options.schedule, options: JOB };
  }

  get tasks(): TaskList {
    return { [BACKUP_TASK]: this.#runJob };
  }

  readonly #runJob: Task = async (_payload, { addJob }) => {
    const { directory, log } = this.#options;
    const file = join(resolve(directory), `backup-${new Date().toISOString().replace(/[:.]/g, "-")}.gz`);
    try {
      if (!(await this.#withLock(() => this.#writeBackup(file)))) {
        await addJob(BACKUP_TASK, {}, { ...JOB, runAt: new Date(Date.now() + RETRY_LOCK_MS) });
        log.info("a scheduled backup is postponed, because another one is in progress");
      }
    } catch (err) {
      this.#state = { ...this.#state, failed: this.#state.failed + 1 };
      log.error({ err, file }, "a scheduled backup failed");
      throw err;
    } finally {
      await this.refresh().catch(() => {});
    }
  };

  /** Returns false if another backup is in progress: two at once would only slow each other down. */
  async #withLock(work: () => Promise<void>): Promise<boolean> {
    return withServiceClient(this.#options.url, async (client) => {
      const { rows } = await client.query<{ locked: boolean }>(TRY_LOCK, [BACKUP_TASK]);
      const { locked } = rows[0]!;
      if (locked) await work();
      return locked;
    });
  }

  async #writeBackup(file: string): Promise<void> {
    const { url, directory, store, log } = this.#options;
    const begin = performance.now();
    await mkdir(directory, { recursive: true, mode: 0o700 });
    const written = await writeArchive(url, this.#options.check ? `${file}${UNCHECKED_SUFFIX}` : file, {
      signal: this.#stopping.signal,
      store,
    });
    log.info({ file, ...written, seconds: (performance.now() - begin) / 1_000 }, "a scheduled backup was written");
    await this.#check(file);
    this.#state = { ...this.#state, succeeded: this.#state.succeeded + 1 };
    await this.#deleteOld();
  }

  /** Only a backup that can be restored gets its final name. The newest rejected one is kept for inspection. */
  async #check(file: string): Promise<void> {
    const { check, log } = this.#options;
    if (!check) return;
    const begin = performance.now();
    const unchecked = `${file}${UNCHECKED_SUFFIX}`;
    try {
      await check(unchecked);
    } catch (cause) {
      await rename(unchecked, `${file}${REJECTED_SUFFIX}`);
      for (const older of (await this.#listFiles(REJECTED_NAME)).slice(0, -1)) await rm(older, { force: true });
      throw new Error(`${CHECK_FAILED}${(cause as Error).message}`, { cause });
    }
    await rename(unchecked, file);
    await writeFile(`${file}${CHECKED_SUFFIX}`, "", { mode: 0o600 });
    log.info({ file, seconds: (performance.now() - begin) / 1_000 }, "a scheduled backup was checked");
  }

  /** Reads the state that the gateways share. */
  async refresh(): Promise<void> {
    const newest = (await this.#listFiles(FILE_NAME)).at(-1);
    const { mtime, size } = newest ? await stat(newest) : { mtime: null, size: 0 };
    const { rows } = await this.#options.asOwner((client) => client.query<{ error: string }>(FAILURE, [BACKUP_TASK]));
    const lastCheck = this.#options.check ? await this.#readLastCheck() : undefined;
    const isRejected = rows.some(({ error }) => error.includes(CHECK_FAILED));
    const isFailing = rows.length > 0;
    this.#state = { ...this.#state, lastSuccess: mtime, lastBytes: size, isFailing, isRejected, lastCheck };
  }

  async #readLastCheck(): Promise<Date | null> {
    const newest = (await this.#listFiles(CHECKED_NAME)).at(-1);
    return newest === undefined ? null : (await stat(newest)).mtime;
  }

  /** Cancels a backup in progress; another process repeats it. */
  cancel(): void {
    this.#stopping.abort(new Error("The service is stopping."));
  }

  async #deleteOld(): Promise<void> {
    const backups = await this.#listFiles(FILE_NAME);
    const abandoned = await this.#listFiles(UNCHECKED_NAME);
    const rejected = this.#options.check ? await this.#listFiles(REJECTED_NAME) : [];
    const old = backups.slice(0, -this.#options.keep);
    const marks = old.map((file) => `${file}${CHECKED_SUFFIX}`);
    for (const file of [...old, ...marks, ...abandoned, ...rejected]) await rm(file, { force: true });
  }

  /** Lists the oldest files first. */
  async #listFiles(pattern: RegExp): Promise<string[]> {
    const { directory } = this.#options;
    const names = await readdir(directory).catch(() => []);
    return names
      .filter((name) => pattern.test(name))
      .sort()
      .map((name) => join(resolve(directory), name));
  }
}
