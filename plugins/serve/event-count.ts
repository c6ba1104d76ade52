import pg from "pg";
import type { AsOwner } from "../../engine/database/as-owner.ts";

/** The last number that was given to an event, and whether all events up to it have been told or never will be. */
export type Given = { readonly last: number; readonly isSettled: boolean };

/** Null where events are not numbered. */
export type AskGiven = () => Promise<Given | null>;

const LAST = "select (case when is_called then last_value else 0 end)::float8 as last from private.event_number";
// Whoever has taken a number holds a lock until the transaction's end. Asked afterwards, so that none can slip in between.
const SETTLED = `
  select not exists (
    select from pg_locks
    where locktype = 'relation' and relation = 'private.event_number'::regclass and mode = 'RowExclusiveLock'
      and database = (select oid from pg_database where datname = current_database())
  ) as "isSettled"`;

/** Postgres has no such schema or sequence: events of somebody else's triggers. */
const NOT_NUMBERED: readonly (string | undefined)[] = ["3F000", "42P01"];

export function makeAskGiven(asOwner: AsOwner): AskGiven {
  return () =>
    asOwner(async (client) => {
      const { rows: numbers } = await client.query<{ last: number }>(LAST);
      const { rows: locks } = await client.query<{ isSettled: boolean }>(SETTLED);
      return { last: numbers[0]!.last, isSettled: locks[0]!.isSettled };
    }).catch((error: unknown) => {
      if (error instanceof pg.DatabaseError && NOT_NUMBERED.includes(error.code)) return null;
      throw error;
    });
}

/**
 * Whether an event was missed, by its number. Numbers are given while a transaction runs and told when it commits, in any
 * order, and those of what is rolled back never: so it is counted, not compared, and a count that is wrong only means that
 * an event may have been missed.
 */
export class EventCount {
  readonly #ask: AskGiven;
  /** All up to this one are settled; null while that is not known, and then nothing is. */
  #base: number | null = null;
  /** Above the base. */
  #heard = 0;
  /** Heard while Postgres is being asked. */
  #meanwhile: number[] | null = null;
  /** Where there are events without numbers, one can be missed without a trace. */
  #isNumbered = true;

  constructor(ask: AskGiven) {
    this.#ask = ask;
  }

  /** Asking again may help. */
  get isUnsure(): boolean {
    return this.#isNumbered && this.#base === null;
  }

  hear(number: unknown): void {
    if (typeof number !== "number") this.#isNumbered = false;
    else if (this.#meanwhile) this.#meanwhile.push(number);
    else if (this.#base !== null && number > this.#base) this.#heard++;
  }

  /** One question at a time. The answer may be a false alarm, and is never a false reassurance. */
  async mayHaveMissed(): Promise<boolean> {
    if (!this.#isNumbered) return true;
    const meanwhile: number[] = [];
    this.#meanwhile = meanwhile;
    const given = await this.#ask().catch(() => "unknown" as const);
    this.#meanwhile = null;
    if (given === null) this.#isNumbered = false;
    const mayHave = given === null || given === "unknown" || !this.#accountsFor(given, meanwhile);
    this.#begin(given, meanwhile);
    return mayHave;
  }

  #accountsFor({ last }: Given, meanwhile: readonly number[]): boolean {
    const base = this.#base;
    if (base === null || !this.#isNumbered) return false;
    return last - base === this.#heard + meanwhile.filter((number) => number > base && number <= last).length;
  }

  #begin(given: Given | "unknown" | null, meanwhile: readonly number[]): void {
    this.#base = null;
    if (given === null || given === "unknown" || !given.isSettled) return;
    this.#base = given.last;
    this.#heard = meanwhile.filter((number) => number > given.last).length;
  }
}
