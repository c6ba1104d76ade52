import { RecentMap } from "../recent-map.ts";
import { namedRelations } from "./named-relations.ts";
import type { Claimant } from "./shares.ts";

/** Milliseconds from which on a statement takes long. */
export const LONG = 100;
const SLOW_AVERAGE = 3;
const SLOW_ONCE = 20;
const BRIEF_AVERAGE = 1;
const RUNS_TO_TRUST = 3;
/** Weight of the newest run in the moving average. */
const NEWEST = 1 / 8;
const MOST_TEXTS = 2_000;
const MOST_CALLERS = 100;

/** A statement's text as one role runs it: the key of prepared statements, and what its speed is learnt for. */
export class Shape {
  readonly text: string;
  #average = 0;
  #fastRuns = 0;
  #relations: readonly string[] | null = null;
  /** For whom it took long the last time: with other values it may be fast. */
  #longFor: Set<string> | null = null;

  constructor(text: string) {
    // The protocol ends strings with a zero byte, so what follows one would be read as something else.
    if (text.includes("\0")) throw new TypeError("A statement's text must not contain a zero byte");
    this.text = text;
  }

  /** A shape that is new, was slow lately or is slow on average may keep others waiting. */
  get isFast(): boolean {
    return this.#fastRuns >= RUNS_TO_TRUST && this.#average < SLOW_AVERAGE;
  }

  /** Milliseconds that Postgres is likely to take. */
  get expected(): number {
    return this.#average;
  }

  /** For that caller it may occupy only a share of a pool. What has not run yet is not known to be long. */
  isLongFor(by: Pick<Claimant, "caller">): boolean {
    return this.#longFor?.has(by.caller) ?? false;
  }

  get relations(): readonly string[] {
    this.#relations ??= namedRelations(this.text);
    return this.#relations;
  }

  /** Several in a row keep others waiting no longer than one may. */
  static areFastTogether(shapes: readonly Shape[]): boolean {
    return (
      shapes.every((shape) => shape.isFast) && shapes.reduce((sum, shape) => sum + shape.#average, 0) < SLOW_AVERAGE
    );
  }

  /** Several of these in a row take no longer than others take by themselves. */
  get isBrief(): boolean {
    return this.isFast && this.#average < BRIEF_AVERAGE;
  }

  ran(milliseconds: number, by: Pick<Claimant, "caller">): void {
    this.#average += (milliseconds - this.#average) * NEWEST;
    if (milliseconds > SLOW_ONCE) this.#fastRuns = 0;
    else if (milliseconds < SLOW_AVERAGE && this.#fastRuns < RUNS_TO_TRUST) this.#fastRuns++;
    if (milliseconds >= LONG) this.#tookLong(by.caller);
    else this.#longFor?.delete(by.caller);
  }

  #tookLong(caller: string): void {
    if (!this.#longFor || this.#longFor.size >= MOST_CALLERS) this.#longFor = new Set();
    this.#longFor.add(caller);
  }
}

/** What is known of the time that a statement takes, and of what it waits for. */
export type Pace = Pick<Shape, "expected" | "isBrief" | "isLongFor" | "relations" | "ran">;

/** That of several in one transaction. */
export function paceOfAll(shapes: readonly Shape[]): Pace {
  return {
    expected: shapes.reduce((sum, { expected }) => sum + expected, 0),
    isBrief: false,
    isLongFor: (by) => shapes.some((shape) => shape.isLongFor(by)),
    relations: [...new Set(shapes.flatMap(({ relations }) => relations))],
    ran(milliseconds, by) {
      for (const shape of shapes) shape.ran(milliseconds / shapes.length, by);
    },
  };
}

/**
 * The shapes seen lately, for all links. Schema USAGE is checked at Parse only and policies are planned for one role,
 * so the same text is another shape for another role.
 */
export class Shapes {
  /** By text, then by role. */
  readonly #known: RecentMap<string, Map<string, Shape>>;

  constructor(most = MOST_TEXTS) {
    this.#known = new RecentMap(most);
  }

  of(role: string, text: string): Shape {
    const byRole = this.#known.get(text);
    const known = byRole?.get(role);
    if (known) return known;
    const shape = new Shape(text);
    if (byRole) byRole.set(role, shape);
    else this.#known.set(text, new Map([[role, shape]]));
    return shape;
  }
}
