/** 200 MB, in units of 40 kB. */
const MOST_WEIGHT = 5_000;

/** How much may be kept of documents and of their plans, whatever schemas they are for. All of it is forgotten when it is full. */
export class PlanMemory {
  #room = MOST_WEIGHT;
  readonly #forget: (() => void)[] = [];

  onFull(forget: () => void): void {
    this.#forget.push(forget);
  }

  take(weight: number): void {
    if (this.#room < weight) {
      for (const forget of this.#forget) forget();
      this.#room = MOST_WEIGHT;
    }
    this.#room -= weight;
  }
}
