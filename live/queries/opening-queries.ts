import type { Lsn } from "#postgres/database";
import { RecentMap } from "#runtime";
import { conditionsOf, isAffected, isNeverAffected } from "../matching/affected-rows.ts";
import type { CommittedTransaction, RowChange } from "../stream/changes.ts";
import type { LiveQueryResult } from "./live-subscriber.ts";

/** The limit for all queries that are being opened; for later changes only the relations are noted. */
const MAX_NOTED_CHANGES = 5_000;
/** The last transactions of the stream that are remembered. */
const KEPT_TRANSACTIONS = 20_000;

/** The changes of a transaction, for queries that are being opened and whose dependencies are not known yet. */
class NotedTransaction {
  readonly #relations = new Set<number>();
  readonly #changes: RowChange[] = [];
  #hasMore = false;

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

type NotedCommit = { readonly transaction: CommittedTransaction; readonly noted: NotedTransaction };

/** A query that is being opened, with the commits since then. */
export class OpeningQuery {
  /** The position of the stream when the opening began. */
  readonly position: Lsn;
  readonly number: number;
  readonly #commits: NotedCommit[] = [];
  #isOutdated = false;

  constructor(position: Lsn, number: number) {
    this.position = position;
    this.number = number;
  }

  get commits(): readonly NotedCommit[] {
    return this.#commits;
  }

  /** True if its dependencies may have been read before definitions changed. */
  get isOutdated(): boolean {
    return this.#isOutdated;
  }

  note(commit: NotedCommit): void {
    this.#commits.push(commit);
  }

  outdate(): void {
    this.#isOutdated = true;
  }

  forgetCommits(): void {
    this.#commits.length = 0;
  }
}

/** The queries that are being opened: all changes are noted for them, because it is not known yet what they depend on. */
export class OpeningQueries {
  readonly #openings = new Set<OpeningQuery>();
  /** The transaction that is being read. */
  #noted = new NotedTransaction();
  #isReadWhole = false;
  #notedCount = 0;
  /** Grows with each transaction and each opening. */
  #number = 0;
  #numberOfTransaction = 0;
  /** The numbers of transactions that were read from their first change on, by xid. */
  readonly #numbers = new RecentMap<number, number>(KEPT_TRANSACTIONS);

  get isEmpty(): boolean {
    return this.#openings.size === 0;
  }

  /** The changes of the transaction that is being read. */
  get noted(): NotedTransaction {
    return this.#noted;
  }

  begin(position: Lsn): OpeningQuery {
    const opening = new OpeningQuery(position, ++this.#number);
    this.#openings.add(opening);
    return opening;
  }

  end(opening: OpeningQuery): void {
    this.#openings.delete(opening);
    opening.forgetCommits();
    if (this.isEmpty) this.#notedCount = 0;
  }

  outdate(): void {
    for (const opening of this.#openings) opening.outdate();
  }

  /** True if all changes of the transaction came after the opening had begun. */
  hasReadSince({ number }: OpeningQuery, xid: number): boolean {
    return (this.#numbers.get(xid) ?? 0) > number;
  }

  beginTransaction(): void {
    this.#noted = new NotedTransaction();
    this.#numberOfTransaction = ++this.#number;
    this.#isReadWhole = false;
  }

  note(change: RowChange): void {
    if (change.index === 0) this.#isReadWhole = true;
    if (!this.isEmpty) this.#noted.add(change, ++this.#notedCount <= MAX_NOTED_CHANGES);
  }

  commit(transaction: CommittedTransaction): void {
    if (this.#isReadWhole) this.#numbers.set(transaction.xid, this.#numberOfTransaction);
    for (const opening of this.#openings) opening.note({ transaction, noted: this.#noted });
    this.#noted = new NotedTransaction();
  }
}
