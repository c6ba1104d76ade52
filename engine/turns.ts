type Work = () => Promise<void>;

/** Does the work of many owners, a few pieces at a time, each owner in turn: one who brings much waits for it longer, and nobody else does. */
export class Turns {
  readonly #most: number;
  /** Those who wait, in the order of their turns. */
  readonly #waiting = new Map<object | string, Work[]>();
  #running = 0;

  constructor(most: number) {
    this.#most = most;
  }

  /** How much an owner waits for. */
  waiting(owner: object | string): number {
    return this.#waiting.get(owner)?.length ?? 0;
  }

  take<Result>(owner: object | string, work: () => Promise<Result>): Promise<Result> {
    return new Promise((resolve, reject) => {
      const own = this.#waiting.get(owner) ?? [];
      own.push(() => work().then(resolve, reject));
      this.#waiting.set(owner, own);
      this.#next();
    });
  }

  #next(): void {
    if (this.#running >= this.#most) return;
    const [turn] = this.#waiting;
    if (!turn) return;
    const [owner, works] = turn;
    const work = works.shift()!;
    this.#waiting.delete(owner);
    if (works.length > 0) this.#waiting.set(owner, works);
    this.#running++;
    void work().then(() => {
      this.#running--;
      this.#next();
    });
  }
}
