import { FairQueue, type FairQueueOptions, type WorkShare } from "./fair-queue.ts";

type FairLimiterOptions = FairQueueOptions & {
  readonly concurrency: number;
  /** The part of the concurrency that is for preferred work alone; none by default. */
  readonly reserved?: number;
  /** The maximum number of preferred pieces that wait, beside the other work; none by default. */
  readonly maxWaitingPreferred?: number;
};

/** The number of turns of preferred work after which waiting other work gets a turn. */
const PREFERRED_IN_A_ROW = 4;

/** Runs a limited amount of work at a time. Preferred work has its own queue, and does not wait behind other work. */
export class FairLimiter {
  readonly #concurrency: number;
  readonly #concurrencyOfOthers: number;
  readonly #preferred: FairQueue;
  readonly #others: FairQueue;
  #preferredInARow = 0;
  #running = 0;
  #runningOthers = 0;

  constructor({ concurrency, reserved = 0, maxWaitingPreferred = 0, ...queue }: FairLimiterOptions) {
    this.#concurrency = concurrency;
    this.#concurrencyOfOthers = concurrency - reserved;
    this.#preferred = new FairQueue({ ...queue, maxWaiting: maxWaitingPreferred });
    this.#others = new FairQueue(queue);
  }

  async run<T>(
    shares: readonly WorkShare[],
    work: () => Promise<T>,
    { isPreferred = false }: { readonly isPreferred?: boolean } = {},
  ): Promise<T> {
    const queue = isPreferred ? this.#preferred : this.#others;
    if (this.#hasSlotFor(queue)) {
      this.#count(queue, 1);
      queue.countStarted(shares);
    } else {
      // The slot is taken over from work that has ended.
      await queue.enter(shares);
    }
    try {
      return await work();
    } finally {
      this.#count(queue, -1);
      this.#startNext();
    }
  }

  #startNext(): void {
    const next = this.#nextQueue();
    if (next) {
      this.#preferredInARow = next === this.#preferred ? this.#preferredInARow + 1 : 0;
      this.#count(next, 1);
      next.startNext();
    } else if (this.#running === 0) {
      this.#preferred.forgetTurns();
      this.#others.forgetTurns();
    }
  }

  #nextQueue(): FairQueue | null {
    const canStartOther = !this.#others.isEmpty && this.#hasSlotFor(this.#others);
    const isTurnOfOthers = this.#preferred.isEmpty || this.#preferredInARow >= PREFERRED_IN_A_ROW;
    if (canStartOther && isTurnOfOthers) return this.#others;
    return this.#preferred.isEmpty ? null : this.#preferred;
  }

  #hasSlotFor(queue: FairQueue): boolean {
    if (this.#running >= this.#concurrency) return false;
    return queue === this.#preferred || this.#runningOthers < this.#concurrencyOfOthers;
  }

  #count(queue: FairQueue, change: 1 | -1): void {
    this.#running += change;
    if (queue === this.#others) this.#runningOthers += change;
  }
}
