import { constants, fstatSync, openSync, write, writeSync } from "node:fs";
import { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { memoize } from "../cache/memoize.ts";

/** The number of waiting characters above which further lines are dropped. */
const MAX_WAITING_CHARACTERS = 2 ** 20;
/** The number of characters that a writable socket accepts without blocking. */
const MAX_BATCH_CHARACTERS = 2 ** 14;
const LINE_FEED = 0x0a;

type FileDescriptor = 1 | 2;

/** The wait after EAGAIN: another program may have set a shared terminal to non-blocking. */
const RETRY_DELAY_MS = 100;

const writerOf = memoize((file: FileDescriptor) => new LineWriter(targetOf(file)));

export const standardOutput = () => writerOf(1);
export const standardError = () => writerOf(2);

/** A blocking write to a full pipe would occupy a thread, and `process.exit` waits for all threads; Node's streams poll instead. */
function targetOf(file: FileDescriptor): LineTarget {
  const stat = fstatSync(file);
  if (stat.isFIFO()) return streamTarget(reopenPipe(file) ?? standardStream(file));
  return stat.isSocket() ? streamTarget(standardStream(file)) : fileTarget(file);
}

function standardStream(file: FileDescriptor): Socket {
  return file === 1 ? process.stdout : process.stderr;
}

/**
 * Reopens the pipe to get an open file description of our own: O_NONBLOCK belongs to the description, which other
 * processes share and may change. Works only on Linux, and only if the pipe's permissions allow this user to write.
 */
function reopenPipe(file: FileDescriptor): Socket | null {
  try {
    const fd = openSync(`/proc/self/fd/${file}`, constants.O_WRONLY | constants.O_NONBLOCK);
    return new Socket({ fd, readable: false, writable: true });
  } catch {
    return null;
  }
}

/** Node's internal stream handle, which can be set to non-blocking. */
type SocketWithHandle = { readonly _handle?: { setBlocking?(isBlocking: boolean): number } | null };

function streamTarget(stream: Socket): LineTarget {
  // The write callback reports the error too, but without a listener the error event would end the process.
  stream.on("error", () => {});
  const poll = () => {
    // Spawning a child process that inherits the stream sets it to blocking again, for this process too.
    (stream as SocketWithHandle)._handle?.setBlocking?.(false);
  };
  return {
    write(bytes) {
      poll();
      return new Promise((resolve) => stream.write(bytes, (error) => resolve(error ? 0 : bytes.length)));
    },
    writeNow(text) {
      poll();
      stream.write(text);
    },
  };
}

const writeBytes = promisify(write);

function fileTarget(file: FileDescriptor): LineTarget {
  return {
    async write(bytes) {
      let written = 0;
      while (written < bytes.length) {
        try {
          written += (await writeBytes(file, bytes, written)).bytesWritten;
        } catch (error) {
          if ((error as NodeJS.ErrnoException).code !== "EAGAIN") break;
          await sleep(RETRY_DELAY_MS, undefined, { ref: false });
        }
      }
      return written;
    },
    writeNow(text) {
      try {
        writeSync(file, text);
      } catch {
        // The process is exiting: nothing can report the lost text.
      }
    },
  };
}

type LineTarget = {
  /** Never rejects. Resolves with the number of bytes that were written. */
  write(bytes: Buffer): Promise<number>;
  /** Writes as much as possible without waiting; called when the process exits. */
  writeNow(text: string): void;
};

/**
 * Writes lines to standard output or standard error without blocking. Lines that cannot be written, because the disk is
 * full or the reader has stopped, are dropped and counted.
 */
export class LineWriter {
  /** Called when writing works again, with the number of lines that were dropped since the last call. */
  onRecovery: (dropped: number) => void = () => {};
  readonly #target: LineTarget;
  #lines: string[] = [];
  #waiting = 0;
  #isWriting = false;
  #hasPartialLine = false;
  #dropped = 0;
  #reported = 0;

  constructor(target: LineTarget) {
    this.#target = target;
    process.once("exit", () => this.#target.writeNow(this.#lines.join("")));
  }

  get dropped(): number {
    return this.#dropped;
  }

  write(line: string): void {
    if (this.#waiting + line.length > MAX_WAITING_CHARACTERS) {
      this.#dropped++;
      return;
    }
    this.#lines.push(line);
    this.#waiting += line.length;
    if (this.#isWriting) return;
    this.#isWriting = true;
    // Batches the lines of one event-loop turn into one write.
    setImmediate(() => void this.#writeAll());
  }

  async #writeAll(): Promise<void> {
    while (this.#lines.length > 0) {
      const text = this.#takeBatch();
      await this.#writeBatch(text);
      this.#waiting -= text.length;
    }
    this.#isWriting = false;
  }

  #takeBatch(): string {
    let count = 0;
    for (let length = 0; count < this.#lines.length && (count === 0 || length < MAX_BATCH_CHARACTERS); count++) {
      length += this.#lines[count]!.length;
    }
    return this.#lines.splice(0, count).join("");
  }

  async #writeBatch(text: string): Promise<void> {
    // A partial line was written before: start on a new line.
    const start = this.#hasPartialLine ? 1 : 0;
    const bytes = Buffer.from(this.#hasPartialLine ? `\n${text}` : text);
    const written = await this.#target.write(bytes);
    if (written < bytes.length) {
      if (written > 0) this.#hasPartialLine = bytes[written - 1] !== LINE_FEED;
      this.#dropped += countLines(bytes.subarray(Math.max(start, written)));
    } else {
      this.#hasPartialLine = false;
      if (this.#dropped === this.#reported) return;
      const dropped = this.#dropped - this.#reported;
      this.#reported = this.#dropped;
      this.onRecovery(dropped);
    }
  }
}

function countLines(bytes: Buffer): number {
  let lines = 0;
  for (const byte of bytes) if (byte === LINE_FEED) lines++;
  return lines;
}
