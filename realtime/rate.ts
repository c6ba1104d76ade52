/** So many seconds' worth may come at once. */
const BURST_SECONDS = 5;

/** What comes to an amount a second over some seconds, and how much too much that is; 0 is no limit. */
export class Rate {
  readonly #perSecond: number;
  #taken = 0;
  #at = performance.now();

  constructor(perSecond: number) {
    this.#perSecond = perSecond;
  }

  /** In how many milliseconds this would not have been too much; 0: it is not. */
  take(amount: number): number {
    if (this.#perSecond === 0) return 0;
    const now = performance.now();
    const most = this.#perSecond * BURST_SECONDS;
    const left = Math.max(0, this.#taken - ((now - this.#at) / 1000) * this.#perSecond);
    // Whoever does not stop does not wait for ever.
    this.#taken = Math.min(left + amount, 2 * Math.max(most, amount));
    this.#at = now;
    // What is larger than the burst by itself may come when nothing else did.
    return left === 0 ? 0 : (Math.max(0, this.#taken - most) / this.#perSecond) * 1000;
  }
}
