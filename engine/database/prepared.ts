import type { Shape } from "./shape.ts";
import type { Field } from "./statement.ts";
import { makeTally, type Tally } from "./tally.ts";

export type Prepared = {
  readonly shape: Shape;
  /** On the wire; never used twice on one link, so a Parse cannot meet an older statement (42P05). */
  readonly name: string;
  /** The Parse is on its way or has been answered. */
  sent: boolean;
  /** The server has confirmed the Parse. */
  ready: boolean;
  fields: readonly Field[] | null;
  lastUsed: number;
};

/** What one link's session has prepared. A backend pays 40 to 80 kB for each, so the least recently used one goes. */
export class PreparedStatements {
  readonly #most: number;
  readonly #tally: Tally;
  readonly #current = new Map<Shape, Prepared>();
  #closing: string[] = [];
  #clock = 0;

  /** With 0 every statement is parsed anew, unnamed, as a pooler between us and Postgres may need. */
  constructor(most: number, tally: Tally = makeTally()) {
    this.#most = most;
    this.#tally = tally;
  }

  get size(): number {
    return this.#current.size;
  }

  use(shape: Shape): Prepared {
    const known = this.#current.get(shape);
    if (!known) return this.replace(shape);
    known.lastUsed = ++this.#clock;
    this.#tally.prepared++;
    return known;
  }

  /** A new statement under a new name, whatever is known. */
  replace(shape: Shape): Prepared {
    const clock = ++this.#clock;
    this.#tally.parsed++;
    if (this.#most === 0) return { shape, name: "", sent: false, ready: false, fields: null, lastUsed: clock };
    const earlier = this.#current.get(shape);
    if (earlier) this.drop(earlier);
    else if (this.#current.size >= this.#most) this.#evict();
    const fresh = { shape, name: `s${clock}`, sent: false, ready: false, fields: null, lastUsed: clock };
    this.#current.set(shape, fresh);
    return fresh;
  }

  /** Its Parse failed or was skipped because an earlier step failed: there is nothing to close. */
  forget(prepared: Prepared): void {
    if (this.#current.get(prepared.shape) === prepared) this.#current.delete(prepared.shape);
  }

  drop(prepared: Prepared): void {
    this.forget(prepared);
    if (prepared.name !== "") this.#closing.push(prepared.name);
  }

  dropAll(): void {
    for (const prepared of this.#current.values()) this.drop(prepared);
  }

  /** Names to close, to be sent along with the next request. To close one that does not exist is no error. */
  takeClosing(): readonly string[] {
    if (this.#closing.length === 0) return this.#closing;
    const names = this.#closing;
    this.#closing = [];
    return names;
  }

  #evict(): void {
    this.drop(this.#leastRecent());
    this.#tally.evicted++;
  }

  #leastRecent(): Prepared {
    let least: Prepared | undefined;
    for (const prepared of this.#current.values()) {
      if (!least || prepared.lastUsed < least.lastUsed) least = prepared;
    }
    return least!;
  }
}
