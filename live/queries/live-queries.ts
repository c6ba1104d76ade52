import { setTimeout as sleep } from "node:timers/promises";
import type { AsOwner, Database, Lsn } from "#postgres/database";
import { unavailable } from "#runtime";
import type { Logger } from "#runtime/log";
import { DefinitionWatch } from "../dependencies/definition-changes.ts";
import { DependencyCache } from "../dependencies/dependency-cache.ts";
import type { ChangeSubscription, ReplicationStream } from "../stream/changes.ts";
import { ChangeMarks } from "./change-marks.ts";
import { CommitDelivery } from "./commit-delivery.ts";
import { CommitVisibility } from "./commit-visibility.ts";
import { LIVE_LIMITS, mostQueriesFor, refuseUnfit, tooManyQueries } from "./live-limits.ts";
import { type LiveQueryResult, type LiveSource, LiveSubscriber, type LiveSubscription } from "./live-subscriber.ts";
import { OpenOfCallers } from "./open-of-callers.ts";
import { type OpenedQuery, QueryOpener } from "./query-opener.ts";
import { mayRunAgain, RerunQueue } from "./rerun-queue.ts";
import { makeResultActions } from "./result-actions.ts";
import { contentsOf } from "./result-contents.ts";
import { RunningTransactions } from "./running-transactions.ts";
import { SharedOpenings } from "./shared-openings.ts";
import { type ResultActions, SharedResult } from "./shared-result.ts";
import { SharedResults } from "./shared-results.ts";
import { tableRowsOf } from "./table-rows.ts";

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

