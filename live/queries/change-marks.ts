import type { Lsn } from "#postgres/database";
import type {
  ChangeFollower,
  CommittedTransaction,
  LogicalMessage,
  ReplicatedRelation,
  RowChange,
} from "../changes.ts";
import { AffectedResults } from "./affected-results.ts";
import { type LiveQueryResult, RelationResults } from "./relation-results.ts";

/** The prefix of the message that the database writes to the stream with each change of definitions. */
const SCHEMA_CHANGED_PREFIX = "schema";

/** A query that is being opened: which relations have changed since, and whether definitions have. */
type OpeningQuery = { readonly changed: Set<number>; isOutdated: boolean };

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
  /** By the transaction that is being read. */
  #changed = new AffectedResults();
  /** By commits, and not taken yet. */
  #marked = new AffectedResults();
  /** The last commit of the stream that was of interest. */
  position: Lsn = 0n;

  constructor(events: MarkEvents) {
    this.#events = events;
  }

  /** From now on all changes are noted, because what the query depends on is not known yet. */
  beginOpening(): OpeningQuery {
    const opening = { changed: new Set<number>(), isOutdated: false };
    this.#openings.add(opening);
    return opening;
  }

  endOpening(opening: OpeningQuery): void {
    this.#openings.delete(opening);
  }

  /** What they depend on may have been read before definitions changed. */
  outdateOpenings(): void {
    for (const opening of this.#openings) opening.isOutdated = true;
  }

  add(result: LiveQueryResult): void {
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

  begin(): void {
    this.#changed = new AffectedResults();
  }

  change(change: RowChange): void {
    const { oid } = change.relation;
    for (const { changed } of this.#openings) changed.add(oid);
    const results = this.#resultsByRelation.get(oid);
    if (results) this.#changed.addChange(change, results);
  }

  commit(transaction: CommittedTransaction): void {
    this.position = transaction.commitLsn;
    if (this.#changed.isEmpty) return;
    this.#marked.addCommit(this.#changed, transaction);
    this.#events.onMarked();
  }

  message({ prefix, transaction }: LogicalMessage): void {
    if (prefix === SCHEMA_CHANGED_PREFIX) this.#events.onDefinitions(transaction);
  }

  gap(): void {
    this.#events.onMissed();
  }

  rewind(): boolean {
    this.#events.onMissed();
    return true;
  }
}

function relationsOf({ dependencies }: LiveQueryResult): ReadonlySet<number> {
  return new Set(dependencies.relations.map(({ oid }) => oid));
}
