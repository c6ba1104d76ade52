import { Line } from "./line.ts";

export type Waiting = {
  /** Takes turns with the others. */
  readonly caller: string;
  /** Of one kind a caller's are served in their order. */
  readonly kind: object;
};

/** Takes turns between callers, and for each of them between kinds of statements, so that nobody stands behind all of another's. */
export class FairQueue<Item extends Waiting> {
  /** Whoever was served last is last. */
  readonly #callers = new Map<string, Map<object, Line<Item>>>();
  #length = 0;

  get length(): number {
    return this.#length;
  }

  push(item: Item): void {
    const kinds = this.#callers.get(item.caller) ?? new Map<object, Line<Item>>();
    const line = kinds.get(item.kind) ?? new Line<Item>();
    this.#callers.set(item.caller, kinds);
    kinds.set(item.kind, line);
    line.push(item);
    this.#length++;
  }

  /** The first whose turn it is, of those that may be served. */
  find(isServable: (item: Item) => boolean): Item | null {
    for (const kinds of this.#callers.values()) {
      for (const line of kinds.values()) if (isServable(line.first()!)) return line.first()!;
    }
    return null;
  }

  /** It was its turn. */
  serve(item: Item): void {
    const { caller, kind } = item;
    const kinds = this.#callers.get(caller)!;
    const line = kinds.get(kind)!;
    this.remove(item);
    if (line.length > 0 && kinds.size > 1) toEnd(kinds, kind, line);
    if (kinds.size > 0 && this.#callers.size > 1) toEnd(this.#callers, caller, kinds);
  }

  remove(item: Item): void {
    const { caller, kind } = item;
    const kinds = this.#callers.get(caller);
    const line = kinds?.get(kind);
    if (!kinds || !line) return;
    this.#length -= line.length;
    if (line.first() === item) line.shift();
    else line.remove(item);
    this.#length += line.length;
    if (line.length === 0) kinds.delete(kind);
    if (kinds.size === 0) this.#callers.delete(caller);
  }

  /** Removes those at the front of which this is true, and returns them. */
  takeWhile(isTaken: (item: Item) => boolean): Item[] {
    const taken: Item[] = [];
    for (const kinds of [...this.#callers.values()]) {
      for (const line of [...kinds.values()]) {
        for (let first = line.first(); first && isTaken(first); first = line.first()) {
          this.remove(first);
          taken.push(first);
        }
      }
    }
    return taken;
  }
}

function toEnd<Key, Value>(map: Map<Key, Value>, key: Key, value: Value): void {
  map.delete(key);
  map.set(key, value);
}
