import { constants, fstatSync, openSync, write, writeSync } from "node:fs";
import { Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { memoized } from "../memoized.ts";
import { LineWriter, type Target } from "./line-writer.ts";

type FileDescriptor = 1 | 2;

/** A terminal can be shared with a program that has made it non-blocking, and then takes no more for a moment. */
const BUSY_MS = 100;

const writerOf = memoized((file: FileDescriptor) => new LineWriter(targetOf(file)));

export const standardOutput = () => writerOf(1);
export const standardError = () => writerOf(2);

/** A blocking write to a full pipe would keep a thread, and `process.exit` waits for all threads. Node's streams poll. */
function targetOf(file: FileDescriptor): Target {
  const stat = fstatSync(file);
  if (stat.isFIFO()) return streamTarget(ownPipe(file) ?? standardStream(file));
  return stat.isSocket() ? streamTarget(standardStream(file)) : fileTarget(file);
}

function standardStream(file: FileDescriptor): Socket {
  return file === 1 ? process.stdout : process.stderr;
}

/**
 * Opens the pipe anew, for whether writes block is a property of what was opened, which other processes have inherited
 * and change. Only Linux can do that, and only for who may write to the pipe by its permissions.
 */
function ownPipe(file: FileDescriptor): Socket | null {
  try {
    const fd = openSync(`/proc/self/fd/${file}`, constants.O_WRONLY | constants.O_NONBLOCK);
    return new Socket({ fd, readable: false, writable: true });
  } catch {
    return null;
  }
}

/** What Node's sockets are made of; it makes standard streams non-blocking when they are first used. */
type WithHandle = { readonly _handle?: { setBlocking?(isBlocking: boolean): number } | null };

function streamTarget(stream: Socket): Target {
  // The callback says as much, but without a listener an error ends the process.
  stream.on("error", () => {});
  const poll = () => {
    // Each child process that inherits the stream has it made blocking again, for us too.
    (stream as WithHandle)._handle?.setBlocking?.(false);
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

function fileTarget(file: FileDescriptor): Target {
  return {
    async write(bytes) {
      let written = 0;
      while (written < bytes.length) {
        try {
          written += (await writeBytes(file, bytes, written)).bytesWritten;
        } catch (error) {
          if ((error as NodeJS.ErrnoException).code !== "EAGAIN") break;
          await sleep(BUSY_MS, undefined, { ref: false });
        }
      }
      return written;
    },
    writeNow(text) {
      try {
        writeSync(file, text);
      } catch {
        // Lost with the process: nobody is left to count it.
      }
    },
  };
}
