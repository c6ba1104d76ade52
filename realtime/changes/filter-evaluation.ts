import { setTimeout as sleep } from "node:timers/promises";
import type { Caller } from "#accounts/identity";
import type { CatalogTable } from "#catalog";
import { toHttpError } from "#http";
import { quotedName } from "#postgres/client";
import { type Database, isQueryCanceled, type RunStatementOptions } from "#postgres/database";
import type { Statement, StatementContext } from "#postgres/statement";
import { unavailable } from "#runtime";
import { FairWorkQueue } from "#runtime/concurrency";
import type { Outbox } from "../protocol/outbox.ts";
import type { GroupMember } from "./audience.ts";
import type { Binding } from "./binding.ts";
import {
  type BindingFilter,
  type ComparisonResult,
  type ComparisonResults,
  comparisonSql,
  isPattern,
  type PostgresComparison,
  type TextRows,
} from "./row-filter.ts";
import { encodeRowVersions, fromRowVersions, type RowVersion, retryWhileUnavailable } from "./row-visibility.ts";
import type { ChangeSubscriber, StreamPosition } from "./subscriber.ts";

/** The visible rows on which a subscriber's filters are evaluated. */
export type FilterRequest = { readonly member: GroupMember; readonly versions: readonly RowVersion[] };
export type FilterResult = ReadonlyMap<RowVersion, ComparisonResults>;

/** Requests of subscribers who see the same rows of a table. */
type FilterBatch = {
  readonly caller: Caller;
  readonly table: CatalogTable;
  readonly requests: readonly FilterRequest[];
  /** False for subscribers who have left by then; their requests are skipped. */
  readonly isActive: (subscriber: ChangeSubscriber) => boolean;
};

type FilterEvaluatorOptions = {
  readonly database: Pick<Database, "run">;
  readonly contextOf: (caller: Caller) => StatementContext;
  /** The time limit for the filters of one subscriber. */
  readonly timeoutMs: number;
  readonly isAnonymous: (caller: Caller) => boolean;
};

/** The caller who uses a filter, and the socket. */
type FilterOwner = { readonly caller: Caller; readonly outbox: Outbox };
type FilterSpeed = "fast" | "new" | "slow";

/** Concurrent statements: for filters known to be fast, for new ones, and for those that were too slow for that. */
const CONCURRENCY: Readonly<Record<FilterSpeed, number>> = { fast: 2, new: 1, slow: 1 };
/** The duration below which a filter is fast. */
const FAST_FILTER_MS = 50;
/** The time limit for fast and new filters, and the only one for anonymous callers. */
const SHORT_TIMEOUT_MS = 250;
const MAX_COMPARISONS = 500;
/** The maximum of new filters that may wait per socket. */
const MAX_WAITING_NEW = 300;
const SUSPENSION_MS = 60_000;
const NO_RESULT: FilterResult = new Map();

