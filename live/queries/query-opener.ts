import type { Database, Lsn } from "#postgres/database";
import type { Statement } from "#postgres/statement";
import { claimsKey } from "../dependencies/policy-dependencies.ts";
import type { QueryDependencies } from "../dependencies/query-dependencies.ts";
import { readFilterValues } from "../dependencies/row-filters.ts";
import type { ChangeFilter } from "../matching/affected-rows.ts";
import type { LiveResult, LiveSource } from "./live-subscriber.ts";
import type { OpeningQueries, OpeningQuery } from "./opening-queries.ts";
import { isReadAsOften } from "./result-contents.ts";
import type { RunningTransactions } from "./running-transactions.ts";

/** A query that has run for the first time. */
export type OpenedQuery = {
  readonly first: LiveResult;
  /** The time at which the run began, from `performance.now()`. */
  readonly startedAt: number;
  readonly milliseconds: number;
  /** From before the run. */
  readonly snapshot: string;
  /** The transactions that ran then. */
  readonly running: ReadonlySet<number>;
  readonly opening: OpeningQuery;
};

type OpenerOptions = {
  readonly database: Pick<Database, "run">;
  readonly transactions: RunningTransactions;
  readonly openings: OpeningQueries;
  /** The position of the stream. */
  position(): Lsn;
};

/** Runs a query for the first time, and finds out who can share its result. */
export class QueryOpener {
  readonly #options: OpenerOptions;
  #privateKeys = 0;

  constructor(options: OpenerOptions) {
    this.#options = options;
  }

  /** Commits are noted for the query from now on; end its opening. */
  async open(source: LiveSource): Promise<OpenedQuery> {
    const { openings, transactions, position } = this.#options;
    const opening = openings.begin(position());
    try {
      const { snapshot, running } = await transactions.read();
      const startedAt = performance.now();
      const first = await source.run();
      return { first, startedAt, milliseconds: performance.now() - startedAt, snapshot, running, opening };
    } catch (error) {
      openings.end(opening);
      throw error;
    }
  }

  /** Queries with the same key share a result. */
  keyOf(source: LiveSource, { claims, readsRequest, fingerprint }: QueryDependencies): string {
    const { request, caller, isPrivate } = source;
    // Results whose statements cannot be compared with their definitions are those of equal claims alone.
    const audience = fingerprint === "" ? caller.claimsText : claimsKey(caller, claims);
    const own = isPrivate || readsRequest ? ++this.#privateKeys : 0;
    return JSON.stringify([request, caller.role, audience, fingerprint, own]);
  }

  /** The filters of the query itself, and those of the policies. */
  async filtersOf(
    { isPrivate }: LiveSource,
    { filters, statements }: LiveResult,
    { relations, rowFilters, readsRequest }: QueryDependencies,
  ): Promise<ChangeFilter[]> {
    const own = filters.filter((filter) => isReadAsOften(relations, filter));
    const [read] = statements;
    // A function that runs first may set other claims.
    if (rowFilters.length === 0 || !read || isPrivate || readsRequest) return own;
    const run = (statement: Statement) => this.#options.database.run(read.context, statement, { readOnly: true });
    return [...own, ...(await readFilterValues(rowFilters, run))];
  }
}
