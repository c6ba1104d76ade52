import type { Lsn } from "../../changes/lsn.ts";
import { RecentMap } from "../../recent-map.ts";

/** Where the primary's log was. */
export type Sample = { readonly place: Lsn; readonly askedAt: number };

/** Unknown until a place is asked for after `since`. */
type Mark = { readonly place: Lsn } | { readonly since: number };

/**
 * How far a replica must be before it may answer somebody. Of whom nothing is known it is everything up to now: they may
 * have written through another process, or through this one a while ago. So forgetting is always safe.
 */
export class Marks {
  readonly #bySubject: RecentMap<string, Mark>;
  /** For everybody. */
  #floor: Mark;

  constructor(most: number, now: number) {
    this.#bySubject = new RecentMap(most);
    this.#floor = { since: now };
  }

  /** Null: no place is known yet that would do. */
  of(subject: string, sample: Sample | null, now: number): Lsn | null {
    const floor = settled(this.#floor, sample);
    this.#floor = floor;
    const mark = settled(this.#bySubject.get(subject) ?? { since: now }, sample);
    this.#bySubject.set(subject, mark);
    return "place" in floor && "place" in mark ? later(floor.place, mark.place) : null;
  }

  /** The sample was taken after the write, so it stands for whatever they had written before too. */
  wrote(subject: string, sample: Sample): void {
    const mark = this.#bySubject.get(subject);
    const known = mark ? settled(mark, sample) : { place: sample.place };
    if ("place" in known) this.#bySubject.set(subject, { place: later(known.place, sample.place) });
  }

  /** They have written, and nobody knows where. */
  hold(subject: string, now: number): void {
    this.#bySubject.set(subject, { since: now });
  }

  /** Everybody must see what is there by now. */
  holdAll(now: number): void {
    this.#floor = { since: now };
  }
}

function settled(mark: Mark, sample: Sample | null): Mark {
  return "since" in mark && sample && sample.askedAt > mark.since ? { place: sample.place } : mark;
}

function later(one: Lsn, other: Lsn): Lsn {
  return one > other ? one : other;
}
