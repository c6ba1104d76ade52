import type { ResultField } from "./statement.ts";
import type { StatementShape } from "./statement-shape.ts";

export type PreparedStatement = {
  readonly shape: StatementShape;
  /** On the wire; never used twice on one link, so a Parse cannot meet an older statement (42P05). */
  readonly name: string;
  /** The Parse is on its way or has been answered. */
  sent: boolean;
  /** The server has confirmed the Parse. */
  ready: boolean;
  fields: readonly ResultField[] | null;
  lastUsed: number;
};

/** What one link's session has prepared. A backend pays 40 to 80 kB for each, so the least recently used one goes. */
export class PreparedStatements {
  readonly #maxStatements: number;
  readonly #counters: ConnectionCounters;
  readonly #current = new Map<StatementShape, PreparedStatement>();
  #closing: string[] = [];
  #clock = 0;

  /** With 0 every statement is parsed anew, unnamed, as a pooler between us and Postgres may need. */
  constructor(most: number, tally: ConnectionCounters = makeConnectionCounters()) {
    this.#maxStatements = most;
    this.#counters = tally;
  }

  get size(): number {
    return this.#current.size;
  }

  use(shape: StatementShape): PreparedStatement {
    const known = this.#current.get(shape);
    if (!known) return this.replace(shape);
    known.lastUsed = ++this.#clock;
    this.#counters.prepared++;
    return known;
  }

  /** A new statement under a new name, whatever is known. */
  replace(shape: StatementShape): PreparedStatement {
    const clock = ++this.#clock;
    this.#counters.parsed++;
    if (this.#maxStatements === 0) return { shape, name: "", sent: false, ready: false, fields: null, lastUsed: clock };
    const earlier = this.#current.get(shape);
    if (earlier) this.drop(earlier);
    else if (this.#current.size >= this.#maxStatements) this.#evict();
    const fresh = { shape, name: `s${clock}`, sent: false, ready: false, fields: null, lastUsed: clock };
    this.#current.set(shape, fresh);
    return fresh;
  }

  /** Its Parse failed or was skipped because an earlier step failed: there is nothing to close. */
  forget(prepared: PreparedStatement): void {
    if (this.#current.get(prepared.shape) === prepared) this.#current.delete(prepared.shape);
  }

  drop(prepared: PreparedStatement): void {
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
    this.#counters.evicted++;
  }

  #leastRecent(): PreparedStatement {
    let least: PreparedStatement | undefined;
    for (const prepared of this.#current.values()) {
      if (!least || prepared.lastUsed < least.lastUsed) least = prepared;
    }
    return least!;
  }
}

/** What has happened on the links of one lane since the start. Whoever does it adds to it. */
export type ConnectionCounters = {
  /** Writes to the server and what came back, whatever that was. */
  exchanges: number;
  /** Of the server, for all of them. */
  milliseconds: number;
  /** Links that were opened, and those that were lost. */
  opened: number;
  lost: number;
  /** Those who waited for a link too long, or found too many waiting. */
  turnedAway: number;
  /** Reads that were cancelled since others waited, and ran again. */
  interrupted: number;
  /** Statements that were prepared already, those that had to be, and those that were given up for others. */
  prepared: number;
  parsed: number;
  evicted: number;
};

export function makeConnectionCounters(): ConnectionCounters {
  return {
    exchanges: 0,
    milliseconds: 0,
    opened: 0,
    lost: 0,
    turnedAway: 0,
    interrupted: 0,
    prepared: 0,
    parsed: 0,
    evicted: 0,
  };
}
