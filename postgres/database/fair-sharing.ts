import { FifoQueue } from "#runtime/concurrency";
import type { ShareHolder, StatementContext } from "./statement.ts";

export function callerKeyOf({ role, callerKey }: Pick<StatementContext, "role" | "callerKey">): string {
  return callerKey ? `${role} ${callerKey()}` : role;
}

/** The maximum numbers of connections of a pool that may be occupied. */
export type ShareLimits = {
  /** The limit for all statements together. */
  readonly all: number;
  /** The limit for all anonymous callers together. */
  readonly anonymous: number;
  /** The limit for one caller. */
  readonly caller: number;
  /** The limit for one anonymous caller. */
  readonly anonymousCaller: number;
  /** The limit for statements that name one relation: if it is locked, all of them wait. */
  readonly relation: number;
  /**
   * The statements that count: those that are known to run long, all, or all while some run long. In the last case, a caller or
   * a relation is limited only if its own statements run long.
   */
  readonly counted: "long" | "all" | "all while congested";
};

/** The minimum number of connections with which one is reserved. */
const MIN_TO_KEEP_ONE = 6;

/** Returns the number of read connections that are reserved for short statements, so that a burst of unknown ones does not delay them. */
export function keptForShort(connections: number): number {
  return connections >= MIN_TO_KEEP_ONE ? 1 : 0;
}

/**
 * Long statements leave at least one connection to others, beside the one for short ones. A relation's share is smaller than a caller's,
 * so a caller who waits for a locked table can still read other tables. Each may use a whole processor, so those of anonymous
 * callers occupy at most half of the processors that Postgres shares with the service; pass infinity if it shares none.
 */
export function sharesForReads(connections: number, processors: number): ShareLimits {
  const fractions = fractionsOf(connections);
  const anonymous = Math.min(fractions.anonymous, atLeastOne(Math.floor(processors / 2)));
  const anonymousCaller = Math.min(fractions.anonymousCaller, anonymous);
  const all = atLeastOne(connections - 1 - keptForShort(connections));
  return { ...fractions, anonymous, anonymousCaller, all, counted: "long" };
}

/** A write cannot be interrupted, so each write counts as soon as one runs long. */
export function sharesForWrites(connections: number): ShareLimits {
  return { ...fractionsOf(connections), all: connections, counted: "all while congested" };
}

/** A stream takes as long as its client likes, so anonymous callers leave one connection to others. */
export function sharesForStreams(connections: number): ShareLimits {
  const anonymous = atLeastOne(connections - 1);
  const all = connections;
  return { all, anonymous, anonymousCaller: anonymous, caller: all, relation: all, counted: "all" };
}

function fractionsOf(connections: number): Pick<ShareLimits, "anonymous" | "caller" | "anonymousCaller" | "relation"> {
  const some = atLeastOne(Math.floor(0.4 * connections));
  const max = atLeastOne(Math.floor(0.6 * connections));
  return { anonymous: max, caller: max, anonymousCaller: some, relation: some };
}

function atLeastOne(connections: number): number {
  return Math.max(1, connections);
}

/** The time for which callers and relations with long-running statements are remembered. */
const CONGESTION_MEMORY_MS = 10_000;
const MAX_CONGESTED = 1_000;

/** Counts the occupied connections of a pool, by caller and by relation. */
export class ConnectionShares {
  limits: ShareLimits;
  #all = 0;
  #anonymous = 0;
  /**
   * The counts by caller key and by quoted relation name. Zero entries are removed periodically only: frequent insertion and
   * deletion makes V8 rehash the Map, which retains memory.
   */
  readonly #occupied = new Map<string, number>();
  /** The callers and relations with long-running statements, with the time at which each mark expires. */
  #congested = new Map<string, number>();

  constructor(limits: ShareLimits) {
    this.limits = limits;
  }

  admits(holder: ShareHolder): boolean {
    const { counted, all, anonymous, caller, anonymousCaller, relation } = this.limits;
    if (counted === "long" && !holder.isLong) return true;
    if (this.#all >= all) return false;
    const { isAnonymous, relations } = holder;
    if (counted === "all while congested" && !this.isCongested) return true;
    if (isAnonymous && this.#anonymous >= anonymous) return false;
    if (relations.some((name) => this.#isUsedUp(name, relation))) return false;
    return !this.#isUsedUp(holder.caller, isAnonymous ? anonymousCaller : caller);
  }

  /** Returns whether a share was taken; it must then be given back in every case. */
  take(holder: ShareHolder): boolean {
    if (this.limits.counted === "long" && !holder.isLong) return false;
    this.#count(holder, 1);
    return true;
  }

  giveBack(holder: ShareHolder): void {
    this.#count(holder, -1);
  }

  /** Marks the caller and the relations of a long-running statement. */
  noteLong(holder: ShareHolder, now: number): void {
    if (this.#congested.size >= MAX_CONGESTED) this.#congested.clear();
    for (const key of shareKeysOf(holder)) this.#congested.set(key, now + CONGESTION_MEMORY_MS);
  }

  /** True if any caller or relation has long-running statements. */
  get isCongested(): boolean {
    return this.#congested.size > 0;
  }

  /**
   * Unmarks the caller and the relations of a statement that ended quickly, unless their other statements still run
   * long. So one stall of the disk does not limit writers for the whole retention time.
   */
  noteShort(holder: ShareHolder, stillLong: readonly ShareHolder[]): void {
    const kept = new Set(stillLong.flatMap(shareKeysOf));
    for (const key of shareKeysOf(holder)) if (!kept.has(key)) this.#congested.delete(key);
  }

  /** Called periodically: removes expired marks and zero counts. */
  forget(now: number): void {
    for (const [key, until] of this.#congested) if (until < now) this.#congested.delete(key);
    for (const [key, count] of this.#occupied) if (count === 0) this.#occupied.delete(key);
  }

  #isUsedUp(key: string, max: number): boolean {
    if ((this.#occupied.get(key) ?? 0) < max) return false;
    return this.limits.counted !== "all while congested" || this.#congested.has(key);
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
  /** Callers take turns. */
  readonly caller: string;
  /** Items of one caller and kind are served in order. */
  readonly kind: object;
};

/**
 * Serves callers in turn and, for each caller, kinds of statements in turn, so that no statement waits for all
 * statements of another caller.
 */
export class ConnectionQueue<Item extends QueuedItem> {
  /** Ordered by turn: the caller served last comes last. */
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

  /** Returns the next item in turn that can be served. */
  find(isServable: (item: Item) => boolean): Item | null {
    for (const kinds of this.#callers.values()) {
      for (const queue of kinds.values()) if (isServable(queue.first()!)) return queue.first()!;
    }
    return null;
  }

  /** Removes an item and moves its caller and kind to the end. */
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

  /** Removes and returns the items at the front of each queue that match. */
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
