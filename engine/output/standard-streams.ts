import { constants, fstatSync, openSync, write, writeSync } from "node:fs";
import { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { memoized } from "../memoized.ts";
import { type LineTarget, LineWriter } from "./line-writer.ts";

type FileDescriptor = 1 | 2;

/** The wait after EAGAIN: another program may have set a shared terminal to non-blocking. */
const RETRY_DELAY_MS = 100;

const writerOf = memoized((file: FileDescriptor) => new LineWriter(targetOf(file)));

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