/** Has Postgres evaluate the filters that only it can evaluate, so that slow filters delay only the subscribers that use them. */
export class FilterEvaluator {
  readonly #options: FilterEvaluatorOptions;
  readonly #shortMs: number;
  readonly #queues = {
    fast: new FairWorkQueue(CONCURRENCY.fast),
    new: new FairWorkQueue(CONCURRENCY.new),
    slow: new FairWorkQueue(CONCURRENCY.slow),
  } as const;
  readonly #fastBindings = new WeakSet<Binding>();
  /** Bindings that are suspended on a socket, and until when. */
  readonly #suspended = new WeakMap<Outbox, Map<number, number>>();

  constructor(options: FilterEvaluatorOptions) {
    this.#options = options;
    this.#shortMs = Math.min(SHORT_TIMEOUT_MS, options.timeoutMs);
  }

  /** Evaluates filters. A filter that fails rejects only for its own subscribers. */
  evaluate(batch: FilterBatch): ReadonlyMap<GroupMember, Promise<FilterResult>> {
    const results = new Map<GroupMember, Promise<FilterResult>>();
    const { true: fast = [], false: others = [] } = Object.groupBy(batch.requests, ({ member }) =>
      this.#isFast(member) ? "true" : "false",
    );
    for (const requests of splitIntoStatements(fast)) {
      const result = this.#enqueue("fast", { ...batch, requests });
      for (const request of requests) {
        const evaluateAlone = () => this.#evaluateApart({ ...batch, requests: [request] });
        results.set(request.member, result.catch(evaluateAlone));
      }
    }
    for (const requests of Map.groupBy(others, ({ member }) => JSON.stringify(memberComparisons(member))).values()) {
      const result = this.#evaluateApart({ ...batch, requests });
      for (const { member } of requests) results.set(member, result);
    }
    return results;
  }

  /** Has Postgres parse the values of a new filter. */
  async readValues({ caller, outbox }: FilterOwner, statement: Statement, hasPattern: boolean): Promise<TextRows> {
    if (!hasPattern) return this.#run(caller, statement, {});
    if (this.#queues.new.waiting(outbox) >= MAX_WAITING_NEW)
      throw unavailable("Too many new filters at once; join again later.");
    const limits = { pool: "slow", timeoutMs: this.#shortMs } as const;
    return this.#queues.new.run(outbox, () => this.#run(caller, statement, limits));
  }

  /** True if the filter failed for this socket a moment ago. */
  isSuspended(outbox: Outbox, { id }: Binding): boolean {
    return (this.#suspended.get(outbox)?.get(id) ?? 0) > performance.now();
  }

  /** Evaluates a filter in a queue of its own. A filter that exceeds the limit of new filters is retried in the slow queue. */
  async #evaluateApart(batch: FilterBatch): Promise<FilterResult> {
    const { caller, table, requests } = batch;
    try {
      return await this.#enqueue("new", batch).catch((error) => {
        if (!isQueryCanceled(error) || this.#options.isAnonymous(caller)) throw error;
        return this.#enqueue("slow", batch);
      });
    } catch (error) {
      const { status, message } = toHttpError(error);
      if (status === 503) throw error;
      for (const { member } of requests) this.#suspend(member);
      const why = isQueryCanceled(error) ? "takes too long" : `fails (${message})`;
      throw new Error(`a filter on ${table.name} ${why}, and is suspended for a minute`, { cause: error });
    }
  }

  #enqueue(speed: FilterSpeed, batch: FilterBatch): Promise<FilterResult> {
    const { requests, isActive } = batch;
    const { outbox } = requests[0]!.member.subscriber;
    return this.#queues[speed].run(outbox, async () => {
      if (!requests.some(({ member }) => isActive(member.subscriber))) return NO_RESULT;
      const startedAt = performance.now();
      const result = await this.#query(batch, speed === "slow" ? this.#options.timeoutMs : this.#shortMs);
      if (speed !== "fast") this.#recordSpeed(requests, performance.now() - startedAt);
      return result;
    });
  }

  async #query({ caller, table, requests }: FilterBatch, timeoutMs: number): Promise<FilterResult> {
    const comparisons = requests.flatMap(({ member }) => memberComparisons(member));
    const versions = [...new Set(requests.flatMap((request) => request.versions))];
    // A pattern must not delay the reads of others, however fast it was until now.
    const pool = comparisons.some(({ operator }) => isPattern(operator)) ? "slow" : "read";
    const statement = buildFilterQuery(table, comparisons, versions);
    const rows = await retryWhileUnavailable(() => this.#run(caller, statement, { pool, timeoutMs }));
    const read = makeComparisonReader(comparisons);
    return new Map(rows.map((row, at) => [versions[at]!, read(row)]));
  }

  async #run(
    caller: Caller,
    statement: Statement,
    limits: Pick<RunStatementOptions, "pool" | "timeoutMs">,
  ): Promise<TextRows> {
    const { database, contextOf } = this.#options;
    return (await database.run(contextOf(caller), statement, { ...limits, readOnly: true })).rows;
  }

  #isFast(member: GroupMember): boolean {
    return bindingsToEvaluate(member).every(
      (binding) => this.#fastBindings.has(binding) || binding.filters.every(isCheapFilter),
    );
  }

  #recordSpeed(requests: readonly FilterRequest[], milliseconds: number): void {
    for (const binding of requests.flatMap(({ member }) => bindingsToEvaluate(member))) {
      if (milliseconds < FAST_FILTER_MS) this.#fastBindings.add(binding);
      else this.#fastBindings.delete(binding);
    }
  }

  #suspend(member: GroupMember): void {
    const { outbox } = member.subscriber;
    const suspendedUntil = this.#suspended.get(outbox) ?? new Map<number, number>();
    this.#suspended.set(outbox, suspendedUntil);
    for (const binding of bindingsToEvaluate(member)) {
      this.#fastBindings.delete(binding);
      suspendedUntil.set(binding.id, performance.now() + SUSPENSION_MS);
    }
  }
}

