import type { Lsn } from "#postgres/database";
import { RecentMap } from "#runtime";
import type {
  ChangeFollower,
  CommittedTransaction,
  LogicalMessage,
  ReplicatedRelation,
  RowChange,
} from "../stream/changes.ts";
import { DecidedTransactions } from "../stream/transaction-visibility.ts";
import { AffectedResults } from "./affected-results.ts";
import { conditionsOf, isAffected, isNeverAffected, type ResultContents } from "./affected-rows.ts";
import { type LiveQueryResult, RelationResults } from "./relation-results.ts";

/** The prefix of the message that the database writes to the stream with each change of definitions. */
const SCHEMA_CHANGED_PREFIX = "schema";

/** The limit for all queries that are being opened; for later changes only the relations are noted. */
const MAX_NOTED_CHANGES = 5_000;
/** The last transactions of the stream that are remembered. */
const KEPT_TRANSACTIONS = 20_000;

/** The changes of a transaction, for queries that are being opened and whose dependencies are not known yet. */
class NotedTransaction {
  readonly #relations = new Set<number>();
  readonly #changes: RowChange[] = [];
  #hasMore = false;
  /** Null until it is complete. */
  transaction: CommittedTransaction | null = null;

  /** `isKept`: whether there is room for the row. */
  add(change: RowChange, isKept: boolean): void {
    this.#relations.add(change.relation.oid);
    if (isKept) this.#changes.push(change);
    else this.#hasMore = true;
  }

