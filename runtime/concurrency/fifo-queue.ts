const SMALLEST_RING = 4;
/** The length above which a ring is replaced when it is empty. */
const LARGEST_KEPT_RING = 1_024;

/**
 * A first-in-first-out queue in a ring; unlike an array's `shift`, it does not move all items. A slot is cleared as soon as
 * its item is taken, even in rings that were outgrown: an old array would keep its items alive until a full garbage
 * collection, and so promote all of them.
 */
export class FifoQueue<Item> {
  /** Its length is a power of two. */
  #ring: (Item | undefined)[] = makeRing(SMALLEST_RING);
  #head = 0;
  #length = 0;

  get length(): number {
    return this.#length;
  }

  first(): Item | undefined {
    return this.#ring[this.#head];
  }

  push(item: Item): void {
    if (this.#length === this.#ring.length) this.#grow();
    this.#ring[this.#positionOf(this.#length++)] = item;
  }

  shift(): Item | undefined {
    const ring = this.#ring;
    const item = ring[this.#head];
    if (this.#length === 0) return undefined;
    ring[this.#head] = undefined;
    this.#head = (this.#head + 1) & (ring.length - 1);
    if (--this.#length === 0 && ring.length > LARGEST_KEPT_RING) this.#ring = makeRing(SMALLEST_RING);
    return item;
  }

  remove(item: Item): void {
    const count = this.#length;
    for (let index = 0; index < count; index++) {
      const next = this.shift()!;
      if (next !== item) this.push(next);
    }
  }

  /** Returns the items in their order. */
  toArray(): Item[] {
    return Array.from({ length: this.#length }, (_, index) => this.#ring[this.#positionOf(index)]!);
  }

  /** Removes and returns all items, in their order. */
  takeAll(): Item[] {
    const items = this.toArray();
    this.#ring = makeRing(SMALLEST_RING);
    this.#head = 0;
    this.#length = 0;
    return items;
  }

  #positionOf(index: number): number {
    return (this.#head + index) & (this.#ring.length - 1);
  }

  #grow(): void {
    const outgrown = this.#ring;
    const ring = makeRing<Item>(2 * outgrown.length);
    for (let index = 0; index < this.#length; index++) ring[index] = outgrown[this.#positionOf(index)];
    outgrown.fill(undefined);
    this.#ring = ring;
    this.#head = 0;
  }
}

function makeRing<Item>(length: number): (Item | undefined)[] {
  return new Array<Item | undefined>(length).fill(undefined);
}
