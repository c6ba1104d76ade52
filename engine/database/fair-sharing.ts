import type { StatementContext } from "./statement.ts";

/** Whose shares of a pool a statement takes. */
export type ShareHolder = {
  readonly caller: string;
  readonly isAnonymous: boolean;
  readonly relations: readonly string[];
  /** Known to take long. */
  readonly isLong: boolean;
};

export function callerKeyOf({ role, callerKey }: Pick<StatementContext, "role" | "callerKey">): string {
  return callerKey ? `${role} ${callerKey()}` : role;
}

/** How many connections of a pool may be occupied at a time. */
export type ShareLimits = {
  /** By all together. */
  readonly all: number;
  /** By anonymous callers. */
  readonly anonymous: number;
  /** By one caller who has statements that take long. */
  readonly caller: number;
  /** The same where that is an anonymous one. */
  readonly anonymousCaller: number;
  /** By statements that name a relation of which some take long: when it is locked, all of them wait for it. */
  readonly relation: number;
  /** Whether only statements count that are known to take long. */
  readonly longOnly: boolean;
};

/**
 * Statements that take long leave at least one connection to those of which that is not known. A relation's share is less
 * than a caller's, so that a caller who waits for a locked table can still read others.
 */
export function sharesForReads(connections: number): ShareLimits {
  return { ...fractionsOf(connections), all: atLeastOne(connections - 1), longOnly: true };
}

/** A write cannot be interrupted for others, so that each counts as soon as one takes long. */
export function sharesForWrites(connections: number): ShareLimits {
  return { ...fractionsOf(connections), all: connections, longOnly: false };
}

function fractionsOf(connections: number): Pick<ShareLimits, "anonymous" | "caller" | "anonymousCaller" | "relation"> {
  const some = atLeastOne(Math.floor(0.4 * connections));
  const most = atLeastOne(Math.floor(0.6 * connections));
  return { anonymous: most, caller: most, anonymousCaller: some, relation: some };
}

function atLeastOne(connections: number): number {
  return Math.max(1, connections);
}

/** For how long it is remembered of whom and of what statements take long. */
const CONGESTION_MEMORY_MS = 10_000;
const MAX_CONGESTED = 1_000;

/** Counts who occupies the connections of a pool. */
export class ConnectionShares {
  limits: ShareLimits;
  #all = 0;
  #anonymous = 0;
  /**
   * By caller, and by relation, whose names are quoted. Those who occupy none are removed now and then only: V8 makes a
   * Map anew where entries come and go, and takes what the earlier ones held for used.
   */
  readonly #occupied = new Map<string, number>();
  /** Callers and relations of which statements take long, and until when that is remembered. */
  #congested = new Map<string, number>();

  constructor(limits: ShareLimits) {
    this.limits = limits;
  }

