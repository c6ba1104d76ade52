import type { Lsn } from "#postgres/database";
import type {
  ChangeFollower,
  CommittedTransaction,
  LogicalMessage,
  ReplicatedRelation,
  RowChange,
} from "../changes.ts";
import { isExcluded } from "./affected-rows.ts";
import type { LiveSubscriber } from "./live-subscriber.ts";
import type { SharedResult } from "./shared-result.ts";

/** The prefix of the message that the database writes to the stream with each change of definitions. */
const SCHEMA_CHANGED_PREFIX = "schema";

export type LiveQueryResult = SharedResult<LiveSubscriber>;

/** A query that is being opened: which relations have changed since. */
export type OpeningQuery = { readonly changed: Set<number> };

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
  readonly #resultsByRelation = new Map<number, Set<LiveQueryResult>>();
  readonly #openings = new Set<OpeningQuery>();
  #affected = new Set<LiveQueryResult>();
  /** The last commit of the stream that was of interest. */
  position: Lsn = 0n;

  constructor(events: MarkEvents) {
    this.#events = events;
  }

  /** From now on all changes are noted, because what the query depends on is not known yet. */
  beginOpening(): OpeningQuery {
    const opening = { changed: new Set<number>() };
    this.#openings.add(opening);
    return opening;
  }

  endOpening(opening: OpeningQuery): void {
    this.#openings.delete(opening);
  }

  add(result: LiveQueryResult): void {
    for (const { oid } of result.dependencies.relations) {
      const results = this.#resultsByRelation.get(oid) ?? new Set();
      results.add(result);
      this.#resultsByRelation.set(oid, results);
    }
  }

  remove(result: LiveQueryResult): void {
    this.#affected.delete(result);
    for (const { oid } of result.dependencies.relations) {
      const results = this.#resultsByRelation.get(oid);
      results?.delete(result);
      if (results?.size === 0) this.#resultsByRelation.delete(oid);
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
    for (const result of this.#resultsByRelation.get(oid) ?? [])
      if (!this.#affected.has(result) && isAffected(result, change)) this.#affected.add(result);
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

function isAffected({ filters, dependencies }: LiveQueryResult, change: RowChange): boolean {
  const { oid } = change.relation;
  const isReadOnce = dependencies.relations.some((relation) => relation.oid === oid && relation.isReadOnce);
  if (!isReadOnce) return true;
  return !filters.some((filter) => filter.relation === oid && isExcluded(change, filter));
}
