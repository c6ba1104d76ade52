import type { RowFilter } from "./row-filters.ts";

/** A relation that a query reads, directly or through views, functions and policies. */
type ReadRelation = {
  readonly oid: number;
  /** How often the query reads it; 0 if something else reads it too, such as a policy. Rows that all reads exclude change nothing. */
  readonly reads: number;
  /** The columns of the relation that its policies read; null if other things than columns decide too. */
  readonly policyColumns: readonly string[] | null;
};

/** The dependencies of a query's result besides the query's values. */
export type QueryDependencies = {
  readonly relations: readonly ReadRelation[];
  /** The claims that decide the result. */
  readonly claims: PolicyClaims;
  /** True if the result depends on settings of the single request, such as its headers. */
  readonly readsRequest: boolean;
  /** Why the result cannot be kept up to date; empty if it can. */
  readonly obstacles: readonly string[];
  /** The oids of the objects that decide which rows a caller sees. */
  readonly deciding: DecidingObjects;
  /** The statement and the bodies of functions, as far as names in them are looked up anew with each run. */
  readonly texts: readonly string[];
  readonly fingerprint: string;
  /** The conditions that the rows of some relations must meet to change the result at all. */
  readonly rowFilters: readonly RowFilter[];
  /** The indexes of the parameters whose values may name the time of a run, such as `now`. */
  readonly timeParameters: readonly number[];
};

export type DecidingObjects = { readonly relations: readonly number[]; readonly functions: readonly number[] };

/** The claims that decide which rows are visible; `all` where that is unknown. */
export type PolicyClaims = ReadonlySet<string> | "all";
