import type { Caller } from "../../engine/caller/caller.ts";
import type { Table } from "../../engine/catalog/tables.ts";
import type { Database, RunOptions } from "../../engine/database/database.ts";
import { isTimeout } from "../../engine/database/faults.ts";
import type { Context, Statement } from "../../engine/database/statement.ts";
import { toApiError, unavailable } from "../../engine/errors.ts";
import { Turns } from "../../engine/turns.ts";
import type { Outbox } from "../outbox.ts";
import type { Member } from "./audience.ts";
import type { Binding } from "./binding.ts";
import { answerReader, filterQuery } from "./filter-query.ts";
import { isPattern, type Question } from "./question.ts";
import { repeatWhileAway } from "./repeat-while-away.ts";
import type { Image } from "./row-images.ts";
import type { Answers, RowTest } from "./row-test.ts";
import type { Subscriber } from "./subscriber.ts";

/** The visible rows that a subscriber's filters have to be held against. */
export type FilterRequest = { readonly member: Member; readonly images: readonly Image[] };
export type FilterResult = ReadonlyMap<Image, Answers>;

/** Requests of those who see the same rows of a table. */
export type FilterBatch = {
  readonly caller: Caller;
  readonly table: Table;
  readonly requests: readonly FilterRequest[];
  /** Nothing is done for those who have left by then. */
  readonly isThere: (subscriber: Subscriber) => boolean;
};

type FilterOptions = {
  readonly database: Pick<Database, "run">;
  readonly contextOf: (caller: Caller) => Context;
  /** What the filters of one subscriber take longer for is not waited for. */
  readonly timeoutMs: number;
  readonly isAnonymous: (caller: Caller) => boolean;
};

/** Who asks for a filter, and by which socket. */
type Asking = { readonly caller: Caller; readonly outbox: Outbox };
type Rows = readonly (readonly (string | null)[])[];
type Pace = "fast" | "new" | "slow";

/** Statements at a time: of filters that have proved to be fast, of new ones, and of those that were too slow for that. */
const AT_ONCE: Readonly<Record<Pace, number>> = { fast: 2, new: 1, slow: 1 };
/** Less than this proves that a filter is fast. */
const FAST_MS = 50;
/** The fast and the new ones keep nobody waiting for longer. An anonymous caller has no more. */
const SHORT_MS = 250;
const MOST_QUESTIONS = 500;
/** What one socket may wait for. */
const MOST_NEW = 300;
const BARRED_MS = 60_000;
const NOTHING: FilterResult = new Map();

