import { setTimeout as sleep } from "node:timers/promises";

/** The priority of processes that would have their own machine: here they get the time that the service and honest callers leave. */
export const LOWEST_PRIORITY = 19;

/** A service that only one attack uses. */
export type Victim = { readonly url: string; readonly pid: number };

export type Target = {
  /** The URL of the service that honest callers use. */
  readonly url: string;
  /** The connection string of the service's database, as a superuser. */
  readonly ownerUrl: string;
  readonly victims: readonly Victim[];
  /** The time of the end, by `Date.now()`. */
  readonly until: number;
};

export type AttackResult = {
  /** The number of times for each outcome: `413`, `ECONNRESET`. */
  readonly outcomes: Readonly<Record<string, number>>;
  /** Descriptions of events that must never happen; the aim is none. */
  readonly faults: readonly string[];
  /** Further statements that must hold, with their results. */
  readonly statements?: readonly Statement[];
};

/** A statement that must hold, with its result. */
export type Statement = { readonly what: string; readonly isMet: boolean; readonly target: string };

/** Runs until its end time, in a separate process. */
export type Attack = (target: Target) => Promise<AttackResult>;

/** Collects the outcomes of an attack while it runs. */
export class Outcomes {
  readonly #counts: Record<string, number> = {};
  readonly #faults = new Set<string>();
  readonly #statements: Statement[] = [];

  count(outcome: string): void {
    this.#counts[outcome] = (this.#counts[outcome] ?? 0) + 1;
  }

  fault(what: string): void {
    this.#faults.add(what);
  }

  state(statement: Statement): void {
    this.#statements.push(statement);
  }

  get result(): AttackResult {
    return { outcomes: { ...this.#counts }, faults: [...this.#faults], statements: this.#statements };
  }
}

/** Repeats the work in this many loops until the end time, with a pause after each run. */
export async function repeat(
  { until }: Target,
  { times, pauseMs }: { readonly times: number; readonly pauseMs: number },
  work: (index: number) => Promise<void>,
): Promise<void> {
  const loop = async (index: number) => {
    while (Date.now() < until) {
      await work(index);
      await sleep(Math.min(pauseMs, Math.max(0, until - Date.now())));
    }
  };
  await Promise.all(Array.from({ length: times }, (_, index) => loop(index)));
}

/** Returns `ECONNRESET`, or the error's message. */
export function failureOf(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  return code ?? message;
}
