import { randomBytes } from "node:crypto";
import type { ResultField } from "../client/server-messages.ts";
import type { StatementShape } from "./statement-shape.ts";

export type PreparedStatement = {
  readonly shape: StatementShape;
  /**
   * The protocol name. It is never reused, so a Parse cannot conflict with an older statement (42P05), nor with one of another
   * connection where a router lets connections share sessions.
   */
  readonly name: string;
  /** True if the Parse has been sent. */
  sent: boolean;
  /** True if the server has confirmed the Parse. */
  ready: boolean;
  fields: readonly ResultField[] | null;
  lastUsed: number;
};

/** Limits the total length of the texts: a backend needs up to 25 bytes per character for the plan of a statement with many columns. */
const MAX_CHARACTERS = 1_000_000;

/** The prepared statements of one session. A backend needs 40 to 80 kB for each, so the least recently used one is evicted. */
export class PreparedStatements {
  readonly #maxStatements: number;
  readonly #counters: ConnectionCounters;
  readonly #prefix = randomBytes(6).toString("base64url");
  readonly #current = new Map<StatementShape, PreparedStatement>();
  #characters = 0;
  #closing: string[] = [];
  #clock = 0;

  /** With `max` = 0 every statement is parsed unnamed each time, as a pooler may require. */
  constructor(max: number, counters: ConnectionCounters = makeConnectionCounters()) {
    this.#maxStatements = max;
    this.#counters = counters;
  }

  get size(): number {
    return this.#current.size;
  }

  use(shape: StatementShape): PreparedStatement {
    const existing = this.#current.get(shape);
    if (!existing) return this.replace(shape);
    existing.lastUsed = ++this.#clock;
    this.#counters.prepared++;
    return existing;
  }

  /** Returns a statement that is parsed now and not kept. */
  unnamed(shape: StatementShape): PreparedStatement {
    this.#counters.parsed++;
    return { shape, name: "", sent: false, ready: false, fields: null, lastUsed: ++this.#clock };
  }

  /** Prepares the statement again under a new name. */
  replace(shape: StatementShape): PreparedStatement {
    if (this.#maxStatements === 0) return this.unnamed(shape);
    const clock = ++this.#clock;
    this.#counters.parsed++;
    const earlier = this.#current.get(shape);
    if (earlier) this.drop(earlier);
    else if (this.#current.size >= this.#maxStatements) this.#evict();
    while (this.#current.size > 0 && this.#characters + shape.text.length > MAX_CHARACTERS) this.#evict();
    const fresh = { shape, name: `${this.#prefix}${clock}`, sent: false, ready: false, fields: null, lastUsed: clock };
    this.#current.set(shape, fresh);
    this.#characters += shape.text.length;
    return fresh;
  }

  /** Forgets a statement whose Parse failed or was skipped: there is nothing to close. */
  forget(prepared: PreparedStatement): void {
    if (this.#current.get(prepared.shape) !== prepared) return;
    this.#current.delete(prepared.shape);
    this.#characters -= prepared.shape.text.length;
  }

  drop(prepared: PreparedStatement): void {
    this.forget(prepared);
    if (prepared.name !== "") this.#closing.push(prepared.name);
  }

  dropAll(): void {
    for (const prepared of this.#current.values()) this.drop(prepared);
  }

  /** Returns the names to close with the next request. Closing a missing statement is no error. */
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

/** Counters of one pool's connections since the start. */
export type ConnectionCounters = {
  /** Batches that were completed, with or without an error. */
  batches: number;
  /** The server's time for all batches, in milliseconds. */
  milliseconds: number;
  /** Connections that were opened, and those that were lost. */
  opened: number;
  lost: number;
  /** Requests that waited too long, or were refused because the queue was full. */
  turnedAway: number;
  /** Reads that were cancelled in favor of others, and ran again. */
  interrupted: number;
  /** Statements that were already prepared, that were parsed, and that were evicted. */
  prepared: number;
  parsed: number;
  evicted: number;
};

export function makeConnectionCounters(): ConnectionCounters {
  return {
    batches: 0,
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
