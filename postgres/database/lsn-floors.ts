import { RecentMap } from "#runtime";
import type { Lsn } from "./lsn.ts";

/** A position in the primary's WAL, with the time of its request. */
export type WalPosition = { readonly place: Lsn; readonly askedAt: number };

/** With `since`, the floor is unknown until a position requested after that time is available. */
type LsnFloor = { readonly place: Lsn } | { readonly since: number };

/**
 * The WAL position that a replica must have replayed, by subject. The floor of an unknown subject is the current
 * position: it may have written through another process, or earlier through this one. So entries can be evicted safely.
 */
export class LsnFloors {
  readonly #bySubject: RecentMap<string, LsnFloor>;
  /** The floor of all subjects. */
  #floor: LsnFloor;

  constructor(max: number, now: number) {
    this.#bySubject = new RecentMap(max);
    this.#floor = { since: now };
  }

  /** Returns the floor of a subject; null if no sufficient position is known yet. */
  floorFor(subject: string, sample: WalPosition | null, now: number): Lsn | null {
    const floor = settleFloor(this.#floor, sample);
    this.#floor = floor;
    const subjectFloor = settleFloor(this.#bySubject.get(subject) ?? { since: now }, sample);
    this.#bySubject.set(subject, subjectFloor);
    return "place" in floor && "place" in subjectFloor ? laterLsn(floor.place, subjectFloor.place) : null;
  }

  /** Records a write. The sample was taken after it, so it also covers the subject's earlier writes. */
  wrote(subject: string, sample: WalPosition): void {
    const subjectFloor = this.#bySubject.get(subject);
    const known = subjectFloor ? settleFloor(subjectFloor, sample) : { place: sample.place };
    if ("place" in known) this.#bySubject.set(subject, { place: laterLsn(known.place, sample.place) });
  }

  /** Records a write by another process; `place` is null if its position is unknown. */
  wroteElsewhere(subject: string, place: Lsn | null, now: number): void {
    const floor = this.#bySubject.get(subject);
    if (place === null || !floor || "since" in floor) this.requireLater(subject, now);
    else this.#bySubject.set(subject, { place: laterLsn(floor.place, place) });
  }

  /** Records a write at an unknown position. */
  requireLater(subject: string, now: number): void {
    this.#bySubject.set(subject, { since: now });
  }

  /** Requires the current position for all subjects. */
  requireLaterForAll(now: number): void {
    this.#floor = { since: now };
  }
}

function settleFloor(floor: LsnFloor, sample: WalPosition | null): LsnFloor {
  return "since" in floor && sample && sample.askedAt > floor.since ? { place: sample.place } : floor;
}

function laterLsn(one: Lsn, other: Lsn): Lsn {
  return one > other ? one : other;
}
