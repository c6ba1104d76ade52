/** A delivery in its queue. `movedTo` is the key of the row after the change, if it has changed. */
type KeyedItem = { readonly id: string; readonly key: string; readonly movedTo: string | null };

/** Hands out items so that those of one key are handled one after the other, in their order. */
export class KeyQueues<Item extends KeyedItem> {
  readonly #queues = new Map<string, Item[]>();
  /** The items that are the first ones of all their queues. */
  readonly #ready = new Set<Item>();

  add(item: Item): void {
    for (const key of keysOf(item)) {
      const queue = this.#queues.get(key);
      if (queue) queue.push(item);
      else this.#queues.set(key, [item]);
    }
    if (this.#isFirst(item)) this.#ready.add(item);
  }

  /** Returns an item that may be handled now; the next ones of its keys follow when it is completed. */
  next(): Item | undefined {
    for (const item of this.#ready) {
      this.#ready.delete(item);
      return item;
    }
    return undefined;
  }

  complete(item: Item): void {
    for (const key of keysOf(item)) {
      const queue = this.#queues.get(key)!;
      queue.shift();
      if (queue.length === 0) this.#queues.delete(key);
      else if (this.#isFirst(queue[0]!)) this.#ready.add(queue[0]!);
    }
  }

  /** Removes an item that was handed out, and all that must not be handled before it. Returns the removed items. */
  removeFrom(item: Item): readonly Item[] {
    const removed = new Set<Item>();
    const remove = (from: Item) => {
      if (removed.has(from)) return;
      removed.add(from);
      for (const key of keysOf(from)) {
        const queue = this.#queues.get(key);
        const start = queue?.indexOf(from) ?? -1;
        if (!queue || start < 0) continue;
        const rest = queue.splice(start);
        if (queue.length === 0) this.#queues.delete(key);
        for (const each of rest) remove(each);
      }
    };
    remove(item);
    return [...removed];
  }

  #isFirst(item: Item): boolean {
    return keysOf(item).every((key) => this.#queues.get(key)![0] === item);
  }
}

export function keysOf({ key, movedTo }: Pick<KeyedItem, "key" | "movedTo">): readonly string[] {
  return movedTo === null ? [key] : [key, movedTo];
}
