import { setTimeout as sleep } from "node:timers/promises";
import type { Caller } from "#accounts/identity";
import type { ShownRows } from "#planner";
import type { AsOwner, Database, Lsn, PrimarySnapshot, Statement, StatementContext } from "#postgres/database";
import { RecentMap } from "#runtime";
import type { PeerWorkers } from "#runtime/concurrency";
import type { Logger } from "#runtime/log";
import type { ChangeFollower, CommittedTransaction, ReplicationStream } from "../changes.ts";
import type { ChangeFilter } from "../queries/affected-rows.ts";
import { ChangeMarks } from "../queries/change-marks.ts";
import { DependencyCache } from "../queries/dependency-cache.ts";
import { claimsKey } from "../queries/policy-dependencies.ts";
import { contentsOf, filtersOf, isReadOnce } from "../queries/result-contents.ts";
import { RunningTransactions } from "../queries/running-transactions.ts";
import { isTransactionVisible, makeAwaitVisible } from "../transaction-visibility.ts";
import { CachedResult } from "./cached-result.ts";
import { cacheObstacleOf, type KnownStatement, KnownStatements } from "./known-statements.ts";
import { UnseenTransactions } from "./unseen-transactions.ts";
import { WritePositions } from "./write-positions.ts";

/** For keys of results that were read once; the second read while they are known fills the cache. */
const MAX_CANDIDATE_BYTES = 8 * 2 ** 20;
const CANDIDATE_BYTES = 100;
/** Of the whole cache: larger results are not kept. */
const MAX_SHARE = 1 / 8;
/** Between attempts to follow a stream that the database refuses. */
const REFUSED_PAUSE_MS = 30_000;
const RETRY_MS = 100;
const TIME_WORD = /\b(?:now|today|tomorrow|yesterday)\b/i;

type ResultCacheOptions = {
  readonly asOwner: AsOwner;
  readonly database: Pick<Database, "run">;
  readonly changes: ReplicationStream;
  readonly publication: string;
  readonly peers: PeerWorkers;
  readonly maxBytes: number;
  readonly log: Pick<Logger, "info" | "warn">;
};

/** A statement that only reads, for a caller. */
export type CachedQuery = {
  readonly statement: Statement;
  readonly context: StatementContext;
  readonly caller: Caller;
  /** How the result shows the rows that are read; empty if it is not known. */
  shownRows(): readonly ShownRows[];
};

/** What a run has read. */
export type SnapshotRead<Value> = {
  readonly value: Value;
  /** That of the statement includes this one. Null: the result is not to be kept. */
  readonly snapshot: PrimarySnapshot | null;
  readonly bytes: number;
  /** The shown rows as JSON; null for another body. */
  readonly text: string | null;
};

type QueryRunner<Value> = {
  /** Runs the statement on the primary, and reads its snapshot. */
  runInSnapshot(): Promise<SnapshotRead<Value>>;
  run(): Promise<Value>;
};

export type CacheOutcome = "hit" | "miss" | "off";

export type CacheRead<Value> = {
  readonly value: Value;
  readonly outcome: CacheOutcome;
  /** What the value was read from; null unless it is in the cache. */
  readonly result: CachedResult | null;
};

type Load = {
  readonly result: CachedResult;
  readonly shown: readonly ShownRows[];
  /** The claims that it runs with. */
  readonly claimsText: string;
  /** Transactions that the stream had delivered when it began, and that its snapshot may not include. */
  readonly unseen: readonly number[];
  readonly epoch: number;
  readonly reading: Promise<SnapshotRead<unknown>>;
  /** Null while it is read. */
  snapshot: string | null;
  /** Resolves when the result is in the cache, or is not kept. */
  ended: Promise<void>;
};

type CacheStatistics = {
  readonly entries: number;
  readonly bytes: number;
  readonly hits: number;
  readonly misses: number;
  /** Reads of what is not kept, or not at that moment. */
  readonly passed: number;
  /** Results that commits have dropped. */
  readonly dropped: number;
};

/**
 * Results of statements, for callers of one audience. A result is kept only if its snapshot has every commit that the change stream has
 * delivered and that affects it, and is dropped with the first one that comes after.
 */
