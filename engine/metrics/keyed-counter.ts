/** Further keys are counted as "other": SQL can raise any error code. */
const MAX_KEYS = 200;
const OTHER = "other";

/** Counts occurrences by key. */
export class KeyedCounter {
  readonly #counts = new Map<string, number>();

  add(key: string): void {
    const counted = this.#counts.has(key) || this.#counts.size < MAX_KEYS ? key : OTHER;
    this.#counts.set(counted, (this.#counts.get(counted) ?? 0) + 1);
  }

  counts(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.#counts);
  }
}
