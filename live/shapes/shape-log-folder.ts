import { constants, type Stats } from "node:fs";
import { type FileHandle, mkdir, opendir, readFile, rm, stat, utimes } from "node:fs/promises";
import { join, resolve } from "node:path";
import type { RepeatedWork, Supervisor } from "#runtime/concurrency";
import type { Logger } from "#runtime/log";
import { OpenFiles } from "./open-files.ts";

/** Since they were used last. */
const KEPT_MS = 25 * 3_600_000;
/** A part of the bound is left for what all processes write until they look again. */
const RESERVE = 1 / 8;
const CLEANING_PAUSE_MS = 3_600_000;
/** Of a process. More shapes that change at once open their files for each change. */
const MOST_OPEN_FILES = 512;
const APPEND = constants.O_WRONLY | constants.O_APPEND;
const CREATE = APPEND | constants.O_CREAT | constants.O_TRUNC;

type FolderOptions = {
  readonly folder: string;
  readonly maxBytes: number;
  /** Of the processes that write to the folder, the part that is this one. */
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

/** The folder of the logs of shapes, which several processes write to. They hold rows: nobody else may read them. */
export class ShapeLogFolder {
  readonly #options: FolderOptions;
  readonly #files = new OpenFiles(MOST_OPEN_FILES);
  #cleaning: RepeatedWork | null = null;
  #reading: Promise<unknown> = Promise.resolve();
  #reserved: Promise<void> = Promise.resolve();
  #writtenBytes = 0;
  #isFailing = false;

  constructor(options: FolderOptions) {
    this.#options = options;
  }

  /** Writes a new file, or the end of one that is there, and keeps it open. False if it cannot. */
  async write(name: string, text: string, isNew: boolean): Promise<boolean> {
    const path = this.#path(name);
    try {
      const bytes = Buffer.from(text);
      if (bytes.length > this.#options.maxBytes * (1 - RESERVE)) return false;
      await this.#reserve(bytes.length);
      if (isNew) {
        await this.#files.close(path);
        await mkdir(this.#options.folder, { recursive: true, mode: 0o700 });
        await this.#files.use(path, CREATE, (file) => writeAll(file, bytes));
      } else if (!(await this.#append(path, bytes))) return false;
      this.#isFailing = false;
      return true;
    } catch (error) {
      if (!isAbsent(error)) this.#warn(error);
      return false;
    }
  }

  /** False if the file was deleted, perhaps by another process: it is not created again. */
  async #append(path: string, bytes: Buffer): Promise<boolean> {
    let isDeleted = false;
    await this.#files.use(path, APPEND, async (file) => {
      await writeAll(file, bytes);
      isDeleted = (await file.stat()).nlink === 0;
    });
    if (isDeleted) await this.#files.close(path);
    return !isDeleted;
  }

  /** The file is open until then, and again from the next write on. */
  async release(name: string): Promise<void> {
    await this.#files.close(this.#path(name)).catch(() => {});
  }

  /** One at a time: after a restart, all clients come at once. */
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
    await this.#files.use(this.#path(name), APPEND, (file) => file.datasync()).catch(() => {});
  }

  async touch(name: string): Promise<void> {
    const now = new Date();
    await utimes(this.#path(name), now, now).catch(() => {});
  }

  async remove(name: string): Promise<void> {
    await this.release(name);
    await rm(this.#path(name), { force: true }).catch(() => {});
  }

  /** Without it, files are deleted only where there is something to write. */
  keepClean(supervisor: Supervisor): void {
    const clean = async () => {
      await this.clean();
      return CLEANING_PAUSE_MS;
    };
    this.#cleaning = supervisor.repeat("shape logs", clean, { pauseMs: CLEANING_PAUSE_MS });
  }

  async close(): Promise<void> {
    await this.#cleaning?.close();
    await this.#files.closeAll();
  }

  /** Deletes what was not used for a day, and of the rest the least recently used, until this much more is within the bound. */
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

  /** One at a time, so that each knows what the others have left. */
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

/** A write may take a part only. */
async function writeAll(file: FileHandle, bytes: Buffer): Promise<void> {
  for (let at = 0; at < bytes.length; ) at += (await file.write(bytes, at)).bytesWritten;
}

function isAbsent(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === "ENOENT";
}
