import { shortenText } from "#runtime";
import type { Logger } from "#runtime/log";
import type { StatementContext } from "./statement.ts";

/** The maximum length of a text: enough to recognize the statement. */
const MAX_STATEMENT_CHARACTERS = 2_000;

/** The outcome of a statement. */
type StatementOutcome = {
  /** Null if the statement succeeded. */
  readonly error: unknown;
  /** The time in Postgres; the rest was spent waiting for a connection. */
  readonly milliseconds: number;
  readonly rows: number;
  readonly bytes: number;
  /** The process ID as in `pg_stat_activity` and Postgres's log; null if no connection was available. */
  readonly pid: number | null;
};

/**
 * Called for each statement, or for statements that run as one batch, when submitted; the returned function is called
 * with the outcome. Never receives parameter values.
 */
export type StatementObserver = (
  context: StatementContext,
  texts: readonly string[],
) => (outcome: StatementOutcome) => void;

/** Collects the measurements of one statement. */
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

/** The statements of a batch as one text, for logs. */
export function joinStatementTexts(texts: readonly string[]): string {
  return texts.join(";\n");
}

/** Returns one observer that calls all; null if there are none. */
export function combineObservers(observers: readonly StatementObserver[]): StatementObserver | null {
  if (observers.length < 2) return observers[0] ?? null;
  return (context, texts) => {
    const each = observers.map((observe) => observe(context, texts));
    return (outcome) => {
      for (const report of each) report(outcome);
    };
  };
}

/** The slow executions of one statement. */
export type SlowStatement = {
  /** The text, without parameter values. */
  readonly statement: string;
  readonly calls: number;
  readonly totalMs: number;
  readonly maxMs: number;
  /** The time, role and interface of the last execution. */
  readonly at: string;
  readonly role: string;
  readonly interface: string | null;
};

const MAX_SLOW_STATEMENTS = 50;

/** The most recent slow statements. */
export class SlowStatements {
  readonly #byText = new Map<string, SlowStatement>();

  add(statement: string, milliseconds: number, source: Pick<SlowStatement, "role" | "interface">): void {
    const known = this.#byText.get(statement);
    this.#byText.delete(statement);
    this.#byText.set(statement, {
      statement,
      calls: (known?.calls ?? 0) + 1,
      totalMs: (known?.totalMs ?? 0) + milliseconds,
      maxMs: Math.max(known?.maxMs ?? 0, milliseconds),
      at: new Date().toISOString(),
      ...source,
    });
    if (this.#byText.size > MAX_SLOW_STATEMENTS) this.#byText.delete(this.#byText.keys().next().value!);
  }

  list(): readonly SlowStatement[] {
    return [...this.#byText.values()];
  }
}

type SlowStatementOptions = {
  readonly log: Pick<Logger, "warn">;
  readonly milliseconds: number;
  readonly kept?: Pick<SlowStatements, "add">;
};

/** Logs and keeps each statement above the threshold, with the ids of its request and its session, but without parameter values. */
export function logSlowStatements({ log, milliseconds: least, kept }: SlowStatementOptions): StatementObserver {
  return ({ role, settings }, texts) => {
    const askedAt = performance.now();
    return ({ error, milliseconds: ofPostgres, rows, bytes, pid }) => {
      const took = performance.now() - askedAt;
      if (took < least) return;
      const settingOf = (name: string) => settings.findLast(([each]) => each === name)?.[1];
      const code = (error as { readonly code?: unknown } | null)?.code;
      const statement = shortenText(joinStatementTexts(texts), MAX_STATEMENT_CHARACTERS);
      kept?.add(statement, roundToTenth(took), { role, interface: settingOf("request.interface") ?? null });
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
          statement,
        },
        "a statement was slow",
      );
    };
  };
}

function roundToTenth(milliseconds: number): number {
  return Math.round(milliseconds * 10) / 10;
}
