import type { Lsn } from "#postgres/database";
import { AffectedResults } from "../matching/affected-results.ts";
import type { ResultContents } from "../matching/affected-rows.ts";
import { ResultIndex } from "../matching/result-index.ts";
import type {
  ChangeFollower,
  CommittedTransaction,
  LogicalMessage,
  ReplicatedRelation,
  RowChange,
} from "../stream/changes.ts";
import { DecidedTransactions } from "../stream/transaction-visibility.ts";
import type { LiveQueryResult } from "./live-subscriber.ts";
import { OpeningQueries, type OpeningQuery } from "./opening-queries.ts";

/** The prefix of the message that the database writes to the stream with each change of definitions. */
const SCHEMA_CHANGED_PREFIX = "schema";

type MarkEvents = {
  /** There are results to take. */
  onMarked(): void;
  /** The transaction has changed definitions. */
  onDefinitionsChanged(transaction: CommittedTransaction): void;
  /** Definitions may have changed at an unknown position, or changes were missed. */
  onUncertain(): void;
};

/** Finds the results that a commit affects. They are marked until the commit is visible: groups can have thousands, which only then are listed. */
export class ChangeMarks implements ChangeFollower {
  readonly openings = new OpeningQueries();
  readonly decided = new DecidedTransactions();
  readonly #events: MarkEvents;
  readonly #index = new ResultIndex<LiveQueryResult>();
  /** The results that the transaction being read affects. */
  #changed = new AffectedResults<LiveQueryResult>();
  /** True if contents have decided about changes of this transaction. */
  #usesContents = false;
  #changeCount = 0;
  /** The results that commits affect, until they are taken. */
  #marked = new AffectedResults<LiveQueryResult>();
  #taken = new AffectedResults<LiveQueryResult>();
  #position: Lsn = 0n;

  constructor(events: MarkEvents) {
    this.#events = events;
  }

  /** The last commit of the stream that was of interest. */
  get position(): Lsn {
    return this.#position;
  }

  /** Adds the result of a query that was opened. Returns true if commits in the meantime affect it. */
  add(result: LiveQueryResult, { commits }: OpeningQuery): boolean {
    if (result.contents) {
      for (const { transaction } of commits) this.decided.add(transaction.xid);
      this.#usesContents = true;
    }
    const affecting = commits.filter(({ noted }) => noted.affects(result));
    for (const { transaction } of affecting) this.#marked.addResults([result], transaction);
    if (affecting.length > 0) this.#events.onMarked();
    if (this.openings.noted.affects(result)) this.#changed.add(result);
    this.#index.add(result);
    return affecting.length > 0;
  }

  remove(result: LiveQueryResult): void {
    this.#changed.remove(result);
    this.#marked.remove(result);
    this.#index.remove(result);
  }

  /** `change` gives the result these contents, by which later changes are judged. */
  changeContents(result: LiveQueryResult, contents: ResultContents | null, change: () => void): void {
    if ((contents !== null || result.contents !== null) && this.#index.has(result)) {
      this.#changed.keep(result);
      this.#marked.keep(result);
      this.#index.changeContents(result, contents, change);
    } else change();
  }

  mark(result: LiveQueryResult): void {
    this.#marked.add(result);
    this.#events.onMarked();
  }

  /** The results that are to be delivered. */
  take(): AffectedResults<LiveQueryResult> {
    this.#taken = this.#marked;
    this.#marked = new AffectedResults<LiveQueryResult>();
    return this.#taken;
  }

  wants({ oid }: ReplicatedRelation): boolean {
    return !this.openings.isEmpty || this.#index.of(oid) !== undefined;
  }

  begin(): void {
    this.#changed = new AffectedResults<LiveQueryResult>();
    this.#usesContents = false;
    this.openings.beginTransaction();
  }

  change(change: RowChange, { xid }: CommittedTransaction): void {
    this.openings.note(change);
    const results = this.#index.of(change.relation.oid);
    if (!results) return;
    if (results.dependsOnContents) this.#usesContents = true;
    this.#changed.addChange({ xid, number: ++this.#changeCount, change }, results);
  }

  commit(transaction: CommittedTransaction): void {
    this.#position = transaction.commitLsn;
    this.openings.commit(transaction);
    if (this.#usesContents) this.decided.add(transaction.xid);
    if (this.#changed.isEmpty && !this.decided.areMany) return;
    if (!this.#changed.isEmpty) this.#marked.addCommit(this.#changed, transaction);
    this.#events.onMarked();
  }

  message({ prefix, transaction }: LogicalMessage): void {
    if (prefix !== SCHEMA_CHANGED_PREFIX) return;
    if (transaction) this.#events.onDefinitionsChanged(transaction);
    else this.#events.onUncertain();
  }

  /** Changes were missed, or perhaps lost with a server. */
  gap(): void {
    this.#marked.forgetChanges();
    this.#taken.forgetChanges();
    this.decided.clear();
    this.#events.onUncertain();
  }

  rewind(): boolean {
    this.gap();
    return true;
  }
}