export class ResultCache {
  readonly #options: ResultCacheOptions;
  readonly #dependencies: DependencyCache;
  readonly #statements = new KnownStatements();
  readonly #candidates = new RecentMap<string, true>(MAX_CANDIDATE_BYTES, (key) => CANDIDATE_BYTES + 2 * key.length);
  readonly #marks: ChangeMarks<CachedResult>;
  readonly #unseen: UnseenTransactions;
  readonly #transactions: RunningTransactions;
  readonly #awaitVisible: ReturnType<typeof makeAwaitVisible>;
  readonly #writes: WritePositions;
  /** In the order of their turn to be evicted. */
  readonly #results = new Map<string, CachedResult>();
  readonly #loads = new Map<string, Load>();
  #counts = { hits: 0, misses: 0, passed: 0, dropped: 0 };
  #bytes = 0;
  /** Grows when everything is dropped. */
  #epoch = 0;
  /** Grows when the stream is interrupted, or followed anew. */
  #followed = 0;
  #following: Promise<void> | null = null;
  #close: (() => void) | null = null;
  /** Whether every commit from now on is reported. */
  #isComplete = false;
  #definitionXids = new Set<number>();
  #isSettling = false;
  /** Writes of this service up to here are not older than what is read. */
  #floor: Lsn = 0n;
  #isFloorPassed = true;
  #isClosed = false;

