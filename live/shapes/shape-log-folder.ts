import type { Stats } from "node:fs";
import { open, opendir, readFile, rm, stat, utimes } from "node:fs/promises";
import { join, resolve } from "node:path";
import type { RepeatedWork, Supervisor } from "#runtime/concurrency";
import type { Logger } from "#runtime/log";
import { ShapeLogWriter } from "./shape-log-writer.ts";

/** The time that logs are kept after their last use. */
const KEPT_MS = 25 * 3_600_000;
/** This part of the limit is reserved for the writes of all processes between two checks. */
const RESERVE = 1 / 8;
const CLEANING_PAUSE_MS = 3_600_000;

type FolderOptions = {
  readonly folder: string;
  readonly maxBytes: number;
  /** This process's share of the folder, among the processes that write to it. */
  readonly share: number;
  readonly log: Pick<Logger, "warn">;
};

type ShapeLogSettings = {
  readonly dataDir: string;
  /** 0: no logs are kept. */
  readonly shapeLogMegabytes: number;
  readonly workerShare: number;
};

export function openShapeLogs(
  { dataDir, shapeLogMegabytes, workerShare: share }: ShapeLogSettings,
  { supervisor, log }: { readonly supervisor: Supervisor } & Pick<FolderOptions, "log">,
): ShapeLogFolder | null {
  if (shapeLogMegabytes === 0) return null;
  const folder = join(resolve(dataDir), "shapes");
  const logs = new ShapeLogFolder({ folder, maxBytes: shapeLogMegabytes * 2 ** 20, share, log });
  logs.keepClean(supervisor);
  return logs;
}

/** The folder of the logs of shapes, which several processes write to. The logs hold rows: nobody else may read them. */
export class ShapeLogFolder {
  readonly #options: FolderOptions;
  readonly #writer = new ShapeLogWriter();
  #cleaning: RepeatedWork | null = null;
  #reading: Promise<unknown> = Promise.resolve();
  #reserved: Promise<void> = Promise.resolve();
  #writtenBytes = 0;
  #isFailing = false;

  constructor(options: FolderOptions) {
    this.#options = options;
  }

  /** Writes a new file, or appends to an existing one. Returns false if it cannot. */
  async write(name: string, text: string, isNew: boolean): Promise<boolean> {
    try {
      const bytes = Buffer.byteLength(text);
      if (bytes > this.#options.maxBytes * (1 - RESERVE)) return false;
      await this.#reserve(bytes);
    } catch (error) {
      this.#warn(error);
      return false;
    }
    const failure = await this.#writer.write({ path: this.#path(name), text, isNew });
    if (failure === null) this.#isFailing = false;
    else if (!isAbsent(failure)) this.#warn(failure);
    return failure === null;
  }

  /** Reads one file at a time: after a restart, all clients come at once. */
  read(name: string): Promise<string | null> {
    const reading = this.#reading.then(() => this.#read(name));
    this.#reading = reading;
    return reading;
  }

  async #read(name: string): Promise<string | null> {
    try {
      return await readFile(this.#path(name), "utf8");
    } catch (error) {
      if (!isAbsent(error)) this.#warn(error);
      return null;
    }
  }

  async sync(name: string): Promise<void> {
    try {
      await using file = await open(this.#path(name), "r+");
      await file.datasync();
    } catch {
      // A file that is not there is not continued.
    }
  }

  async touch(name: string): Promise<void> {
    const now = new Date();
    await utimes(this.#path(name), now, now).catch(() => {});
  }

  async remove(name: string): Promise<void> {
    await rm(this.#path(name), { force: true }).catch(() => {});
  }

  /** Deletes unused files regularly; otherwise files are deleted only when there is something to write. */
  keepClean(supervisor: Supervisor): void {
    const clean = async () => {
      await this.clean();
      return CLEANING_PAUSE_MS;
    };
    this.#cleaning = supervisor.repeat("shape logs", clean, { pauseMs: CLEANING_PAUSE_MS });
  }

  async close(): Promise<void> {
    await this.#cleaning?.close();
    await this.#writer.close();
  }

  /** Deletes files not used for a day, then the least recently used ones, until this many more bytes fit the limit. */
  async clean(bytes = 0): Promise<void> {
    this.#writtenBytes = 0;
    const files = (await this.#list()).toSorted((one, other) => one.mtimeMs - other.mtimeMs);
    const oldest = Date.now() - KEPT_MS;
    let total = files.reduce((sum, { size }) => sum + size, bytes);
    for (const { name, size, mtimeMs } of files) {
      if (mtimeMs >= oldest && total <= this.#options.maxBytes * (1 - RESERVE)) return;
      await this.remove(name);
      total -= size;
    }
  }

  async #list(): Promise<(Pick<Stats, "size" | "mtimeMs"> & { readonly name: string })[]> {
    const files: (Pick<Stats, "size" | "mtimeMs"> & { readonly name: string })[] = [];
    try {
      for await (const { name } of await opendir(this.#options.folder)) {
        const found = await stat(this.#path(name)).catch(() => null);
        if (found?.isFile()) files.push({ name, size: found.size, mtimeMs: found.mtimeMs });
      }
    } catch (error) {
      if (!isAbsent(error)) throw error;
    }
    return files;
  }

  /** Reserves for one write at a time, so that each write knows the space that the others have left. */
  #reserve(bytes: number): Promise<void> {
    const { maxBytes, share } = this.#options;
    const reserve = async () => {
      if (this.#writtenBytes + bytes > maxBytes * RESERVE * share) await this.clean(bytes);
      else this.#writtenBytes += bytes;
    };
    this.#reserved = this.#reserved.then(reserve, reserve);
    return this.#reserved;
  }

  #warn(error: unknown): void {
    if (this.#isFailing) return;
    this.#isFailing = true;
    const { folder, log } = this.#options;
    log.warn(
      { err: error, folder },
      "the logs of shapes are not kept: their clients read all rows again after a restart",
    );
  }

  #path(name: string): string {
    return join(this.#options.folder, name);
  }
}

function isAbsent(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === "ENOENT";
}