function bindingsToEvaluate({ bindings }: GroupMember): readonly Binding[] {
  return bindings.filter(({ filters }) => filters.some(({ comparisons }) => comparisons.length > 0));
}

function memberComparisons({ bindings }: GroupMember): readonly PostgresComparison[] {
  return bindings.flatMap(({ filters }) => filters.flatMap(({ comparisons }) => comparisons));
}

/** True if comparing the values is as cheap as parsing them. */
function isCheapFilter({ type, comparisons }: BindingFilter): boolean {
  const isBuiltIn = type.schema === "pg_catalog" || type.kind === "enum";
  return comparisons.length === 0 || (isBuiltIn && !comparisons.some(({ operator }) => isPattern(operator)));
}

/** Groups requests into statements of limited size. */
function splitIntoStatements(requests: readonly FilterRequest[]): readonly (readonly FilterRequest[])[] {
  const statements: FilterRequest[][] = [];
  let remaining = 0;
  for (const request of requests) {
    const count = memberComparisons(request.member).length;
    if (count > remaining) {
      statements.push([]);
      remaining = MAX_COMPARISONS;
    }
    statements.at(-1)!.push(request);
    remaining -= count;
  }
  return statements;
}

/** Builds the query of filters on rows that are known to be visible: an error or a delay would disclose a hidden row. */
function buildFilterQuery(
  table: CatalogTable,
  comparisons: readonly PostgresComparison[],
  versions: readonly RowVersion[],
): Statement {
  const values = [encodeRowVersions(versions, table)];
  const columns = [...groupComparisons(comparisons)].map(([, list]) => {
    const { column, operator } = list[0]!;
    values.push(JSON.stringify(list.map(({ value }) => value)));
    const compared = comparisonSql(quotedName(table.name, column), operator, "value", table.columns.get(column)!);
    return `(select pg_catalog.json_agg(${compared} order by number) from pg_catalog.json_array_elements_text($${values.length}::pg_catalog.json) with ordinality as "$values" (value, number))`;
  });
  return { text: `select ${columns.join(", ")}\n${fromRowVersions(table, versions)}`, values };
}

/** Reads the result of each comparison from a row of the result. */
function makeComparisonReader(
  comparisons: readonly PostgresComparison[],
): (row: readonly (string | null)[]) => ComparisonResults {
  const positions = new Map<string, readonly [list: number, number: number]>();
  for (const [list, [, same]] of [...groupComparisons(comparisons)].entries()) {
    for (const [number, comparison] of same.entries()) positions.set(comparisonKey(comparison), [list, number]);
  }
  const positionOf = new Map(comparisons.map((comparison) => [comparison, positions.get(comparisonKey(comparison))!]));
  return (row) => {
    const results = row.map((list) => JSON.parse(list!) as ComparisonResult[]);
    return (comparison) => {
      const position = positionOf.get(comparison);
      return position ? results[position[0]]![position[1]]! : null;
    };
  };
}

function comparisonKey({ column, operator, value }: PostgresComparison): string {
  return JSON.stringify([column, operator, value]);
}

/** One sub-select per column and operator, so that few statements differ. */
function groupComparisons(
  comparisons: readonly PostgresComparison[],
): ReadonlyMap<string, readonly PostgresComparison[]> {
  const distinct = [...new Map(comparisons.map((each) => [comparisonKey(each), each])).values()];
  return Map.groupBy(distinct, ({ column, operator }) => JSON.stringify([column, operator]));
}

/** Changes that wait until the filters of their subscriber have been evaluated. */
type BacklogBatch = {
  /** Resolves with the subscriber's position after the batch. */
  readonly ready: Promise<StreamPosition>;
  readonly deliver: () => Promise<void>;
  readonly changes: number;
  readonly bytes: number;
};

type SubscriberBacklog = {
  readonly batches: BacklogBatch[];
  /** The position up to which the subscriber was sent changes. */
  position: StreamPosition;
  readonly drained: PromiseWithResolvers<void>;
};

