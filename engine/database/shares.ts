import type { Context } from "./statement.ts";

/** Whose shares of a pool a statement takes. */
export type Claimant = {
  readonly caller: string;
  readonly isAnonymous: boolean;
  readonly relations: readonly string[];
  /** Known to take long. */
  readonly isLong: boolean;
};

export function callerOf({ role, callerKey }: Pick<Context, "role" | "callerKey">): string {
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
  return { ...partsOf(connections), all: atLeastOne(connections - 1), longOnly: true };
}

/** A write cannot be interrupted for others, so that each counts as soon as one takes long. */
export function sharesForWrites(connections: number): ShareLimits {
  return { ...partsOf(connections), all: connections, longOnly: false };
}

function partsOf(connections: number): Pick<ShareLimits, "anonymous" | "caller" | "anonymousCaller" | "relation"> {
  const some = atLeastOne(Math.floor(0.4 * connections));
  const most = atLeastOne(Math.floor(0.6 * connections));
  return { anonymous: most, caller: most, anonymousCaller: some, relation: some };
}

function atLeastOne(connections: number): number {
  return Math.max(1, connections);
}

/** For how long it is remembered of whom and of what statements take long. */
const REMEMBERED_MS = 10_000;
const MOST_REMEMBERED = 1_000;

/** Counts who occupies the connections of a pool. */
export class Shares {
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

  admits(claimant: Claimant): boolean {
    const { longOnly, all, anonymous, caller, anonymousCaller, relation } = this.limits;
    if (longOnly && !claimant.isLong) return true;
    if (this.#all >= all) return false;
    const { isAnonymous, relations } = claimant;
    if (!longOnly && this.#congested.size === 0) return true;
    if (isAnonymous && this.#anonymous >= anonymous) return false;
    if (relations.some((name) => this.#isUsedUp(name, relation))) return false;
    return !this.#isUsedUp(claimant.caller, isAnonymous ? anonymousCaller : caller);
  }

  /** Whether it counts: then its share is to be given back, whatever becomes of it. */
  take(claimant: Claimant): boolean {
    if (this.limits.longOnly && !claimant.isLong) return false;
    this.#count(claimant, 1);
    return true;
  }

  giveBack(claimant: Claimant): void {
    this.#count(claimant, -1);
  }

  /** It takes long, and its like may do so too. */
  takesLong(claimant: Claimant, now: number): void {
    if (this.#congested.size >= MOST_REMEMBERED) this.#congested.clear();
    for (const key of keysOf(claimant)) this.#congested.set(key, now + REMEMBERED_MS);
  }

  /** Whether of somebody statements take long. */
  get isCongested(): boolean {
    return this.#congested.size > 0;
  }

  /**
   * It did not take long. So a disk that stalls once does not slow down those who write for as long as is remembered of
   * them; but who still has statements that take long keeps to a share.
   */
  tookShort(claimant: Claimant, stillLong: readonly Claimant[]): void {
    const kept = new Set(stillLong.flatMap(keysOf));
    for (const key of keysOf(claimant)) if (!kept.has(key)) this.#congested.delete(key);
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

  #count({ caller, isAnonymous, relations }: Claimant, more: 1 | -1): void {
    this.#all += more;
    if (isAnonymous) this.#anonymous += more;
    this.#add(caller, more);
    for (const name of relations) this.#add(name, more);
  }

  #add(key: string, more: number): void {
    this.#occupied.set(key, (this.#occupied.get(key) ?? 0) + more);
  }
}

function keysOf({ caller, relations }: Claimant): string[] {
  return [caller, ...relations];
}
