import { RecentMap } from "#runtime";

/** A position in the write-ahead log (pg_lsn). */
export type Lsn = bigint;

const LSN_PATTERN = /^([\dA-F]{1,8})\/([\dA-F]{1,8})$/i;

/** Parses an LSN such as `16/B374D848`; null if the text is invalid. */
export function parseLsn(text: string): Lsn | null {
  const [, high, low] = LSN_PATTERN.exec(text) ?? [];
  return high && low ? (BigInt(`0x${high}`) << 32n) | BigInt(`0x${low}`) : null;
}

export function formatLsn(lsn: Lsn): string {
  return `${(lsn >> 32n).toString(16)}/${(lsn & 0xffffffffn).toString(16)}`.toUpperCase();
}

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

/** The earlier writes that the reads of a request must see; with it, replicas may serve the reads. */
export type ReadYourWrites = {
  /** The writer: one user, or all callers of a role without a user id. */
  readonly subject: string;
  /** Selects the replica: the same one for all requests of a user, so that rows do not disappear between requests. */
  readonly replicaSeed: number;
  /** The position that the client sent; 0 if it sent none, null if it cannot be parsed. */
  readonly minLsn: Lsn | null;
  /** Called with the position after the request's own write. */
  onWrite(place: Lsn): void;
};