/** `snapshot`: read at that time, from `performance.now()`. */
type JoinedQuery = { readonly key: string; readonly snapshot: string; readonly readAt: number };

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
  readonly #changes: ReplicationStream;
  readonly #definitions: DefinitionWatch;
  readonly #dependencies: DependencyCache;
  readonly #transactions: RunningTransactions;
  readonly #marks: ChangeMarks;
  readonly #delivery: CommitDelivery;
  readonly #opener: QueryOpener;
  readonly #reruns: RerunQueue;
  readonly #actions: ResultActions<LiveQueryResult>;
  readonly #results = new SharedResults();
  readonly #openings = new SharedOpenings();
  readonly #subscribers = new Set<LiveSubscriber>();
  readonly #openOfCallers = new OpenOfCallers();
  #runs = 0;
  #stream: { readonly subscription: ChangeSubscription; readonly opened: Promise<Lsn> } | null = null;
  #isClosed = false;

  constructor(options: LiveQueriesOptions) {
    const { asOwner, changes, database, publication, reloadDefinitions, log } = options;
    const results = this.#results;
    const definitions = new DefinitionWatch(asOwner);
    const dependencies = new DependencyCache(asOwner, publication);
    const transactions = new RunningTransactions(asOwner);
    this.#changes = changes;
    this.#definitions = definitions;
    this.#dependencies = dependencies;
    this.#transactions = transactions;
    this.#reruns = new RerunQueue(() => database.countStatements());
    const marks = new ChangeMarks({
      onMarked: () => this.#delivery.start(),
      onDefinitionsChanged: (transaction) => this.#delivery.review(transaction),
      onUncertain: () => this.#delivery.outdateAll(),
    });
    this.#marks = marks;
    const visibility = new CommitVisibility({
      asOwner,
      streamTimeline: () => changes.state().history?.timeline ?? null,
      decided: marks.decided,
      transactions,
      onLate: () => this.#delivery.outdateAll(),
    });
    this.#delivery = new CommitDelivery({
      marks,
      results,
      visibility,
      definitions,
      dependencies,
      reloadDefinitions,
      log,
    });
    this.#opener = new QueryOpener({
      database,
      transactions,
      openings: marks.openings,
      position: () => changes.state().position ?? marks.position,
    });
    this.#actions = makeResultActions({
      asOwner,
      marks,
      results,
      reruns: this.#reruns,
      visibility,
      dependencies,
      log,
      pause: () => sleep(RETRY_MS),
      onRun: () => this.#runs++,
      onForgotten: () => this.#closeUnusedStream(),
      reopen: (subscriber, xids) => this.#attachAgain(subscriber, xids),
    });
  }

  get size(): number {
    return this.#subscribers.size;
  }

  statistics(): LiveStatistics {
    return { queries: this.size, results: this.#results.size, bytes: this.#results.bytes, runs: this.#runs };
  }

  /** Opens a live query; refuses one that cannot be live. `since`: the position of the last event that the client has. */
  async open(source: LiveSource, since: Lsn | null = null): Promise<LiveSubscription> {
    this.#refuseTooMany(source);
    const subscriber = new LiveSubscriber(source, () => this.#remove(subscriber));
    this.#subscribers.add(subscriber);
    this.#openOfCallers.add(source.quotaKey);
    try {
      await this.#attachFirst(subscriber);
      if (since !== null)
        subscriber.continueFrom(subscriber.result?.versionOf(since, source.caller.claimsText) ?? null);
      return subscriber;
    } catch (error) {
      subscriber.close();
      throw error;
    }
  }

  /** Call when definitions are found changed, and loaded, and the stream may not have reported it. */
  reviewDefinitions(): void {
    this.#delivery.reviewLoaded();
  }

  /** Ends all queries; their clients connect again, to this service or another one. */
  endAll(): void {
    this.#isClosed = true;
    this.#delivery.stop();
    for (const subscriber of [...this.#subscribers]) subscriber.close();
    for (const result of this.#results.list()) void result.handle("expired");
    this.#closeStream();
  }

  #refuseTooMany({ quotaKey, caller }: LiveSource): void {
    const { ofCaller, all, allBytes } = LIVE_LIMITS;
    if (this.#openOfCallers.of(quotaKey) >= ofCaller) throw tooManyQueries(ofCaller, "a caller");
    if (this.#isClosed) throw unavailable("The service stops: connect again.");
    const isFull = this.#subscribers.size >= mostQueriesFor(caller);
    if (isFull || this.#results.bytes > allBytes) throw tooManyQueries(all, "the service");
  }

  #remove(subscriber: LiveSubscriber): void {
    this.#subscribers.delete(subscriber);
    this.#openOfCallers.remove(subscriber.source.quotaKey);
    this.#closeUnusedStream();
  }

  /** Equal queries of an audience that are opened together run once, if it is known before who shares their result. */
  async #attachFirst(subscriber: LiveSubscriber): Promise<void> {
    await this.#openStream();
    await this.#definitions.begin();
    const key = await this.#sharedKey(subscriber.source);
    if (key === null) return this.#attach(subscriber, "first");
    const { snapshot } = await this.#transactions.read();
    const readAt = performance.now();
    const join = () => this.#join(subscriber, { key, snapshot, readAt });
    if (await join()) return;
    const isFirst = await this.#openings.beFirst(key, () => this.#attach(subscriber, "first"));
    if (!isFirst && !(await join())) await this.#attach(subscriber, "first");
  }

  /** Null if the result is not shared, or if a run has to show who shares it. */
  async #sharedKey(source: LiveSource): Promise<string | null> {
    if (!source.statement || source.isPrivate) return null;
    const dependencies = await this.#dependencies.of([source.statement]);
    const isShared = dependencies.obstacles.length === 0 && !dependencies.readsRequest;
    return isShared ? this.#opener.keyOf(source, dependencies) : null;
  }

  /** Joins the result, as of a run that began after the snapshot was read. Returns false if there is none. */
  async #join(subscriber: LiveSubscriber, { key, snapshot, readAt }: JoinedQuery): Promise<boolean> {
    const result = this.#results.get(key);
    if (!result || subscriber.isClosed) return subscriber.isClosed;
    subscriber.join(result);
    if (!result.hasRunSince(readAt)) await result.refresh();
    subscriber.source.onSnapshot?.(snapshot);
    return true;
  }

  /** Finds or makes the result of the subscriber's audience. */
  async #attach(subscriber: LiveSubscriber, time: "first" | "again"): Promise<void> {
    const { source } = subscriber;
    await this.#openStream();
    await this.#definitions.begin();
    const open = () => this.#opener.open(source);
    const opened = await (time === "first" ? open() : this.#reruns.run(source.quotaKey, open));
    const { first, milliseconds, snapshot, opening } = opened;
    try {
      if (first.missing && time === "first") throw first.missing;
      const dependencies = await this.#dependencies.of(first.statements);
      refuseUnfit(first, { source, dependencies }, time === "again" ? 0 : milliseconds);
      const key = this.#opener.keyOf(source, dependencies);
      const filters = this.#results.get(key) ? [] : await this.#opener.filtersOf(source, first, dependencies);
      if (subscriber.isClosed) return this.#closeUnusedStream();
      const existing = this.#results.get(key);
      const tableRows = tableRowsOf(source, dependencies);
      const result = existing ?? this.#make(key, opened, { dependencies, filters, tableRows });
      this.#marks.openings.end(opening);
      subscriber.join(result);
      // A caller that joins gets nothing older than its own first run.
      if (existing && !existing.isCurrent(first.text)) await existing.refresh();
      source.onSnapshot?.(snapshot);
      if (opening.isOutdated) void result.handle("outdated");
    } finally {
      this.#marks.openings.end(opening);
    }
  }

  async #attachAgain(subscriber: LiveSubscriber, xids: readonly number[]): Promise<void> {
    for (let failures = 0; !subscriber.isClosed; ) {
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

  #make(
    key: string,
    { first, startedAt, running, opening }: OpenedQuery,
    definition: Pick<LiveQueryResult, "dependencies" | "filters" | "tableRows">,
  ): LiveQueryResult {
    const { position } = opening;
    const result: LiveQueryResult = new SharedResult(
      key,
      { ...definition, statements: first.statements.map(({ statement }) => statement.text), running },
      { ...first, position, startedAt, contents: contentsOf(first, definition.dependencies) },
      this.#actions,
    );
    this.#results.add(result);
    if (this.#marks.add(result, opening)) void result.handle("noted");
    // Transactions that ran then may precede it in the stream, but are not in its snapshot.
    this.#transactions.whenEnded(running, {
      isNeeded: () => result.state !== "closed",
      onEnded: (ended) => {
        result.endTransactions(ended);
        if (ended.values().some((xid) => !this.#marks.openings.hasReadSince(opening, xid)))
          void result.handle("committed");
      },
    });
    return result;
  }

  async #openStream(): Promise<void> {
    if (!this.#stream) {
      const subscription = this.#changes.follow(this.#marks);
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
}
