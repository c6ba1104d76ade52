import { RecentMap } from "../recent-map.ts";

const SLOW_AVERAGE = 3;
const SLOW_ONCE = 20;
const BRIEF_AVERAGE = 1;
const RUNS_TO_TRUST = 3;
/** Weight of the newest run in the moving average. */
const NEWEST = 1 / 8;
const MOST_TEXTS = 2_000;

/** A statement's text as one role runs it: the key of prepared statements, and what its speed is learnt for. */
export class Shape {
  readonly text: string;
  #average = 0;
  #fastRuns = 0;

  constructor(text: string) {
    // The protocol ends strings with a zero byte, so what follows one would be read as something else.
    if (text.includes("\0")) throw new TypeError("A statement's text must not contain a zero byte");
    this.text = text;
  }

  /** A shape that is new, was slow lately or is slow on average may keep others waiting. */
  get isFast(): boolean {
    return this.#fastRuns >= RUNS_TO_TRUST && this.#average < SLOW_AVERAGE;
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

  ran(milliseconds: number): void {
    this.#average += (milliseconds - this.#average) * NEWEST;
    if (milliseconds > SLOW_ONCE) this.#fastRuns = 0;
    else if (milliseconds < SLOW_AVERAGE && this.#fastRuns < RUNS_TO_TRUST) this.#fastRuns++;
  }
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
