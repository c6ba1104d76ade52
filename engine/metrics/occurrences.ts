/** More different ones are counted together: SQL may raise any code. */
const MOST_KEYS = 200;
const OTHERS = "other";

/** How often each of a few things came up. */
export class Occurrences {
  readonly #counts = new Map<string, number>();

  add(key: string): void {
    const counted = this.#counts.has(key) || this.#counts.size < MOST_KEYS ? key : OTHERS;
    this.#counts.set(counted, (this.#counts.get(counted) ?? 0) + 1);
  }

  counts(): Readonly<Record<string, number>> {
    return Object.fromEntries(this.#counts);
  }
}
