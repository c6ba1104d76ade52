import type { Context } from "./statement.ts";

/** How a statement went. */
export type Went = {
  /** Null: it was done. */
  readonly error: unknown;
  /** What Postgres needed of the time since it was asked; the rest it had to wait for a connection. */
  readonly milliseconds: number;
  readonly rows: number;
  readonly bytes: number;
  /** Of the session, as `pg_stat_activity` and Postgres's log have it; null where there was none to be had. */
  readonly pid: number | null;
};

/** Told of each statement as it is asked, or of those that are asked in one go; what it returns is told how that went. Values are nobody's business. */
export type Observe = (context: Context, texts: readonly string[]) => (went: Went) => void;

/** One statement, on its way to Postgres and back. */
export class Watch {
  readonly #tell: (went: Went) => void;
  #milliseconds = 0;
  #rows = 0;
  #bytes = 0;
  #pid: number | null = null;

  constructor(tell: (went: Went) => void) {
    this.#tell = tell;
  }

  startedOn(pid: number): void {
    this.#pid = pid;
    this.#rows = 0;
    this.#bytes = 0;
  }

  row(bytes: number): void {
    this.rows(1, bytes);
  }

  rows(count: number, bytes: number): void {
    this.#rows += count;
    this.#bytes += bytes;
  }

  took(milliseconds: number): void {
    this.#milliseconds += milliseconds;
  }

  over(error: unknown): void {
    this.#tell({ error, milliseconds: this.#milliseconds, rows: this.#rows, bytes: this.#bytes, pid: this.#pid });
  }
}

/** As one text, for those who read it. */
export function joined(texts: readonly string[]): string {
  return texts.join(";\n");
}

/** Null when there is nobody to tell. */
export function observeAll(observers: readonly Observe[]): Observe | null {
  if (observers.length < 2) return observers[0] ?? null;
  return (context, texts) => {
    const each = observers.map((observe) => observe(context, texts));
    return (went) => {
      for (const tell of each) tell(went);
    };
  };
}