  constructor(options: ResultCacheOptions) {
    const { asOwner, changes, publication, peers } = options;
    this.#options = options;
    this.#dependencies = new DependencyCache(asOwner, publication);
    this.#transactions = new RunningTransactions(asOwner);
    this.#unseen = new UnseenTransactions(() => this.#transactions.readSnapshot());
    this.#awaitVisible = makeAwaitVisible(asOwner, () => changes.state().history?.timeline ?? null);
    this.#writes = new WritePositions({ asOwner, peers, onWrite: (position) => this.#require(position) });
    this.#marks = new ChangeMarks<CachedResult>({
      onMarked: () => this.#dropMarked(),
      onDefinitions: (transaction) => this.#redefine(transaction),
      onMissed: () => this.#restart(),
    });
  }

  statistics(): CacheStatistics {
    return { ...this.#counts, entries: this.#results.size, bytes: this.#bytes };
  }

  /** Whether what is kept may be read now, and is not older than the position. */
  serves(atLeast: Lsn | null): boolean {
    if (atLeast === null || !this.#isComplete || this.#isSettling) return false;
    const { changes } = this.#options;
    if (!this.#isFloorPassed) {
      this.#isFloorPassed = changes.hasPassed(this.#floor);
      if (!this.#isFloorPassed) return false;
    }
    return atLeast === 0n || changes.hasPassed(atLeast);
  }

  /** To be called when a result is read that was found by other means than its statement. */
  hit(result: CachedResult): void {
    result.isUsed = true;
    result.hits++;
    this.#counts.hits++;
  }

  /** What was made of a result is dropped with it. False: it is not to be kept. */
  attach(result: CachedResult, bytes: number, onDropped: () => void): boolean {
    const isAttached = result.attach(bytes, onDropped);
    if (!isAttached) return false;
    this.#bytes += bytes;
    this.#evict();
    return result.isCurrent;
  }

  async read<Value>(query: CachedQuery, runner: QueryRunner<Value>): Promise<CacheRead<Value>> {
    const statement = this.#statements.of(query.statement, query.context);
    const { dependencies } = statement;
    const isKept = dependencies && cacheObstacleOf(dependencies) === null && !hasUnkeptValue(query.statement);
    if (!isKept) {
      if (!dependencies) this.#learn(statement, query);
      return this.#pass(runner);
    }
    const audience = claimsKey(query.caller, dependencies.claims);
    const key = JSON.stringify([statement.number, query.statement.values, audience]);
    const { readYourWrites } = query.context;
    const atLeast = readYourWrites ? readYourWrites.minLsn : 0n;
    if (!this.serves(atLeast)) return this.#pass(runner);
    const found = this.#find<Value>(key);
    if (found) return found;
    const loading = this.#loads.get(key);
    if (loading && !mayLackCommits(loading)) {
      const joined = await this.#join<Value>(loading, query.caller, atLeast);
      return joined ?? this.#pass(runner);
    }
    if (!statement.isKept) return this.#pass(runner);
    if (!this.#candidates.has(key)) {
      this.#candidates.set(key, true);
      return this.#pass(runner);
    }
    this.#counts.misses++;
    return { value: await this.#load(key, audience, statement, query, runner), outcome: "miss", result: null };
  }

  #find<Value>(key: string): CacheRead<Value> | null {
    const found = this.#results.get(key);
    if (!found) return null;
    this.hit(found);
    return { value: found.value as Value, outcome: "hit", result: found };
  }

  /** Null if the run of the other caller is of no use. */
  async #join<Value>(load: Load, caller: Caller, atLeast: Lsn | null): Promise<CacheRead<Value> | null> {
    if (load.claimsText !== caller.claimsText) {
      // While definitions change, callers whose audience was the same may read different rows: that is compared before a result is kept.
      await load.ended;
      return this.serves(atLeast) ? this.#find<Value>(load.result.key) : null;
    }
    // What was streamed has one reader, and a refusal may be that of the caller that was first.
    const read = await load.reading.catch(() => null);
    if (!read || read.snapshot === null) return null;
    this.#counts.hits++;
    return { value: read.value as Value, outcome: "hit", result: null };
  }

  /** To be called after each commit of this process, before it is acknowledged. */
  recordWrite(): Promise<Lsn | null> {
    return this.#writes.record();
  }

  /** To be called when definitions are found changed that the stream has perhaps not reported. */
  forget(): void {
    this.#dependencies.forget();
    this.#statements.forget();
    this.#dropAll();
  }

  close(): void {
    this.#isClosed = true;
    this.#isComplete = false;
    this.#dropAll();
    this.#close?.();
  }

  async #pass<Value>({ run }: QueryRunner<Value>): Promise<CacheRead<Value>> {
    this.#counts.passed++;
    return { value: await run(), outcome: "off", result: null };
  }

  #learn(statement: KnownStatement, query: CachedQuery): void {
    void this.#follow();
    if (this.#isComplete && !this.#isSettling) statement.ran(query, this.#dependencies);
  }

  async #load<Value>(
    key: string,
    audience: string,
    statement: KnownStatement,
    query: CachedQuery,
    { runInSnapshot }: QueryRunner<Value>,
  ): Promise<Value> {
    const dependencies = statement.dependencies!;
    const isUsed = ({ relation }: ChangeFilter) => isReadOnce(dependencies.relations, relation);
    const run = (each: Statement) => this.#options.database.run(query.context, each, { readOnly: true });
    const shown = query.shownRows();
    const filters = [...filtersOf(shown).filter(isUsed), ...statement.policyFilters(audience, run)];
    const result = new CachedResult(key, audience, { statement, dependencies, filters });
    const [unseen, epoch] = [this.#unseen.xids, this.#epoch];
    this.#marks.track(result);
    const reading = runInSnapshot();
    const { claimsText } = query.caller;
    const load: Load = { result, shown, claimsText, unseen, epoch, reading, snapshot: null, ended: Promise.resolve() };
    this.#loads.set(key, load);
    const end = () => {
      if (this.#loads.get(key) === load) this.#loads.delete(key);
      if (result.isCurrent) return;
      this.#marks.remove(result);
      // What is never read costs as much as what commits drop unread.
      statement.dropped(0);
    };
    load.ended = reading.then((read) => this.#keep(load, read)).then(end, end);
    return (await reading).value;
  }

  async #keep(load: Load, { value, bytes, snapshot: taken, text }: SnapshotRead<unknown>): Promise<void> {
    // During a failover, a server may answer whose changes are not in the stream.
    if (taken === null || taken.timeline !== this.#options.changes.state().history?.timeline) return;
    const { snapshot } = taken;
    this.#unseen.saw(snapshot);
    load.snapshot = snapshot;
    const { result, shown, epoch } = load;
    const { dependencies } = result;
    const isComplete = () => this.#epoch === epoch && !mayLackCommits(load);
    result.accept(value, bytes);
    if (!isComplete() || result.bytes > this.#options.maxBytes * MAX_SHARE) return;
    // From now on its rows decide which commits affect it.
    const contents = text === null ? null : contentsOf({ text, shown }, dependencies);
    this.#marks.setContents(result, contents);
    result.countContents(contents);
    // Definitions may have changed that the stream has not reported yet: then the audience may be another one.
    if (!(await this.#dependencies.areCurrent(dependencies))) return this.forget();
    if (isComplete()) this.#add(result);
  }

  #add(result: CachedResult): void {
    const older = this.#results.get(result.key);
    if (older) this.#remove(older);
    result.isCurrent = true;
    this.#results.set(result.key, result);
    this.#bytes += result.bytes;
    this.#evict();
  }

  #evict(): void {
    for (const [, oldest] of this.#results) {
      if (this.#bytes <= this.#options.maxBytes) return;
      this.#results.delete(oldest.key);
      if (oldest.isUsed) {
        oldest.isUsed = false;
        this.#results.set(oldest.key, oldest);
      } else this.#forgetResult(oldest);
    }
  }

  #remove(result: CachedResult): void {
    this.#results.delete(result.key);
    this.#forgetResult(result);
  }

  #forgetResult(result: CachedResult): void {
    this.#bytes -= result.bytes;
    this.#marks.remove(result);
    result.drop();
  }

  #dropMarked(): void {
    // No result is run again: each is read anew, in a snapshot that is compared with the stream.
    this.#marks.decided.clear();
    for (const [result, { xids }] of this.#marks.take().list()) {
      if (result.isCurrent) {
        this.#counts.dropped++;
        result.statement.dropped(result.hits);
        this.#remove(result);
      } else result.addXids(xids);
    }
  }

  #dropAll(): void {
    this.#epoch++;
    this.#loads.clear();
    this.#counts.dropped += this.#results.size;
    for (const result of [...this.#results.values()]) this.#remove(result);
  }

  #require(position: Lsn | null): void {
    if (position === null) this.#dropAll();
    else if (position > this.#floor) {
      this.#floor = position;
      this.#isFloorPassed = false;
    }
  }

  #follow(): Promise<void> {
    this.#following ??= this.#followStream();
    return this.#following;
  }

  async #followStream(): Promise<void> {
    const { changes, log } = this.#options;
    try {
      const subscription = changes.follow(this.#follower());
      this.#close = () => subscription.close();
      await subscription.from;
      await this.#begin();
    } catch (error) {
      if (this.#isClosed) return;
      log.warn({ err: error }, "results are not cached: the changes of the database cannot be followed");
      this.#close?.();
      await sleep(REFUSED_PAUSE_MS, undefined, { ref: false });
      this.#following = null;
    }
  }

  #follower(): ChangeFollower {
    const marks = this.#marks;
    return {
      wants: (relation) => marks.wants(relation),
      announce: ({ xid }) => this.#unseen.add(xid),
      interrupted: () => this.#interrupt(),
      resumed: () => void this.#begin(),
      begin: (transaction) => marks.begin(transaction),
      change: (change) => marks.change(change),
      commit: (transaction) => marks.commit(transaction),
      message: (message) => marks.message(message),
      gap: () => marks.gap(),
      rewind: () => marks.rewind(),
    };
  }

  #interrupt(): void {
    this.#isComplete = false;
    this.#followed++;
    this.#dropAll();
    // What is kept from now on is newer. After a failover, the log may not reach that position for long.
    this.#floor = 0n;
    this.#isFloorPassed = true;
  }

  #restart(): void {
    this.#interrupt();
    // On another timeline there may be no such transactions.
    this.#unseen.clear();
    void this.#begin();
  }

  /** What is read from now on has all commits that the stream has delivered before, but for those of transactions that run now. */
  async #begin(): Promise<void> {
    const followed = ++this.#followed;
    this.#dropAll();
    // A stream that has stalled begins again.
    while (this.#options.changes.hasPassed(0n)) {
      const read = await this.#transactions.read().catch(() => null);
      if (this.#followed !== followed || this.#isClosed) return;
      if (read !== null) {
        for (const xid of read.running) this.#unseen.add(xid);
        this.#isComplete = true;
        return;
      }
      await sleep(RETRY_MS, undefined, { ref: false });
    }
  }

  #redefine(transaction: CommittedTransaction | null): void {
    this.forget();
    if (transaction) this.#definitionXids.add(transaction.xid);
    if (!this.#isSettling) void this.#settle();
  }

  /** Until snapshots include the change, what a statement depends on may be read as it was before. */
  async #settle(): Promise<void> {
    this.#isSettling = true;
    while (this.#definitionXids.size > 0 && !this.#isClosed) {
      const xids = this.#definitionXids;
      this.#definitionXids = new Set();
      const invisible = await this.#awaitVisible(xids);
      for (const xid of invisible) this.#definitionXids.add(xid);
    }
    this.forget();
    this.#isSettling = false;
  }
}

/** Whether a commit was delivered that may affect the result, and that its run may not include. */
function mayLackCommits({ result, unseen, snapshot }: Load): boolean {
  const isIncluded = (xid: number) => snapshot !== null && isTransactionVisible(xid, snapshot);
  return !unseen.every(isIncluded) || !result.xids.values().every(isIncluded);
}

/** Bytes are large, and Postgres reads the time from words such as `now` where a type has times. */
function hasUnkeptValue({ values }: Statement): boolean {
  return values.some((value) => Buffer.isBuffer(value) || TIME_WORD.test(String(value)));
}
