/** Openings of queries by the keys of their results: equal queries wait for the first one instead of running too. */
export class SharedOpenings {
  readonly #first = new Map<string, Promise<unknown>>();

  /** Does the work of the first opening, or waits until it has ended, whether it has failed or not. Returns true for the first one. */
  async beFirst(key: string, open: () => Promise<void>): Promise<boolean> {
    const first = this.#first.get(key);
    if (first) {
      await first.catch(() => {});
      return false;
    }
    const opened = open();
    this.#first.set(key, opened);
    try {
      await opened;
    } finally {
      this.#first.delete(key);
    }
    return true;
  }
}
