import { extname, join } from "node:path";
import { Worker } from "node:worker_threads";

/** A text for a new file, or for the end of an existing one. */
export type FileWrite = { readonly path: string; readonly text: string; readonly isNew: boolean };

/** Why a write failed; null if it did not. */
export type WriteFailure = Pick<NodeJS.ErrnoException, "code" | "message"> | null;

type WaitingWrite = { readonly write: FileWrite; readonly resolve: (failure: WriteFailure) => void };

const PROGRAM = join(import.meta.dirname, `shape-log-thread${extname(import.meta.filename)}`);

/**
 * Writes to files in a thread, which receives all waiting writes at once. Asynchronous calls for each write would take ten times the processor
 * time. A disk that hangs blocks only the thread.
 */
export class ShapeLogWriter {
  #waiting: WaitingWrite[] = [];
  #thread: WriterThread | null = null;

  /** Callers wait for a write before the next one to the same file. */
  write(write: FileWrite): Promise<WriteFailure> {
    const { promise, resolve } = Promise.withResolvers<WriteFailure>();
    this.#waiting.push({ write, resolve });
    if (this.#waiting.length === 1) setImmediate(() => this.#sendUnlessBusy());
    return promise;
  }

  /** Resolves when the writes so far are done and the thread has ended. A later write starts another one. */
  async close(): Promise<void> {
    this.#send();
    const thread = this.#thread;
    this.#thread = null;
    await thread?.end();
  }

  #sendUnlessBusy(): void {
    if (!this.#thread?.isBusy) this.#send();
  }

  #send(): void {
    const writes = this.#waiting;
    if (writes.length === 0) return;
    this.#waiting = [];
    try {
      this.#thread ??= new WriterThread((thread) => this.#onIdle(thread));
      this.#thread.send(writes);
    } catch (error) {
      failAll(writes, error as Error);
    }
  }

  #onIdle(thread: WriterThread): void {
    if (thread.hasEnded && this.#thread === thread) this.#thread = null;
    this.#sendUnlessBusy();
  }
}

/** A thread that keeps the process running only while it writes. */
class WriterThread {
  readonly #worker = new Worker(PROGRAM, { name: "shape logs", execArgv: [] });
  readonly #sent: (readonly WaitingWrite[])[] = [];
  readonly #ended = Promise.withResolvers<void>();
  #isEnding = false;
  hasEnded = false;

  constructor(onIdle: (thread: WriterThread) => void) {
    let reason = new Error("The thread has ended");
    this.#worker.on("message", (failures: readonly WriteFailure[]) => {
      for (const [index, { resolve }] of this.#sent.shift()!.entries()) resolve(failures[index]!);
      if (this.isBusy) return;
      if (!this.#isEnding) this.#worker.unref();
      onIdle(this);
    });
    this.#worker.on("error", (error: Error) => {
      reason = error;
    });
    this.#worker.on("exit", () => {
      this.hasEnded = true;
      failAll(this.#sent.splice(0).flat(), reason);
      this.#ended.resolve();
      onIdle(this);
    });
  }

  get isBusy(): boolean {
    return this.#sent.length > 0;
  }

  send(writes: readonly WaitingWrite[]): void {
    this.#sent.push(writes);
    this.#worker.ref();
    this.#worker.postMessage(writes.map(({ write }) => write));
  }

  async end(): Promise<void> {
    this.#isEnding = true;
    this.#worker.ref();
    this.#worker.postMessage(null);
    await this.#ended.promise;
  }
}

function failAll(writes: readonly WaitingWrite[], { message }: Error): void {
  for (const { resolve } of writes) resolve({ message });
}
