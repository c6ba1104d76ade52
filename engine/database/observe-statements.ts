import type { Logger } from "../output/log.ts";
import type { StatementContext } from "./statement.ts";

/** Enough to know it by. */
const MAX_STATEMENT_CHARACTERS = 2_000;

/** How a statement went. */
type StatementOutcome = {
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
export type StatementObserver = (
  context: StatementContext,
  texts: readonly string[],
) => (outcome: StatementOutcome) => void;

/** One statement, on its way to Postgres and back. */
export class StatementObservation {
  readonly #report: (outcome: StatementOutcome) => void;
  #milliseconds = 0;
  #rows = 0;
  #bytes = 0;
  #pid: number | null = null;

  constructor(report: (outcome: StatementOutcome) => void) {
    this.#report = report;
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

  finish(error: unknown): void {
    this.#report({ error, milliseconds: this.#milliseconds, rows: this.#rows, bytes: this.#bytes, pid: this.#pid });
  }
}

/** As one text, for those who read it. */
export function joinStatementTexts(texts: readonly string[]): string {
  return texts.join(";\n");
}

/** Null when there is nobody to tell. */
export function combineObservers(observers: readonly StatementObserver[]): StatementObserver | null {
  if (observers.length < 2) return observers[0] ?? null;
  return (context, texts) => {
    const each = observers.map((observe) => observe(context, texts));
    return (outcome) => {
      for (const report of each) report(outcome);
    };
  };
}

type SlowStatementOptions = { readonly log: Pick<Logger, "warn">; readonly milliseconds: number };

/** A line for each statement that took so long, with what leads to its request and to its session; never with its values. */
export function logSlowStatements({ log, milliseconds: least }: SlowStatementOptions): StatementObserver {
  return ({ role, settings }, texts) => {
    const askedAt = performance.now();
    return ({ error, milliseconds: ofPostgres, rows, bytes, pid }) => {
      const took = performance.now() - askedAt;
      if (took < least) return;
      const settingOf = (name: string) => settings.findLast(([each]) => each === name)?.[1];
      const code = (error as { readonly code?: unknown } | null)?.code;
      log.warn(
        {
          request: settingOf("request.id"),
          interface: settingOf("request.interface"),
          role,
          pid,
          milliseconds: roundToTenth(took),
          waited: roundToTenth(Math.max(0, took - ofPostgres)),
          inPostgres: roundToTenth(ofPostgres),
          rows,
          bytes,
          ...(error !== null && { code: code ?? "unknown" }),
          statement: joinStatementTexts(texts).slice(0, MAX_STATEMENT_CHARACTERS),
        },
        "a statement was slow",
      );
    };
  };
}

function roundToTenth(milliseconds: number): number {
  return Math.round(milliseconds * 10) / 10;
}
