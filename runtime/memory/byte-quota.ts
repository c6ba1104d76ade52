/** A holder of up to this size is never refused because of other holders. */
const SMALL_BYTES = 32 * 1024;

/** The exhausted quota: the holder's own, or the shared one. */
export type Shortage = "own" | "shared";

/** A limit for the bytes held by one holder, or by all holders of a shared quota. */
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

  /** Returns the quota that these further bytes would exceed, or null. */
  shortageOf(bytes: number): Shortage | null {
    const held = this.#held + bytes;
    if (held > this.limit) return "own";
    return held > SMALL_BYTES && this.#shared?.shortageOf(bytes) ? "shared" : null;
  }

  /** Counts bytes without a check. */
  hold(bytes: number): void {
    this.#held += bytes;
    this.#shared?.hold(bytes);
  }

  release(bytes: number): void {
    this.hold(-bytes);
  }
}

/** The bytes that one item reserves in a quota. */
export class Reservation {
  readonly #quota: ByteQuota;
  #bytes = 0;

  constructor(quota: ByteQuota) {
    this.#quota = quota;
  }

  /** Leaves the reservation unchanged if the quota would be exceeded. */
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
 * Counts shared objects once, such as a frame sent to many clients. With a parent, it counts for one client, and each object
 * counts once for all clients as well.
 */
export class SharedBytes<Item extends object> {
  readonly #quota: ByteQuota;
  readonly #above: SharedBytes<Item> | null;
  readonly #holders = new Map<Item, number>();

  constructor(quota: ByteQuota, above: SharedBytes<Item> | null = null) {
    this.#quota = quota;
    this.#above = above;
  }

  /** Returns the quota that a further holder would exceed, or null. */
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

  /** Releases one holder's reference, with the size that it was held with. */
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

/** V8's memory per value, measured with Node 24, rounded up. */
const STRING_BYTES = 24;
const CHARACTER_BYTES = 2;
const NUMBER_BYTES = 16;
const ARRAY_BYTES = 40;
const OBJECT_BYTES = 64;
const SLOT_BYTES = 8;
/** The size includes the property's share of the object's hidden class. */
const PROPERTY_BYTES = 48;

/**
 * Estimates the heap size of a value from `JSON.parse`: more than twenty times the length of its text for a list of
 * empty objects. Uses its own stack, since values may be nested deeper than the call stack allows.
 */
export function heapSize(value: unknown): number {
  const waiting: unknown[] = [value];
  let bytes = 0;
  while (waiting.length > 0) {
    const next = waiting.pop();
    if (typeof next === "string") bytes += STRING_BYTES + CHARACTER_BYTES * next.length;
    else if (typeof next === "number") bytes += NUMBER_BYTES;
    else if (Array.isArray(next)) {
      bytes += ARRAY_BYTES + SLOT_BYTES * next.length;
      for (const member of next) waiting.push(member);
    } else if (typeof next === "object" && next !== null) {
      bytes += OBJECT_BYTES;
      for (const [name, member] of Object.entries(next)) {
        bytes += PROPERTY_BYTES + CHARACTER_BYTES * name.length;
        waiting.push(member);
      }
    }
  }
  return bytes;
}