/** The limit of changes that wait for one subscriber, not counting the first batch. */
const MAX_CHANGES = 2_000;
const MAX_BYTES = 8 * 2 ** 20;
/** The share of the limit above which delivery waits for a subscriber. By then a new filter has been evaluated, or has failed. */
const PACING_LOAD = 1 / 4;
const MAX_PACING_MS = 300;
const PACING_POLL_MS = 5;

/** The changes of each subscriber that wait for the evaluation of its filters. Other subscribers do not wait for them. */
export class FilterBacklogs {
  readonly #backlogs = new Map<ChangeSubscriber, SubscriberBacklog>();
  /** Outboxes that did not drain in time and were sent nothing since: delivery does not wait for them again. */
  readonly #stuck = new WeakSet<Outbox>();

  get isEmpty(): boolean {
    return this.#backlogs.size === 0;
  }

  has(subscriber: ChangeSubscriber): boolean {
    return this.#backlogs.has(subscriber);
  }

  /** Returns the position of a subscriber that has a backlog; otherwise null. */
  positionOf(subscriber: ChangeSubscriber): StreamPosition | null {
    return this.#backlogs.get(subscriber)?.position ?? null;
  }

  /** Resolves when the subscriber has no backlog. */
  async drained(subscriber: ChangeSubscriber): Promise<void> {
    await this.#backlogs.get(subscriber)?.drained.promise;
  }

  /** Adds a batch. `position` is the position of a subscriber that has no backlog yet. */
  add(subscriber: ChangeSubscriber, position: StreamPosition, batch: BacklogBatch): void {
    // It may reject before it is awaited.
    batch.ready.catch(() => {});
    const existing = this.#backlogs.get(subscriber);
    if (existing) {
      existing.batches.push(batch);
      if (backlogLoad(existing) > 1) this.#fail(subscriber, "its filters are slower than changes come");
      return;
    }
    const backlog = { batches: [batch], position, drained: Promise.withResolvers<void>() };
    this.#backlogs.set(subscriber, backlog);
    void this.#drain(subscriber, backlog);
  }

  remove(subscriber: ChangeSubscriber): void {
    this.#backlogs.get(subscriber)?.drained.resolve();
    this.#backlogs.delete(subscriber);
  }

  clear(): void {
    for (const subscriber of [...this.#backlogs.keys()]) this.remove(subscriber);
  }

  /** Waits a little for subscribers that fall behind. */
  async pace(): Promise<void> {
    const end = performance.now() + MAX_PACING_MS;
    const isFull = (subscriber: ChangeSubscriber) => backlogLoad(this.#backlogs.get(subscriber)) > PACING_LOAD;
    let slow = [...this.#backlogs.keys()].filter((each) => !this.#stuck.has(each.outbox) && isFull(each));
    while (slow.length > 0 && performance.now() < end) {
      await sleep(PACING_POLL_MS);
      slow = slow.filter(isFull);
    }
    for (const { outbox } of slow) this.#stuck.add(outbox);
  }

  async #drain(subscriber: ChangeSubscriber, backlog: SubscriberBacklog): Promise<void> {
    const isOver = () => this.#backlogs.get(subscriber) !== backlog;
    try {
      while (backlog.batches.length > 0) {
        const batch = backlog.batches[0]!;
        const end = await batch.ready;
        if (isOver()) return;
        await batch.deliver();
        if (isOver()) return;
        backlog.position = end;
        backlog.batches.shift();
        this.#stuck.delete(subscriber.outbox);
      }
      if (!isOver()) this.remove(subscriber);
    } catch (error) {
      if (!isOver()) this.#fail(subscriber, (error as Error).message);
    }
  }

  #fail(subscriber: ChangeSubscriber, reason: string): void {
    this.remove(subscriber);
    subscriber.reportGap(reason);
  }
}

function backlogLoad(backlog: SubscriberBacklog | undefined): number {
  if (!backlog || backlog.batches.length < 2) return 0;
  const sum = (of: "changes" | "bytes") => backlog.batches.reduce((total, batch) => total + batch[of], 0);
  return Math.max(sum("changes") / MAX_CHANGES, sum("bytes") / MAX_BYTES);
}
