import { type ByteQuota, type Shortage, SMALL_BYTES } from "./byte-quota.ts";

/**
 * Objects that have several holders and take memory once, such as a frame that is sent to many clients. Where there is one above
 * it, it is the part of one client, and each object counts once for all clients as well.
 */
export class SharedBytes<Item extends object> {
  readonly #quota: ByteQuota;
  readonly #above: SharedBytes<Item> | null;
  readonly #holders = new Map<Item, number>();

  constructor(quota: ByteQuota, above: SharedBytes<Item> | null = null) {
    this.#quota = quota;
    this.#above = above;
  }

  /** Null where one holder more takes no memory, or there is room. */
  shortageOf(item: Item, bytes: number): Shortage | null {
    if (this.#holders.has(item)) return null;
    if (this.#quota.shortageOf(bytes)) return "own";
    return this.#quota.held + bytes > SMALL_BYTES && this.#above?.shortageOf(item, bytes) ? "shared" : null;
  }

  hold(item: Item, bytes: number): void {
    const holders = this.#holders.get(item) ?? 0;
    this.#holders.set(item, holders + 1);
    if (holders > 0) return;
    this.#quota.hold(bytes);
    this.#above?.hold(item, bytes);
  }

  /** By one of its holders, with the size that it was held with. */
  release(item: Item, bytes: number): void {
    const holders = this.#holders.get(item) ?? 0;
    if (holders > 1) {
      this.#holders.set(item, holders - 1);
      return;
    }
    if (!this.#holders.delete(item)) return;
    this.#quota.release(bytes);
    this.#above?.release(item, bytes);
  }
}
