import type { Lsn } from "#postgres/database";
import type {
  ChangeFollower,
  CommittedTransaction,
  LogicalMessage,
  ReplicatedRelation,
  RowChange,
} from "../changes.ts";
import { type LiveQueryResult, RelationResults } from "./relation-results.ts";

/** The prefix of the message that the database writes to the stream with each change of definitions. */
const SCHEMA_CHANGED_PREFIX = "schema";

/** A query that is being opened: which relations have changed since, and whether definitions have. */
type OpeningQuery = { readonly changed: Set<number>; isOutdated: boolean };

export type MarkedResults = {
  readonly results: ReadonlySet<LiveQueryResult>;
  readonly transaction: CommittedTransaction;
};

type MarkEvents = {
  /** A commit may have changed these results. */
  onMarked(marked: MarkedResults): void;
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
  #affected = new Set<LiveQueryResult>();
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
    this.#affected.delete(result);
    for (const oid of relationsOf(result)) {
      const results = this.#resultsByRelation.get(oid);
      results?.remove(result);
      if (results?.isEmpty) this.#resultsByRelation.delete(oid);
    }
  }

  wants({ oid }: ReplicatedRelation): boolean {
    return this.#openings.size > 0 || this.#resultsByRelation.has(oid);
  }

  begin(): void {
    this.#affected = new Set();
  }

  change(change: RowChange): void {
    const { oid } = change.relation;
    for (const { changed } of this.#openings) changed.add(oid);
    for (const result of this.#resultsByRelation.get(oid)?.affectedBy(change) ?? []) this.#affected.add(result);
  }

  commit(transaction: CommittedTransaction): void {
    this.position = transaction.commitLsn;
    if (this.#affected.size > 0) this.#events.onMarked({ results: this.#affected, transaction });
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