  affects(result: LiveQueryResult): boolean {
    return result.dependencies.relations.some(({ oid }) => {
      if (!this.#relations.has(oid)) return false;
      if (this.#hasMore) return true;
      if (isNeverAffected(result, oid)) return false;
      const ofRelation = Map.groupBy(
        this.#changes.filter(({ relation }) => relation.oid === oid),
        ({ relation }) => relation,
      );
      return [...ofRelation].some(([relation, changes]) => {
        const conditions = conditionsOf(result, relation);
        return changes.some((change) => isAffected(change, conditions));
      });
    });
  }
}

/** A query that is being opened, with the commits since then; `isOutdated`: definitions have changed. */
export type OpeningQuery = {
  /** The position of the stream when the opening began. */
  readonly position: Lsn;
  /** The time of the start, from `performance.now()`. */
  readonly startedAt: number;
  readonly number: number;
  readonly noted: NotedTransaction[];
  isOutdated: boolean;
};

type MarkEvents = {
  /** There are results to take. */
  onMarked(): void;
  /** Definitions have changed. Null: perhaps, at an unknown position. */
  onDefinitions(transaction: CommittedTransaction | null): void;
  /** Changes were missed. */
  onMissed(): void;
};

/** Finds the results that a commit affects, by the relations that they depend on. */
export class ChangeMarks implements ChangeFollower {
  readonly #events: MarkEvents;
  readonly #resultsByRelation = new Map<number, RelationResults>();
  readonly #openings = new Set<OpeningQuery>();
  /** The results that the transaction being read affects. */
  #changed = new AffectedResults();
  #noted = new NotedTransaction();
  #notedCount = 0;
  #isReadWhole = false;
  /** The xid of the transaction that is being read. */
  #xid = 0;
  #changeCount = 0;
  /** Grows with each transaction and each opening. */
  #number = 0;
  #numberOfTransaction = 0;
  /** The numbers of transactions that were read from their first change on, by xid. */
  readonly #numbers = new RecentMap<number, number>(KEPT_TRANSACTIONS);
  /** The results that commits affect, until they are taken. */
  #marked = new AffectedResults();
  /** True if contents have decided about changes of the transaction that is being read. */
  #usesContents = false;
  readonly decided = new DecidedTransactions();
  /** How often changes were missed, or perhaps lost with a server. */
  gaps = 0;
  /** The last commit of the stream that was of interest. */
  position: Lsn = 0n;

  constructor(events: MarkEvents) {
    this.#events = events;
  }

  /** Notes all changes from now on, because the dependencies of the query are not known yet. */
  beginOpening(position: Lsn): OpeningQuery {
    const startedAt = performance.now();
    const opening = { position, startedAt, number: ++this.#number, noted: [], isOutdated: false };
    this.#openings.add(opening);
    return opening;
  }

  endOpening(opening: OpeningQuery): void {
    this.#openings.delete(opening);
    opening.noted.length = 0;
    if (this.#openings.size === 0) this.#notedCount = 0;
  }

  /** Outdates all openings: their dependencies may have been read before definitions changed. */
  outdateOpenings(): void {
    for (const opening of this.#openings) opening.isOutdated = true;
  }

  /** True if all changes of the transaction came after the opening had begun. */
  hasReadSince(opening: OpeningQuery["number"], xid: number): boolean {
    return (this.#numbers.get(xid) ?? 0) > opening;
  }

  /** Adds the result of a query that was opened. Returns true if the result may be older than commits in the meantime. */
  add(result: LiveQueryResult, { noted }: OpeningQuery): boolean {
    if (result.contents) {
      for (const { transaction } of noted) this.decided.add(transaction!.xid);
      this.#usesContents = true;
    }
    const affecting = noted.filter((each) => each.affects(result));
    for (const { transaction } of affecting) this.#marked.addResults([result], transaction!);
    if (affecting.length > 0) this.#events.onMarked();
    if (this.#noted.affects(result)) this.#changed.add(result);
    this.track(result);
    return affecting.length > 0;
  }

  /** Lets commits mark the result from now on. The commit that is being read may or may not mark it. */
  track(result: LiveQueryResult): void {
    for (const oid of relationsOf(result)) {
      const results = this.#resultsByRelation.get(oid) ?? new RelationResults(oid);
      results.add(result);
      this.#resultsByRelation.set(oid, results);
    }
  }

  remove(result: LiveQueryResult): void {
    this.#changed.remove(result);
    this.#marked.remove(result);
    for (const oid of relationsOf(result)) {
      const results = this.#resultsByRelation.get(oid);
      results?.remove(result);
      if (results?.isEmpty) this.#resultsByRelation.delete(oid);
    }
  }

  /** Call with null when a run begins, and later with the contents of its result. */
  setContents(result: LiveQueryResult, contents: ResultContents | null): void {
    if (!contents && !result.contents) return;
    const relations = [...relationsOf(result)].flatMap((oid) => this.#resultsByRelation.get(oid) ?? []);
    const isRemoved = !relations.every((each) => each.has(result));
    if (isRemoved) return;
    this.#changed.keep(result);
    this.#marked.keep(result);
    for (const each of relations) each.remove(result);
    result.contents = contents;
    for (const each of relations) each.add(result);
  }

  mark(result: LiveQueryResult): void {
    this.#marked.add(result);
    this.#events.onMarked();
  }

  /** The results that are to be run again. */
  take(): AffectedResults {
    const marked = this.#marked;
    this.#marked = new AffectedResults();
    return marked;
  }

  wants({ oid }: ReplicatedRelation): boolean {
    return this.#openings.size > 0 || this.#resultsByRelation.has(oid);
  }

  begin({ xid }: CommittedTransaction): void {
    this.#xid = xid;
    this.#changed = new AffectedResults();
    this.#noted = new NotedTransaction();
    this.#numberOfTransaction = ++this.#number;
    this.#isReadWhole = false;
    this.#usesContents = false;
  }

  change(change: RowChange): void {
    const { oid } = change.relation;
    if (change.index === 0) this.#isReadWhole = true;
    if (this.#openings.size > 0) this.#noted.add(change, ++this.#notedCount <= MAX_NOTED_CHANGES);
    const results = this.#resultsByRelation.get(oid);
    if (!results) return;
    if (results.dependsOnContents) this.#usesContents = true;
    this.#changed.addChange({ xid: this.#xid, number: ++this.#changeCount, change }, results);
  }

  commit(transaction: CommittedTransaction): void {
    this.position = transaction.commitLsn;
    if (this.#isReadWhole) this.#numbers.set(transaction.xid, this.#numberOfTransaction);
    const noted = this.#noted;
    noted.transaction = transaction;
    for (const opening of this.#openings) opening.noted.push(noted);
    this.#noted = new NotedTransaction();
    if (this.#usesContents) this.decided.add(transaction.xid);
    if (this.#changed.isEmpty && !this.decided.areMany) return;
    if (!this.#changed.isEmpty) this.#marked.addCommit(this.#changed, transaction);
    this.#events.onMarked();
  }

  message({ prefix, transaction }: LogicalMessage): void {
    if (prefix === SCHEMA_CHANGED_PREFIX) this.#events.onDefinitions(transaction);
  }

  gap(): void {
    this.gaps++;
    this.#marked.forgetChanges();
    this.decided.clear();
    this.#events.onMissed();
  }

  rewind(): boolean {
    this.gap();
    return true;
  }
}

function relationsOf({ dependencies }: LiveQueryResult): ReadonlySet<number> {
  return new Set(dependencies.relations.map(({ oid }) => oid));
}
