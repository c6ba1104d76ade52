import { setTimeout as sleep } from "node:timers/promises";

/** Of whoever would have a machine of their own: here they get what the service and honest callers leave. */
export const LOWEST_PRIORITY = 19;

/** A service that an attack has for itself. */
export type Victim = { readonly url: string; readonly pid: number };

export type Target = {
  /** Of the service that honest callers use. */
  readonly url: string;
  /** Of the database that the service serves, as a superuser. */
  readonly ownerUrl: string;
  readonly victims: readonly Victim[];
  /** When to stop, by `Date.now()`. */
  readonly until: number;
};

export type AttackResult = {
  /** How often each was the answer: `413`, `ECONNRESET`. */
  readonly outcomes: Readonly<Record<string, number>>;
  /** What the service must never do, in words; none is the aim. */
  readonly faults: readonly string[];
  /** What else must hold, and whether it did. */
  readonly statements?: readonly Statement[];
};

/** Something that must hold, and whether it did. */
export type Statement = { readonly what: string; readonly isMet: boolean; readonly target: string };

/** Goes on until it is time to stop, in a process of its own. */
export type Attack = (target: Target) => Promise<AttackResult>;

/** What comes of an attack, as it goes on. */
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

/** So many do it again and again until it is time, each after a pause. */
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

/** `ECONNRESET`, or what it says of itself. */
export function failureOf(error: unknown): string {
  const { code, message } = error as NodeJS.ErrnoException;
  return code ?? message;
}