/** Has Postgres apply the filters that only it can apply, so that the slow ones keep nobody waiting but those who have them. */
export class Filters {
  readonly #options: FilterOptions;
  readonly #shortMs: number;
  readonly #turns = {
    fast: new Turns(AT_ONCE.fast),
    new: new Turns(AT_ONCE.new),
    slow: new Turns(AT_ONCE.slow),
  } as const;
  readonly #proven = new WeakSet<Binding>();
  /** Until when which bindings of a socket are refused. */
  readonly #barred = new WeakMap<Outbox, Map<number, number>>();

  constructor(options: FilterOptions) {
    this.#options = options;
    this.#shortMs = Math.min(SHORT_MS, options.timeoutMs);
  }

  /** A filter that fails rejects for its subscribers alone. */
  apply(batch: FilterBatch): ReadonlyMap<Member, Promise<FilterResult>> {
    const results = new Map<Member, Promise<FilterResult>>();
    const { true: fast = [], false: others = [] } = Object.groupBy(batch.requests, ({ member }) =>
      this.#isFast(member) ? "true" : "false",
    );
    for (const requests of bundlesOf(fast)) {
      const result = this.#ask("fast", { ...batch, requests });
      for (const request of requests) {
        const apart = () => this.#askApart({ ...batch, requests: [request] });
        results.set(request.member, result.catch(apart));
      }
    }
    for (const requests of Map.groupBy(others, ({ member }) => JSON.stringify(questionsOf(member))).values()) {
      const result = this.#askApart({ ...batch, requests });
      for (const { member } of requests) results.set(member, result);
    }
    return results;
  }

  /** Has Postgres read the values of a new filter. */
  async readValues({ caller, outbox }: Asking, statement: Statement, hasPattern: boolean): Promise<Rows> {
    if (!hasPattern) return this.#run(caller, statement, {});
    if (this.#turns.new.waiting(outbox) >= MOST_NEW) throw unavailable("Too many filters at once; join again later.");
    const limits = { lane: "slow", timeoutMs: this.#shortMs } as const;
    return this.#turns.new.take(outbox, () => this.#run(caller, statement, limits));
  }

  /** Whether it has failed for this socket a moment ago. */
  isBarred(outbox: Outbox, { id }: Binding): boolean {
    return (this.#barred.get(outbox)?.get(id) ?? 0) > performance.now();
  }

  /** What is slower than a new filter may be is asked for again, where it keeps only its like waiting. */
  async #askApart(batch: FilterBatch): Promise<FilterResult> {
    const { caller, table, requests } = batch;
    try {
      return await this.#ask("new", batch).catch((error) => {
        if (!isTimeout(error) || this.#options.isAnonymous(caller)) throw error;
        return this.#ask("slow", batch);
      });
    } catch (error) {
      const { status, message } = toApiError(error);
      if (status === 503) throw error;
      for (const { member } of requests) this.#bar(member);
      const why = isTimeout(error) ? "takes too long" : `fails (${message})`;
      throw new Error(`a filter on ${table.name} ${why}, and is refused for a minute`, { cause: error });
    }
  }

  #ask(pace: Pace, batch: FilterBatch): Promise<FilterResult> {
    const { requests, isThere } = batch;
    const { outbox } = requests[0]!.member.subscriber;
    return this.#turns[pace].take(outbox, async () => {
      if (!requests.some(({ member }) => isThere(member.subscriber))) return NOTHING;
      const startedAt = performance.now();
      const result = await this.#askNow(batch, pace === "slow" ? this.#options.timeoutMs : this.#shortMs);
      if (pace !== "fast") this.#judgePace(requests, performance.now() - startedAt);
      return result;
    });
  }

  async #askNow({ caller, table, requests }: FilterBatch, timeoutMs: number): Promise<FilterResult> {
    const questions = requests.flatMap(({ member }) => questionsOf(member));
    const images = [...new Set(requests.flatMap((request) => request.images))];
    // A pattern, however fast it was until now, is not to stand before the reads of others.
    const lane = questions.some(({ operator }) => isPattern(operator)) ? "slow" : "read";
    const statement = filterQuery(table, questions, images);
    const rows = await repeatWhileAway(() => this.#run(caller, statement, { lane, timeoutMs }));
    const read = answerReader(questions);
    return new Map(rows.map((row, at) => [images[at]!, read(row)]));
  }

  async #run(caller: Caller, statement: Statement, limits: Pick<RunOptions, "lane" | "timeoutMs">): Promise<Rows> {
    const { database, contextOf } = this.#options;
    return (await database.run(contextOf(caller), statement, { ...limits, readOnly: true })).rows;
  }

  #isFast(member: Member): boolean {
    return askingBindings(member).every((binding) => this.#proven.has(binding) || binding.tests.every(isBrief));
  }

  #judgePace(requests: readonly FilterRequest[], milliseconds: number): void {
    for (const binding of requests.flatMap(({ member }) => askingBindings(member))) {
      if (milliseconds < FAST_MS) this.#proven.add(binding);
      else this.#proven.delete(binding);
    }
  }

  #bar(member: Member): void {
    const { outbox } = member.subscriber;
    const own = this.#barred.get(outbox) ?? new Map<number, number>();
    this.#barred.set(outbox, own);
    for (const binding of askingBindings(member)) {
      this.#proven.delete(binding);
      own.set(binding.id, performance.now() + BARRED_MS);
    }
  }
}

function askingBindings({ bindings }: Member): readonly Binding[] {
  return bindings.filter(({ tests }) => tests.some(({ questions }) => questions.length > 0));
}

function questionsOf({ bindings }: Member): readonly Question[] {
  return bindings.flatMap(({ tests }) => tests.flatMap(({ questions }) => questions));
}

/** Whether to compare the values takes no longer than to read them. */
function isBrief({ type, questions }: RowTest): boolean {
  const isBuiltIn = type.schema === "pg_catalog" || type.kind === "enum";
  return questions.length === 0 || (isBuiltIn && !questions.some(({ operator }) => isPattern(operator)));
}

/** As many as one statement may ask for. */
function bundlesOf(requests: readonly FilterRequest[]): readonly (readonly FilterRequest[])[] {
  const bundles: FilterRequest[][] = [];
  let room = 0;
  for (const request of requests) {
    const count = questionsOf(request.member).length;
    if (count > room) {
      bundles.push([]);
      room = MOST_QUESTIONS;
    }
    bundles.at(-1)!.push(request);
    room -= count;
  }
  return bundles;
}
