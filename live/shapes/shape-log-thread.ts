import { closeSync, constants, mkdirSync, openSync, writeSync } from "node:fs";
import { dirname } from "node:path";
import { parentPort } from "node:worker_threads";
import type { FileWrite, WriteFailure } from "./shape-log-writer.ts";

// The program of a thread: writes to files until it gets null.

const FILE_MODE = 0o600;
const FOLDER_MODE = 0o700;
const { O_APPEND, O_CREAT, O_TRUNC, O_WRONLY } = constants;
/** A file that was deleted, perhaps by another process, is not created again. */
const APPEND = O_WRONLY | O_APPEND;
const CREATE = APPEND | O_CREAT | O_TRUNC;

parentPort!.on("message", (writes: readonly FileWrite[] | null) => {
  if (writes) parentPort!.postMessage(writes.map(tryWrite));
  else parentPort!.close();
});

function tryWrite(write: FileWrite): WriteFailure {
  try {
    writeFile(write);
    return null;
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    return { code, message };
  }
}

function writeFile({ path, text, isNew }: FileWrite): void {
  if (isNew) mkdirSync(dirname(path), { recursive: true, mode: FOLDER_MODE });
  const file = openSync(path, isNew ? CREATE : APPEND, FILE_MODE);
  try {
    const bytes = Buffer.from(text);
    // A write may take only a part.
    for (let at = 0; at < bytes.length; ) at += writeSync(file, bytes, at);
  } finally {
    closeSync(file);
  }
}