  admits(holder: ShareHolder): boolean {
    const { longOnly, all, anonymous, caller, anonymousCaller, relation } = this.limits;
    if (longOnly && !holder.isLong) return true;
    if (this.#all >= all) return false;
    const { isAnonymous, relations } = holder;
    if (!longOnly && this.#congested.size === 0) return true;
    if (isAnonymous && this.#anonymous >= anonymous) return false;
    if (relations.some((name) => this.#isUsedUp(name, relation))) return false;
    return !this.#isUsedUp(holder.caller, isAnonymous ? anonymousCaller : caller);
  }

  /** Whether it counts: then its share is to be given back, whatever becomes of it. */
  take(holder: ShareHolder): boolean {
    if (this.limits.longOnly && !holder.isLong) return false;
    this.#count(holder, 1);
    return true;
  }

  giveBack(holder: ShareHolder): void {
    this.#count(holder, -1);
  }

  /** It takes long, and its like may do so too. */
  noteLong(holder: ShareHolder, now: number): void {
    if (this.#congested.size >= MAX_CONGESTED) this.#congested.clear();
    for (const key of shareKeysOf(holder)) this.#congested.set(key, now + CONGESTION_MEMORY_MS);
  }

  /** Whether of somebody statements take long. */
  get isCongested(): boolean {
    return this.#congested.size > 0;
  }

  /**
   * It did not take long. So a disk that stalls once does not slow down those who write for as long as is remembered of
   * them; but who still has statements that take long keeps to a share.
   */
  noteShort(holder: ShareHolder, stillLong: readonly ShareHolder[]): void {
    const kept = new Set(stillLong.flatMap(shareKeysOf));
    for (const key of shareKeysOf(holder)) if (!kept.has(key)) this.#congested.delete(key);
  }

  /** To be called now and then. */
  forget(now: number): void {
    for (const [key, until] of this.#congested) if (until < now) this.#congested.delete(key);
    for (const [key, count] of this.#occupied) if (count === 0) this.#occupied.delete(key);
  }

  #isUsedUp(key: string, most: number): boolean {
    if ((this.#occupied.get(key) ?? 0) < most) return false;
    return this.limits.longOnly || this.#congested.has(key);
  }

  #count({ caller, isAnonymous, relations }: ShareHolder, more: 1 | -1): void {
    this.#all += more;
    if (isAnonymous) this.#anonymous += more;
    this.#add(caller, more);
    for (const name of relations) this.#add(name, more);
  }

  #add(key: string, more: number): void {
    this.#occupied.set(key, (this.#occupied.get(key) ?? 0) + more);
  }
}

function shareKeysOf({ caller, relations }: ShareHolder): string[] {
  return [caller, ...relations];
}

export type QueuedItem = {
  /** Takes turns with the others. */
  readonly caller: string;
  /** Of one kind a caller's are served in their order. */
  readonly kind: object;
};

/** Takes turns between callers, and for each of them between kinds of statements, so that nobody stands behind all of another's. */
export class FairQueue<Item extends QueuedItem> {
  /** Whoever was served last is last. */
  readonly #callers = new Map<string, Map<object, FifoQueue<Item>>>();
  #length = 0;

  get length(): number {
    return this.#length;
  }

  push(item: Item): void {
    const kinds = this.#callers.get(item.caller) ?? new Map<object, FifoQueue<Item>>();
    const queue = kinds.get(item.kind) ?? new FifoQueue<Item>();
    this.#callers.set(item.caller, kinds);
    kinds.set(item.kind, queue);
    queue.push(item);
    this.#length++;
  }

  /** The first whose turn it is, of those that may be served. */
  find(isServable: (item: Item) => boolean): Item | null {
    for (const kinds of this.#callers.values()) {
      for (const queue of kinds.values()) if (isServable(queue.first()!)) return queue.first()!;
    }
    return null;
  }

  /** It was its turn. */
  serve(item: Item): void {
    const { caller, kind } = item;
    const kinds = this.#callers.get(caller)!;
    const queue = kinds.get(kind)!;
    this.remove(item);
    if (queue.length > 0 && kinds.size > 1) moveToEnd(kinds, kind, queue);
    if (kinds.size > 0 && this.#callers.size > 1) moveToEnd(this.#callers, caller, kinds);
  }

  remove(item: Item): void {
    const { caller, kind } = item;
    const kinds = this.#callers.get(caller);
    const queue = kinds?.get(kind);
    if (!kinds || !queue) return;
    this.#length -= queue.length;
    if (queue.first() === item) queue.shift();
    else queue.remove(item);
    this.#length += queue.length;
    if (queue.length === 0) kinds.delete(kind);
    if (kinds.size === 0) this.#callers.delete(caller);
  }

  /** Removes those at the front of which this is true, and returns them. */
  takeWhile(isTaken: (item: Item) => boolean): Item[] {
    const taken: Item[] = [];
    for (const kinds of [...this.#callers.values()]) {
      for (const queue of [...kinds.values()]) {
        for (let first = queue.first(); first && isTaken(first); first = queue.first()) {
          this.remove(first);
          taken.push(first);
        }
      }
    }
    return taken;
  }
}

function moveToEnd<Key, Value>(map: Map<Key, Value>, key: Key, value: Value): void {
  map.delete(key);
  map.set(key, value);
}

/** First in, first out; unlike an array it does not move everybody when the first one leaves. */
export class FifoQueue<Item> {
  #items: Item[] = [];
  #head = 0;

  get length(): number {
    return this.#items.length - this.#head;
  }

  first(): Item | undefined {
    return this.#items[this.#head];
  }

  push(item: Item): void {
    this.#items.push(item);
  }

  shift(): Item | undefined {
    if (this.length === 0) return undefined;
    const item = this.#items[this.#head++];
    if (this.#head === this.#items.length) this.#restart([]);
    else if (this.#head > 1_000) this.#restart(this.#items.slice(this.#head));
    return item;
  }

  remove(item: Item): void {
    this.#restart(this.#items.slice(this.#head).filter((other) => other !== item));
  }

  #restart(items: Item[]): void {
    this.#items = items;
    this.#head = 0;
  }
}
