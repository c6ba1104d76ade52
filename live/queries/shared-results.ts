import type { LiveQueryResult } from "./live-subscriber.ts";

/** The results by their keys, and their bytes. */
export class SharedResults {
  readonly #byKey = new Map<string, LiveQueryResult>();
  readonly #bytesOf = new Map<LiveQueryResult, number>();
  #bytes = 0;

  get size(): number {
    return this.#byKey.size;
  }

  get bytes(): number {
    return this.#bytes;
  }

  get(key: string): LiveQueryResult | undefined {
    return this.#byKey.get(key);
  }

  /** The results at the time of the call. */
  list(): LiveQueryResult[] {
    return [...this.#byKey.values()];
  }

  add(result: LiveQueryResult): void {
    this.#byKey.set(result.key, result);
    this.recount(result);
  }

  remove(result: LiveQueryResult): void {
    this.#byKey.delete(result.key);
    this.#countBytes(result, 0);
    this.#bytesOf.delete(result);
  }

  /** Call when the text or the contents of a result have changed. */
  recount(result: LiveQueryResult): void {
    this.#countBytes(result, result.bytes);
  }

  #countBytes(result: LiveQueryResult, bytes: number): void {
    this.#bytes += bytes - (this.#bytesOf.get(result) ?? 0);
    this.#bytesOf.set(result, bytes);
  }
}
