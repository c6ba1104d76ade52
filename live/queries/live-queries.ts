import { setTimeout as sleep } from "node:timers/promises";
import { type AsOwner, type Database, formatLsn, type Lsn } from "#postgres/database";
import type { Statement } from "#postgres/statement";
import { unavailable } from "#runtime";
import type { Logger } from "#runtime/log";
import { DependencyCache } from "../dependencies/dependency-cache.ts";
import { claimsKey } from "../dependencies/policy-dependencies.ts";
import { type QueryDependencies, readFingerprint } from "../dependencies/query-dependencies.ts";
import { readFilterValues } from "../dependencies/row-filters.ts";
import type { ChangeSubscription, CommittedTransaction, ReplicationStream } from "../stream/changes.ts";
import { makeAwaitVisible } from "../stream/transaction-visibility.ts";
import type { AffectedResults } from "./affected-results.ts";
import type { ChangeFilter } from "./affected-rows.ts";
import { ChangeMarks, type OpeningQuery } from "./change-marks.ts";
import { LIVE_LIMITS, mostQueriesFor, refuseUnfit, resultTooLarge, tooManyQueries } from "./live-limits.ts";
import {
  type LiveEvent,
  type LiveResult,
  type LiveSource,
  LiveSubscriber,
  type LiveSubscription,
} from "./live-subscriber.ts";
import { OpenOfCallers } from "./open-of-callers.ts";
import { workWithPauses } from "./paused-work.ts";
import type { LiveQueryResult } from "./relation-results.ts";
import { mayRunAgain, RerunQueue } from "./rerun-queue.ts";
import { contentsOf, isReadOnce } from "./result-contents.ts";
import { RunningTransactions } from "./running-transactions.ts";
import { type ResultDefinition, SharedResult } from "./shared-result.ts";
import { type CommittedChange, tableRowsOf } from "./table-rows.ts";

export type { LiveEvent, LiveResult, LiveSource, LiveSubscription };

const RETRY_MS = 500;

type LiveQueriesOptions = {
  readonly asOwner: AsOwner;
  readonly database: Pick<Database, "run" | "countStatements">;
  readonly changes: ReplicationStream;
  readonly publication: string;
  /** Resolves when queries are compiled for the present definitions. */
  reloadDefinitions(): Promise<void>;
  readonly log: Pick<Logger, "warn" | "error">;
};

type OpenedQuery = Omit<ResultDefinition, "statements"> & { readonly opening: OpeningQuery };

type LiveStatistics = {
  readonly queries: number;
  readonly results: number;
  readonly bytes: number;
  /** The runs of queries after commits. */
  readonly runs: number;
};

/**
 * Queries whose results stay up to date. A commit marks the results that it may affect; each is run again once per audience, in a snapshot that
 * has the commit, and sent if it differs. Policies decide in each run what the caller reads: nothing else passes rows on.
 */
export class LiveQueries {
  readonly #options: LiveQueriesOptions;
  readonly #awaitVisible: ReturnType<typeof makeAwaitVisible>;
  readonly #dependencies: DependencyCache;
  readonly #marks: ChangeMarks;
  readonly #transactions: RunningTransactions;
  readonly #results = new Map<string, LiveQueryResult>();
  readonly #subscribers = new Set<LiveSubscriber>();
  readonly #openOfCallers = new OpenOfCallers();
  readonly #reruns: RerunQueue;
  /** Transactions that have changed definitions. */
  #definitionXids = new Set<number>();
  /** Transactions of the stream that were not visible after a long time. */
  #invisible: ReadonlySet<number> = new Set();
  #areDefinitionsOld = false;
  #isRefreshing = false;
  #runs = 0;
  /** The bytes of all results. */
  #bytes = 0;
  #stream: { readonly subscription: ChangeSubscription; readonly opened: Promise<Lsn> } | null = null;
  #privateKeys = 0;
  #isClosed = false;

