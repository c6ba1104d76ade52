/** How often something was looked for. */
export type CacheHits = { found: number; missed: number };

/**
 * Remembers what was used lately: together it weighs no more than `most`, and the latest half of that is there. It has two
 * generations and drops the older one as a whole; a Map whose first entry is deleted again and again would have to look for
 * the next one behind all those that are gone.
 */
export class RecentMap<Key, Value extends NonNullable<unknown>> {
  readonly #max: number;
  readonly #weightOf: (key: Key, value: Value) => number;
  readonly #hits: CacheHits;
  #young = new Map<Key, Value>();
  #old = new Map<Key, Value>();
  #weight = 0;

  constructor(
    max: number,
    weightOf: (key: Key, value: Value) => number = () => 1,
    hits: CacheHits = { found: 0, missed: 0 },
  ) {
    this.#max = max;
    this.#weightOf = weightOf;
    this.#hits = hits;
  }

  get(key: Key): Value | undefined {
    const young = this.#young.get(key);
    if (young !== undefined) {
      this.#hits.found++;
      return young;
    }
    const old = this.#old.get(key);
    if (old === undefined) this.#hits.missed++;
    else {
      this.#hits.found++;
      this.set(key, old);
    }
    return old;
  }

  /** Which is no use of it. */
  has(key: Key): boolean {
    return this.#young.has(key) || this.#old.has(key);
  }

  set(key: Key, value: Value): void {
    const weight = this.#weightOf(key, value);
    if (weight > this.#max) return;
    if (this.#young.has(key)) {
      this.#young.set(key, value);
      return;
    }
    if (this.#weight + weight > this.#max / 2) this.#turnOver();
    this.#young.set(key, value);
    this.#weight += weight;
  }

  clear(): void {
    this.#turnOver();
    this.#old.clear();
  }

  #turnOver(): void {
    this.#old = this.#young;
    this.#young = new Map();
    this.#weight = 0;
  }
}
