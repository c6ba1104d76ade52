import { appendFile, mkdir, readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Config } from "#config";
import type { Logger } from "#runtime/log";
import type { RecentRequest } from "./recent-requests.ts";

const EXTENSION = ".ndjson";
const FLUSH_MS = 500;
/** Beyond it, requests are left out: a disk that is too slow must not fill the memory. */
const MAX_WAITING = 20_000;
/** A full log has at least so many files. The oldest one is deleted for a new one. */
const MIN_FILES = 16;
/** A file is searched in one turn, in which no request is served: some milliseconds. */
const MAX_FILE_BYTES = 1_000_000;

type LogFile = { readonly path: string; readonly bytes: number; readonly modified: number };

type RequestLogOptions = {
  /** The folder, which all processes share. */
  readonly folder: string;
  /** The bytes of all files. */
  readonly maxBytes: number;
  readonly log: Pick<Logger, "warn">;
};

/** Writes finished requests to files, in batches after the responses. Their bytes are bounded. */
export class RequestLog {
  readonly #options: RequestLogOptions;
  readonly #fileBytes: number;
  #waiting: RecentRequest[] = [];
  #timer: NodeJS.Timeout | undefined;
  #writing: Promise<void> = Promise.resolve();
  #file: string | null = null;
  #bytes = 0;
  #opened = 0;
  #hasFailed = false;

  constructor(options: RequestLogOptions) {
    this.#options = options;
    this.#fileBytes = Math.min(Math.ceil(options.maxBytes / MIN_FILES), MAX_FILE_BYTES);
  }

  add(request: RecentRequest): void {
    if (this.#waiting.length >= MAX_WAITING) return;
    this.#waiting.push(request);
    this.#timer ??= setTimeout(() => void this.flush(), FLUSH_MS).unref();
  }

  /** Resolves when all requests so far are written. */
  flush(): Promise<void> {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#writing = this.#writing.then(() => this.#write()).catch((error: unknown) => this.#fail(error));
    return this.#writing;
  }

  async #write(): Promise<void> {
    const lines = this.#waiting.map((request) => `${JSON.stringify(request)}\n`);
    this.#waiting = [];
    for (let from = 0; from < lines.length; ) {
      const isFull = this.#bytes + Buffer.byteLength(lines[from]!) > this.#fileBytes;
      if (this.#file === null || isFull) await this.#openFile();
      const [text, next] = takeLines(lines, from, this.#fileBytes - this.#bytes);
      await appendFile(this.#file!, text, { mode: 0o600 });
      this.#bytes += Buffer.byteLength(text);
      from = next;
    }
    this.#hasFailed = false;
  }

  async #openFile(): Promise<void> {
    const { folder, maxBytes } = this.#options;
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const files = await listLogFiles(folder);
    let total = files.reduce((sum, { bytes }) => sum + bytes, 0);
    for (const { path, bytes } of files.toReversed()) {
      if (total + this.#fileBytes <= maxBytes) break;
      await rm(path, { force: true });
      total -= bytes;
    }
    this.#file = join(folder, `${Date.now()}-${process.pid}-${this.#opened++}${EXTENSION}`);
    this.#bytes = 0;
  }

  /** Requests are answered without the log. A warning is logged once. */
  #fail(error: unknown): void {
    this.#file = null;
    if (!this.#hasFailed) this.#options.log.warn({ err: error }, "the log of requests could not be written");
    this.#hasFailed = true;
  }
}

export function requestLogFolder({ dataDir }: Pick<Config, "dataDir">): string {
  return join(dataDir, "requests");
}

/** Null if no log is set. */
export function openRequestLog(
  config: Pick<Config, "dataDir" | "requestLogMb">,
  log: RequestLogOptions["log"],
): RequestLog | null {
  if (config.requestLogMb === 0) return null;
  return new RequestLog({ folder: requestLogFolder(config), maxBytes: config.requestLogMb * 1_000_000, log });
}

/** Joins lines up to a number of bytes, and at least one. Returns the number of the next line, too. */
function takeLines(lines: readonly string[], from: number, maxBytes: number): [string, number] {
  let [next, bytes] = [from, 0];
  while (next < lines.length && (next === from || bytes + Buffer.byteLength(lines[next]!) <= maxBytes)) {
    bytes += Buffer.byteLength(lines[next]!);
    next++;
  }
  return [lines.slice(from, next).join(""), next];
}

/** Orders `9` before `10`. */
const NUMBERS = new Intl.Collator("en", { numeric: true });

/** The files of a log, the last changed one first. Files that were changed within one tick of the clock have the order of their names. */
export async function listLogFiles(folder: string): Promise<LogFile[]> {
  const names = await readdir(folder).catch(() => []);
  const files = await Promise.all(
    names
      .filter((name) => name.endsWith(EXTENSION))
      .map(async (name) => {
        const path = join(folder, name);
        // Another process may have deleted it.
        const found = await stat(path).catch(() => null);
        return found === null ? [] : [{ path, bytes: found.size, modified: found.mtimeMs }];
      }),
  );
  return files.flat().toSorted((one, other) => other.modified - one.modified || NUMBERS.compare(other.path, one.path));
}
