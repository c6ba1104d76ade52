/** The number of lookups that were found or missed. */
export type CacheHits = { found: number; missed: number };

/**
 * An LRU cache: the total weight of the entries is at most `max`, and the most recently used half of that is never evicted. It has
 * two generations and drops the older one as a whole: finding the first entry of a Map becomes slow when first entries are
 * deleted again and again.
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

  /** Returns true if the entry exists, without counting as its use. */
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

/**
 * Returns the same function with a cache of the most recently used results, whose weights have the sum `max`: 1 each unless `weightOf`
 * says otherwise. Errors are not cached.
 */
export function memoizeRecent<Key, Value extends NonNullable<unknown>>(
  max: number,
  work: (key: Key) => Value,
  weightOf?: (key: Key) => number,
): (key: Key) => Value {
  const results = new RecentMap<Key, Value>(max, weightOf);
  return (key) => {
    const cached = results.get(key);
    if (cached !== undefined) return cached;
    const result = work(key);
    results.set(key, result);
    return result;
  };
}
