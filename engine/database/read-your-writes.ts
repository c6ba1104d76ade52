import { RecentMap } from "../cache/recent-map.ts";
import type { Lsn } from "./lsn.ts";

/** A position in the primary's WAL. */
export type WalPosition = { readonly place: Lsn; readonly askedAt: number };

/** Unknown until a place is asked for after `since`. */
type LsnFloor = { readonly place: Lsn } | { readonly since: number };

/**
 * How far a replica must be before it may answer somebody. Of whom nothing is known it is everything up to now: they may
 * have written through another process, or through this one a while ago. So forgetting is always safe.
 */
export class LsnFloors {
  readonly #bySubject: RecentMap<string, LsnFloor>;
  /** For everybody. */
  #floor: LsnFloor;

  constructor(most: number, now: number) {
    this.#bySubject = new RecentMap(most);
    this.#floor = { since: now };
  }

  /** Null: no place is known yet that would do. */
  floorFor(subject: string, sample: WalPosition | null, now: number): Lsn | null {
    const floor = settleFloor(this.#floor, sample);
    this.#floor = floor;
    const mark = settleFloor(this.#bySubject.get(subject) ?? { since: now }, sample);
    this.#bySubject.set(subject, mark);
    return "place" in floor && "place" in mark ? laterLsn(floor.place, mark.place) : null;
  }

  /** The sample was taken after the write, so it stands for whatever they had written before too. */
  wrote(subject: string, sample: WalPosition): void {
    const mark = this.#bySubject.get(subject);
    const known = mark ? settleFloor(mark, sample) : { place: sample.place };
    if ("place" in known) this.#bySubject.set(subject, { place: laterLsn(known.place, sample.place) });
  }

  /** They have written, and nobody knows where. */
  requireLater(subject: string, now: number): void {
    this.#bySubject.set(subject, { since: now });
  }

  /** Everybody must see what is there by now. */
  requireLaterForAll(now: number): void {
    this.#floor = { since: now };
  }
}

function settleFloor(mark: LsnFloor, sample: WalPosition | null): LsnFloor {
  return "since" in mark && sample && sample.askedAt > mark.since ? { place: sample.place } : mark;
}

function laterLsn(one: Lsn, other: Lsn): Lsn {
  return one > other ? one : other;
}

/** Which earlier writes the reads of a request must see; with it, replicas may serve the reads. */
export type ReadYourWrites = {
  /** Who wrote: one user, or all callers of a role without a user id. */
  readonly subject: string;
  /** Selects the replica: the same one for all requests of a user, so that rows that it returned do not disappear again. */
  readonly replicaSeed: number;
  /** The position that the client sent, 0 if none; null if it cannot be parsed. */
  readonly minLsn: Lsn | null;
  /** Called with the position after the request's own write. */
  onWrite(place: Lsn): void;
};
