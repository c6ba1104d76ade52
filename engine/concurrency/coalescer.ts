import { retryDelay } from "./retry-delay.ts";

/**
 * Does one thing at a time, soon after it is asked for. What is asked while it is being done is answered by doing it
 * once more; after a failure it is tried again by itself. Between two times it rests as long as the last one took.
 */
export class Coalescer {
  readonly #work: () => Promise<void>;
  readonly #debounceMs: number;
  /** Of those who asked since the last run began. */
  #waiting: PromiseWithResolvers<void> | null = null;
  #running: Promise<void> | null = null;
  #timer: NodeJS.Timeout | undefined;
  #dueAt = Number.POSITIVE_INFINITY;
  #restUntil = 0;
  #failures = 0;
  #closed = false;

  constructor(work: () => Promise<void>, debounceMs: number) {
    this.#work = work;
    this.#debounceMs = debounceMs;
  }

  /** Running, or about to. */
  get isBusy(): boolean {
    return this.#running !== null || this.#dueAt !== Number.POSITIVE_INFINITY;
  }

  /** Settles with the first run that begins after the call. */
  request(delay: number = this.#debounceMs): Promise<void> {
    if (this.#closed) return Promise.reject(closedError());
    this.#waiting ??= Promise.withResolvers();
    // Most who ask do not wait; the failure is told elsewhere.
    this.#waiting.promise.catch(() => {});
    this.#schedule(delay);
    return this.#waiting.promise;
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#waiting?.reject(closedError());
    await this.#running;
  }

  #schedule(delay: number): void {
    const dueAt = Math.max(performance.now() + delay, this.#restUntil);
    if (this.#closed || this.#running || dueAt >= this.#dueAt) return;
    clearTimeout(this.#timer);
    this.#dueAt = dueAt;
    this.#timer = setTimeout(
      () => {
        this.#running = this.#run();
      },
      Math.max(0, dueAt - performance.now()),
    );
    this.#timer.unref();
  }

  async #run(): Promise<void> {
    const asked = this.#waiting;
    this.#waiting = null;
    this.#dueAt = Number.POSITIVE_INFINITY;
    const startedAt = performance.now();
    const fault = await this.#work().then(
      () => null,
      (error: unknown) => ({ error }),
    );
    this.#running = null;
    this.#restUntil = 2 * performance.now() - startedAt;
    this.#failures = fault ? this.#failures + 1 : 0;
    if (this.#waiting) this.#schedule(this.#debounceMs);
    else if (fault) this.#schedule(retryDelay(this.#failures));
    if (fault) asked?.reject(fault.error);
    else asked?.resolve();
  }
}

function closedError(): Error {
  return new Error("This was closed before it could be done");
}
