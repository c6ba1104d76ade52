/** The share that a piece of work takes: its key is an address or an account, and `turns` is the part of a turn of that key. */
export type WorkShare = { readonly key: string; readonly turns: number };

export type FairQueueOptions = {
  /** The maximum number of waiting pieces. Beyond it, the last one in order is refused, which may be the new one. */
  readonly maxWaiting: number;
  /** The maximum number of waiting pieces for one key. */
  readonly maxWaitingOfKey: number;
  readonly refusalOfAll: () => Error;
  readonly refusalOfKey: () => Error;
};

type WaitingWork = {
  readonly shares: readonly WorkShare[];
  readonly tag: number;
  readonly start: () => void;
  readonly refuse: (error: Error) => void;
};

/**
 * The order is start-time fair queueing over several keys: work is tagged with the turn after the last one of each of its
 * keys, and the lowest tag is served first. So work of other keys waits neither for all work of one address nor for that of
 * one account, however many addresses send it.
 */
export class FairQueue {
  readonly #options: FairQueueOptions;
  /** The waiting work in the order of service. */
  readonly #waiting: WaitingWork[] = [];
  readonly #waitingOfKey = new Map<string, number>();
  /** The last tag of each key, while it is above the current turn. */
  readonly #lastTags = new Map<string, number>();
  #turn = 0;

  constructor(options: FairQueueOptions) {
    this.#options = options;
  }

  get isEmpty(): boolean {
    return this.#waiting.length === 0;
  }

  /** Resolves when it is the turn of the work, and rejects if it is refused. */
  enter(shares: readonly WorkShare[]): Promise<void> {
    const { maxWaiting, maxWaitingOfKey, refusalOfAll, refusalOfKey } = this.#options;
    if (shares.some(({ key }) => (this.#waitingOfKey.get(key) ?? 0) >= maxWaitingOfKey)) {
      return Promise.reject(refusalOfKey());
    }
    const tag = Math.max(this.#turn, ...shares.map(({ key }) => this.#lastTags.get(key) ?? 0));
    const last = this.#waiting.at(-1);
    if (this.#waiting.length >= maxWaiting) {
      if (!last || last.tag <= tag) return Promise.reject(refusalOfAll());
      this.#refuseLast(refusalOfAll());
    }
    return new Promise((start, refuse) => this.#insert({ shares, tag, start, refuse }));
  }

  /** Counts work that starts without waiting. */
  countStarted(shares: readonly WorkShare[]): void {
    this.#setTags(shares, this.#turn);
  }

  startNext(): void {
    const next = this.#waiting.shift()!;
    this.#turn = Math.max(this.#turn, next.tag);
    this.#countWaiting(next, -1);
    this.#forgetPassedTags();
    next.start();
  }

  /** Forgets all tags when nothing waits or runs, so that no key is behind another. */
  forgetTurns(): void {
    this.#lastTags.clear();
  }

  #insert(work: WaitingWork): void {
    const before = this.#waiting.findLastIndex(({ tag }) => tag <= work.tag);
    this.#waiting.splice(before + 1, 0, work);
    this.#countWaiting(work, 1);
    this.#setTags(work.shares, work.tag);
  }

  #setTags(shares: readonly WorkShare[], tag: number): void {
    for (const { key, turns } of shares) this.#lastTags.set(key, tag + turns);
  }

  /** Refused work has used no turn of its keys. */
  #refuseLast(error: Error): void {
    const work = this.#waiting.pop()!;
    this.#countWaiting(work, -1);
    for (const { key, turns } of work.shares) {
      if (this.#lastTags.get(key) === work.tag + turns) this.#lastTags.set(key, work.tag);
    }
    work.refuse(error);
  }

  #countWaiting({ shares }: WaitingWork, change: 1 | -1): void {
    for (const { key } of shares) {
      const count = (this.#waitingOfKey.get(key) ?? 0) + change;
      if (count === 0) this.#waitingOfKey.delete(key);
      else this.#waitingOfKey.set(key, count);
    }
  }

  /** Only the tags of waiting work are above the turn, so few remain. */
  #forgetPassedTags(): void {
    if (this.#lastTags.size <= 8 * this.#options.maxWaiting) return;
    for (const [key, tag] of this.#lastTags) if (tag <= this.#turn) this.#lastTags.delete(key);
  }
}