  constructor(options: LiveQueriesOptions) {
    const { asOwner, changes, database, publication } = options;
    this.#options = options;
    this.#awaitVisible = makeAwaitVisible(asOwner, () => changes.state().history?.timeline ?? null);
    this.#dependencies = new DependencyCache(asOwner, publication);
    this.#transactions = new RunningTransactions(asOwner);
    this.#reruns = new RerunQueue(() => database.countStatements());
    this.#marks = new ChangeMarks({
      onMarked: () => this.#startRefreshing(),
      onDefinitions: (transaction) => this.#outdate(transaction),
      onMissed: () => this.#outdate(null),
    });
  }

  get size(): number {
    return this.#subscribers.size;
  }

  statistics(): LiveStatistics {
    return { queries: this.size, results: this.#results.size, bytes: this.#bytes, runs: this.#runs };
  }

  /** Opens a live query; refuses one that cannot be live. `since`: the position of the last event that the client has. */
  async open(source: LiveSource, since: Lsn | null = null): Promise<LiveSubscription> {
    this.#refuseTooMany(source);
    const subscriber = new LiveSubscriber(source, {
      refresh: (each) => this.#refreshOf(each),
      remove: (each) => this.#remove(each),
    });
    this.#subscribers.add(subscriber);
    this.#openOfCallers.add(source.quotaKey);
    try {
      await this.#attach(subscriber, "first");
      if (since !== null)
        subscriber.continueFrom(subscriber.result?.versionOf(since, source.caller.claimsText) ?? null);
      return subscriber;
    } catch (error) {
      subscriber.close();
      throw error;
    }
  }

  /** Call when definitions are found changed and the stream may not have reported it. */
  reviewAll(): void {
    this.#outdateAll();
  }

  /** Ends all queries; their clients connect again, to this service or another one. */
  endAll(): void {
    this.#isClosed = true;
    for (const subscriber of [...this.#subscribers]) subscriber.close();
    for (const result of [...this.#results.values()]) this.#drop(result);
    this.#closeStream();
  }

  #refuseTooMany({ quotaKey, caller }: LiveSource): void {
    const { ofCaller, all, allBytes } = LIVE_LIMITS;
    if (this.#openOfCallers.of(quotaKey) >= ofCaller) throw tooManyQueries(ofCaller, "a caller");
    if (this.#isClosed) throw unavailable("The service stops: connect again.");
    const isFull = this.#subscribers.size >= mostQueriesFor(caller);
    if (isFull || this.#bytes > allBytes) throw tooManyQueries(all, "the service");
  }

  #remove(subscriber: LiveSubscriber): void {
    const { source, result } = subscriber;
    this.#subscribers.delete(subscriber);
    this.#openOfCallers.remove(source.quotaKey);
    this.#detach(subscriber);
    if (result === null) this.#closeUnusedStream();
  }

  #detach(subscriber: LiveSubscriber): void {
    const { result } = subscriber;
    subscriber.result = null;
    if (!result) return;
    result.subscribers.delete(subscriber);
    if (result.subscribers.size > 0) return;
    result.expiry = setTimeout(() => this.#drop(result), LIVE_LIMITS.keptMs).unref();
  }

  #drop(result: LiveQueryResult): void {
    clearTimeout(result.expiry);
    if (this.#results.get(result.key) === result) {
      this.#results.delete(result.key);
      this.#bytes -= result.countedBytes;
    }
    this.#marks.remove(result);
    this.#closeUnusedStream();
  }

  /** Finds or makes the result of the subscriber's audience. */
  async #attach(subscriber: LiveSubscriber, time: "first" | "again"): Promise<void> {
    const { source } = subscriber;
    await this.#openStream();
    const run = () => this.#runFirst(source);
    const { first, milliseconds, snapshot, running, opening } = await (time === "first"
      ? run()
      : this.#reruns.run(source.quotaKey, run));
    try {
      if (first.missing && time === "first") throw first.missing;
      const dependencies = await this.#dependencies.of(first.statements);
      refuseUnfit(first, { source, dependencies }, time === "again" ? 0 : milliseconds);
      const key = this.#keyOf(source, dependencies);
      const filters = this.#results.has(key) ? [] : await this.#filtersOf(source, first, dependencies);
      const existing = this.#results.get(key);
      const tableRows = tableRowsOf(source, dependencies);
      if (subscriber.isClosed) return this.#closeUnusedStream();
      const result = existing ?? this.#make(key, first, { dependencies, filters, tableRows, running, opening });
      this.#marks.endOpening(opening);
      clearTimeout(result.expiry);
      result.subscribers.add(subscriber);
      subscriber.result = result;
      // A caller that joins gets nothing older than its own first run.
      const isOld =
        existing && (existing.isStale || existing.refreshing !== null || existing.current.text !== first.text);
      if (isOld) await this.#refresh(result);
      source.onSnapshot?.(snapshot);
      if (opening.isOutdated) this.#outdateResult(result);
      if (!existing) this.#markWhenEnded(running, result, opening);
    } finally {
      this.#marks.endOpening(opening);
    }
    if (subscriber.isClosed) this.#detach(subscriber);
  }

  async #runFirst(source: LiveSource) {
    const opening = this.#marks.beginOpening(this.#options.changes.state().position ?? this.#marks.position);
    try {
      const { snapshot, running } = await this.#transactions.read();
      const startedAt = performance.now();
      const first = await source.run();
      return { first, milliseconds: performance.now() - startedAt, snapshot, running, opening };
    } catch (error) {
      this.#marks.endOpening(opening);
      throw error;
    }
  }

  #make(key: string, first: LiveResult, { opening, ...of }: OpenedQuery): LiveQueryResult {
    const result: LiveQueryResult = new SharedResult(key, { ...of, statements: textsOf(first.statements) });
    result.acceptRun(first, opening.position, opening.startedAt);
    result.contents = contentsOf(first, result.dependencies);
    this.#results.set(key, result);
    this.#countBytes(result);
    result.isStale = this.#marks.add(result, opening);
    return result;
  }

  #countBytes(result: LiveQueryResult): void {
    if (this.#results.get(result.key) !== result) return;
    this.#bytes += result.bytes - result.countedBytes;
    result.countedBytes = result.bytes;
  }

  /** Marks the result when transactions end that ran when the query was opened: they may precede it in the stream, but are not in its snapshot. */
  #markWhenEnded(xids: ReadonlySet<number>, result: LiveQueryResult, opening: OpeningQuery): void {
    this.#transactions.whenEnded(xids, {
      isNeeded: () => this.#results.get(result.key) === result,
      onEnded: (ended) => {
        if (ended.values().some((xid) => !this.#marks.hasReadSince(opening.number, xid))) {
          result.isStale = true;
          this.#marks.mark(result);
        }
        for (const xid of ended) result.running.delete(xid);
      },
    });
  }

  /** The filters of the query itself, and those of the policies. */
  async #filtersOf(
    { isPrivate }: LiveSource,
    { filters, statements }: LiveResult,
    { relations, rowFilters, readsRequest }: QueryDependencies,
  ): Promise<ChangeFilter[]> {
    const own = filters.filter(({ relation }) => isReadOnce(relations, relation));
    const [read] = statements;
    // A function that runs first may set other claims.
    if (rowFilters.length === 0 || !read || isPrivate || readsRequest) return own;
    const run = (statement: Statement) => this.#options.database.run(read.context, statement, { readOnly: true });
    return [...own, ...(await readFilterValues(rowFilters, run))];
  }

  #keyOf(source: LiveSource, { claims, readsRequest, fingerprint }: QueryDependencies): string {
    const { request, caller, isPrivate } = source;
    // Results whose statements cannot be compared with their definitions are those of equal claims alone.
    const audience = fingerprint === "" ? caller.claimsText : claimsKey(caller, claims);
    const own = isPrivate || readsRequest ? ++this.#privateKeys : 0;
    return JSON.stringify([request, caller.role, audience, fingerprint, own]);
  }

  async #openStream(): Promise<void> {
    if (!this.#stream) {
      const subscription = this.#options.changes.follow(this.#marks);
      this.#stream = { subscription, opened: subscription.from };
    }
    const stream = this.#stream;
    try {
      await stream.opened;
    } catch (error) {
      if (this.#stream === stream) this.#stream = null;
      throw error;
    }
  }

  #closeUnusedStream(): void {
    if (this.#results.size === 0 && this.#subscribers.size === 0) this.#closeStream();
  }

  #closeStream(): void {
    this.#stream?.subscription.close();
    this.#stream = null;
  }

  #outdate(transaction: CommittedTransaction | null): void {
    if (transaction) this.#definitionXids.add(transaction.xid);
    this.#areDefinitionsOld = true;
    this.#outdateAll();
    this.#startRefreshing();
  }

  #outdateAll(): void {
    this.#dependencies.forget();
    this.#marks.outdateOpenings();
    for (const result of this.#results.values()) if (!result.isOutdated) this.#outdateResult(result);
  }

  #outdateResult(result: LiveQueryResult): void {
    result.isOutdated = true;
    this.#marks.mark(result);
  }

  #startRefreshing(): void {
    if (!this.#isRefreshing) void this.#refreshMarked();
  }

  /** Runs the marked results. Results that are marked while transactions become visible run in the next turn. */
  async #refreshMarked(): Promise<void> {
    this.#isRefreshing = true;
    for (let marked = this.#marks.take(); !this.#isClosed; marked = this.#marks.take()) {
      const areDefinitionsOld = this.#areDefinitionsOld;
      const { gaps } = this.#marks;
      if (marked.isEmpty && !areDefinitionsOld && !this.#marks.decided.areMany) break;
      const xids = marked.xids.union(this.#definitionXids);
      this.#definitionXids = new Set();
      this.#areDefinitionsOld = false;
      const invisible = await this.#marks.decided.awaitVisible(this.#awaitVisible, xids);
      if (areDefinitionsOld) await this.#reloadDefinitions();
      this.#outdateWhenEnded(invisible);
      await this.#refreshAll(marked, gaps);
    }
    this.#isRefreshing = false;
  }

  /** `gaps`: the count when the results were taken. If it has grown since, changes may be from a lost timeline. */
  #refreshAll(marked: AffectedResults, gaps: number): Promise<void> {
    return workWithPauses(marked.list(), ([result, { xids, changes }]) => {
      if (marked.position > result.markedAt) result.markedAt = marked.position;
      const isRead = result.subscribers.size > 0;
      if (isRead) result.addXids(xids);
      const areSure = changes && this.#invisible.size === 0 && this.#marks.gaps === gaps;
      if (isRead && areSure && this.#changeRows(result, changes)) return;
      result.isStale = true;
      if (isRead) void this.#refresh(result);
    });
  }

  #changeRows(result: LiveQueryResult, changes: readonly CommittedChange[]): boolean {
    if (!result.acceptChanges(changes, result.markedAt)) return false;
    this.#countBytes(result);
    result.commit(result.takeXids());
    return true;
  }

  #outdateWhenEnded(invisible: ReadonlySet<number>): void {
    this.#invisible = this.#invisible.union(invisible);
    const onEnded = (ended: ReadonlySet<number>) => {
      this.#invisible = this.#invisible.difference(ended);
      this.#outdate(null);
    };
    this.#transactions.whenEnded(invisible, { onEnded });
  }

  async #reloadDefinitions(): Promise<void> {
    // Data that was read since the stream had the change may be from before the change was visible.
    this.#outdateAll();
    try {
      await this.#options.reloadDefinitions();
    } catch (error) {
      this.#options.log.warn({ err: error }, "the definitions could not be reloaded for live queries");
    }
  }

  /** Resolves when a run that began after the call has ended. One run of a result at a time. */
  #refresh(result: LiveQueryResult): Promise<void> {
    if (result.refreshing) {
      if (!result.hasBegun) return result.refreshing;
      result.refreshingNext ??= result.refreshing.then(() => {
        result.refreshingNext = null;
        return this.#refresh(result);
      });
      return result.refreshingNext;
    }
    result.hasBegun = false;
    result.refreshing = this.#runAgain(result).finally(() => {
      result.refreshing = null;
    });
    return result.refreshing;
  }

  async #refreshOf(subscriber: LiveSubscriber): Promise<void> {
    let attaching: Promise<void> | null;
    do {
      attaching = subscriber.attaching;
      await attaching;
      if (subscriber.result) await this.#refresh(subscriber.result);
      // A run may have found that definitions have changed.
    } while (subscriber.attaching !== attaching);
  }

  async #runAgain(result: LiveQueryResult): Promise<void> {
    for (let failures = 0; !this.#isClosed; ) {
      const [waiting] = result.subscribers;
      if (!waiting) return;
      try {
        if (await this.#reruns.run(waiting.source.quotaKey, () => this.#runOnce(result))) return;
        await sleep(RETRY_MS);
      } catch (error) {
        if (!mayRunAgain(error, ++failures)) return this.#end(result, error);
        await sleep(RETRY_MS);
      }
    }
  }

  /** Returns false if the result's readers have left in the meantime. */
  async #runOnce(result: LiveQueryResult): Promise<boolean> {
    await this.#beginRun(result);
    result.hasBegun = true;
    const [subscriber] = result.subscribers;
    if (!subscriber) return true;
    if (result.isOutdated) return this.#regroup(result);
    const { markedAt } = result;
    const startedAt = performance.now();
    const xids = result.takeXids();
    result.isStale = false;
    this.#runs++;
    try {
      const run = await subscriber.source.run();
      const { text, statements } = run;
      // Rows decide which statements follow; others may have another audience.
      const isOther = textsOf(statements).some((each) => !result.statements.has(each));
      if (isOther || !(await this.#isSameAudience(result))) return this.#regroup(result, xids);
      if (text.length > LIVE_LIMITS.resultBytes) throw resultTooLarge(LIVE_LIMITS.resultBytes);
      result.acceptRun(run, markedAt, startedAt);
      this.#marks.setContents(result, contentsOf(run, result.dependencies));
      this.#countBytes(result);
      result.commit(xids);
      return true;
    } catch (error) {
      result.isStale = true;
      result.hasBegun = false;
      result.addXids([xids]);
      if (subscriber.isClosed) return false;
      throw error;
    }
  }

  /** From now on changes are judged without the rows of the result. The run includes all changes that were judged by those rows. */
  async #beginRun(result: LiveQueryResult): Promise<void> {
    this.#marks.setContents(result, null);
    if (!result.isOutdated) this.#outdateWhenEnded(await this.#marks.decided.awaitVisible(this.#awaitVisible));
  }

  /** True if the callers still belong to one audience: definitions that changed with or before the run may separate them. */
  async #isSameAudience({ subscribers, dependencies }: LiveQueryResult): Promise<boolean> {
    const claims = new Set([...subscribers].map(({ source }) => source.caller.claimsText));
    if (claims.size <= 1) return true;
    return (await readFingerprint(this.#options.asOwner, dependencies.deciding)) === dependencies.fingerprint;
  }

  /** Each subscriber gets a result by the new definitions, and then what has changed from the last one that it was sent. */
  #regroup(result: LiveQueryResult, xids: readonly number[] = []): true {
    this.#dependencies.forget();
    const subscribers = [...result.subscribers];
    for (const subscriber of subscribers) {
      subscriber.result = null;
      result.subscribers.delete(subscriber);
    }
    this.#drop(result);
    const newXids = [...xids, ...result.takeXids()];
    for (const subscriber of subscribers) subscriber.attaching = this.#attachAgain(subscriber, newXids);
    return true;
  }

  async #attachAgain(subscriber: LiveSubscriber, xids: readonly number[]): Promise<void> {
    for (let failures = 0; !this.#isClosed && !subscriber.isClosed; ) {
      try {
        await this.#attach(subscriber, "again");
        subscriber.commit(xids);
        return subscriber.wake();
      } catch (error) {
        if (!mayRunAgain(error, ++failures)) return subscriber.fail(error);
        await sleep(RETRY_MS);
      }
    }
  }

  #end(result: LiveQueryResult, error: unknown): void {
    const subscribers = [...result.subscribers];
    this.#drop(result);
    this.#options.log.warn({ err: error, position: formatLsn(result.markedAt) }, "a live query has ended");
    for (const subscriber of subscribers) subscriber.fail(error);
  }
}

function textsOf(statements: LiveResult["statements"]): string[] {
  return statements.map(({ statement }) => statement.text);
}
