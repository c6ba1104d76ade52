import { retryDelay } from "./retry-delay.ts";

const MAX_PAUSE_FACTOR = 4;
/** The share of the time without runs that is added back to the allowance. */
const REGAINED_SHARE = 1 / (1 + MAX_PAUSE_FACTOR);

type CoalescerOptions = { readonly allowanceMs?: number; readonly maxPauseMs?: number };

/**
 * Runs a task soon after it is requested, one run at a time. Requests during a run share one further run; after a failure it
 * retries by itself. It pauses between runs for as long as the shorter of the last two took, and up to four times as long
 * while requests keep coming, so that frequent requests take at most a fifth of the time. One run that waited for a lock, or
 * for a stopped process, does not predict the cost of the next one. With an allowance, the first runs are not followed by
 * pauses while they take no longer than that together. With a maximum, a pause is longer than that only if the run was.
 */
export class Coalescer {
  readonly #work: () => Promise<void>;
  readonly #debounceMs: number;
  readonly #allowanceMs: number;
  readonly #maxPauseMs: number;
  /** The part of the allowance that runs have used and that is not regained, in milliseconds. */
  #spent = 0;
  #endedAt = 0;
  /** Shared by the requests since the start of the last run. */
  #waiting: PromiseWithResolvers<void> | null = null;
  #running: Promise<void> | null = null;
  #timer: NodeJS.Timeout | undefined;
  #dueAt = Number.POSITIVE_INFINITY;
  #restUntil = 0;
  /** The duration of the last run, in milliseconds. */
  #lastDuration = Number.POSITIVE_INFINITY;
  /** The cost of a run, in milliseconds, and the factor of the pause after it. */
  #cost = 0;
  #pauseFactor = 1;
  #failures = 0;
  #waitingSince = 0;
  /** The time of the oldest request that no run has completed; null if there is none. */
  #lateSince: number | null = null;
  #closed = false;

  constructor(
    work: () => Promise<void>,
    debounceMs: number,
    { allowanceMs = 0, maxPauseMs = Number.POSITIVE_INFINITY }: CoalescerOptions = {},
  ) {
    this.#work = work;
    this.#debounceMs = debounceMs;
    this.#allowanceMs = allowanceMs;
    this.#maxPauseMs = maxPauseMs;
  }

  /** True if a run is active or scheduled. */
  get isBusy(): boolean {
    return this.#running !== null || this.#dueAt !== Number.POSITIVE_INFINITY;
  }

  /** The time for which the oldest request has waited for the end of its run, in milliseconds. */
  get lateMs(): number {
    return this.#lateSince === null ? 0 : performance.now() - this.#lateSince;
  }

  /** Settles with the first run that begins after the call. */
  request(delay: number = this.#debounceMs): Promise<void> {
    if (this.#closed) return Promise.reject(closedError());
    if (!this.#waiting) {
      this.#waiting = Promise.withResolvers();
      this.#waitingSince = performance.now();
      this.#lateSince ??= this.#waitingSince;
    }
    // Most callers do not await the promise; failures are reported separately.
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
    const requested = this.#waiting;
    this.#waiting = null;
    this.#dueAt = Number.POSITIVE_INFINITY;
    const startedAt = performance.now();
    const isStorm = startedAt - this.#restUntil < this.#cost;
    this.#pauseFactor = isStorm ? Math.min(MAX_PAUSE_FACTOR, 2 * this.#pauseFactor) : 1;
    const fault = await this.#work().then(
      () => null,
      (error: unknown) => ({ error }),
    );
    this.#running = null;
    const endedAt = performance.now();
    this.#cost = Math.min(this.#lastDuration, endedAt - startedAt);
    this.#lastDuration = endedAt - startedAt;
    this.#spent = Math.max(0, this.#spent - REGAINED_SHARE * (startedAt - this.#endedAt)) + this.#lastDuration;
    this.#endedAt = endedAt;
    const isAllowed = this.#spent <= this.#allowanceMs;
    const pause = Math.max(this.#cost, Math.min(this.#maxPauseMs, this.#pauseFactor * this.#cost));
    this.#restUntil = isAllowed ? endedAt : endedAt + pause;
    if (!fault) this.#lateSince = this.#waiting ? this.#waitingSince : null;
    this.#failures = fault ? this.#failures + 1 : 0;
    if (this.#waiting) this.#schedule(this.#debounceMs);
    else if (fault) this.#schedule(retryDelay(this.#failures));
    if (fault) requested?.reject(fault.error);
    else requested?.resolve();
  }
}

function closedError(): Error {
  return new Error("This was closed before it could be done");
}
