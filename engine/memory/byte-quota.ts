/** A holder of no more than this is not refused because of what others hold. */
const SMALL_BYTES = 32 * 1024;

/** Which quota has no room: the holder's own, or the one that it shares with others. */
export type Shortage = "own" | "shared";

/** How many bytes may be held, by one holder or by all who share the quota. */
export class ByteQuota {
  readonly limit: number;
  readonly #shared: ByteQuota | null;
  #held = 0;

  constructor(limit: number, shared: ByteQuota | null = null) {
    this.limit = limit;
    this.#shared = shared;
  }

  get held(): number {
    return this.#held;
  }

  /** Null where there is room for these bytes besides. */
  shortageOf(bytes: number): Shortage | null {
    const held = this.#held + bytes;
    if (held > this.limit) return "own";
    return held > SMALL_BYTES && this.#shared?.shortageOf(bytes) ? "shared" : null;
  }

  /** Counts them, whether or not there was room. */
  hold(bytes: number): void {
    this.#held += bytes;
    this.#shared?.hold(bytes);
  }

  release(bytes: number): void {
    this.hold(-bytes);
  }
}

/** What one thing takes of a quota. */
export class Reservation {
  readonly #quota: ByteQuota;
  #bytes = 0;

  constructor(quota: ByteQuota) {
    this.#quota = quota;
  }

  /** Stays as it was where there is no room for more. */
  resize(bytes: number): Shortage | null {
    const more = bytes - this.#bytes;
    const shortage = more > 0 ? this.#quota.shortageOf(more) : null;
    if (shortage) return shortage;
    this.#quota.hold(more);
    this.#bytes = bytes;
    return null;
  }

  release(): void {
    this.resize(0);
  }
}

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
