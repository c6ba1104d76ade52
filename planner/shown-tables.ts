/** A condition that all read rows meet: the column of the table, given by its oid, compared with values of the request. */
export type ColumnComparison = {
  readonly relation: number;
  readonly column: string;
  readonly operator: "eq" | "gt" | "gte" | "lt" | "lte";
  /** The values: for `eq` one of them must match; other operators have one value. */
  readonly values: readonly string[];
};

/** The rows of a table in a response: `path` names the members that lead to its objects; in a list, it applies to each item. */
export type ShownRows = { readonly path: readonly string[]; readonly table: ShownTable };

/** How the objects of a response show the rows of a table. */
export type ShownTable = {
  readonly relation: number;
  /** The names of members with values of columns, by column. */
  readonly members: ReadonlyMap<string, string>;
  readonly key: readonly string[];
  /** How often the statement reads the table for these rows, always by the same conditions; 0 if that is not known. */
  readonly reads: number;
  /** True if deleting a row without an object leaves the other objects unchanged. */
  readonly isIndependent: boolean;
  /** The members that rows without an object change too. */
  readonly remainders: readonly ShownRemainder[];
  /** The first column of the order, and the number of rows of a full page; null if there is no such order, or no limit. */
  readonly page: ShownPage | null;
  readonly comparisons: readonly ColumnComparison[];
  readonly related: readonly ShownRelation[];
};

/** A member of the response that tells whether there are rows without an object: the number of all rows, or true if there are some. */
export type ShownRemainder = { readonly path: ShownRows["path"]; readonly kind: "count" | "flag" };

export type ShownPage = {
  readonly column: string;
  readonly isDescending: boolean;
  readonly rows: number;
  /** True if the objects have the reverse order. */
  readonly isReversed: boolean;
};

/** A relation in each object of its parent. */
export type ShownRelation = {
  readonly path: ShownRows["path"];
  readonly isList: boolean;
  /** These columns of the table, or of the junction table, have the values of the parent's columns. */
  readonly joins: readonly { readonly relation: number; readonly column: string; readonly parentColumn: string }[];
  /** Null if the relation is not a table. */
  readonly table: ShownTable | null;
};

/** Null if the order does not tell which rows follow the page. */
export function toShownPage(
  { columns }: { readonly columns: ReadonlyMap<string, { readonly nullable: boolean }> },
  {
    column,
    isDescending,
    areNullsLast,
  }: Pick<ShownPage, "column" | "isDescending"> & { readonly areNullsLast: boolean },
  { rows, isReversed }: Pick<ShownPage, "rows" | "isReversed">,
): ShownPage | null {
  // A row with null would be the first of the page.
  const mayBeFirst = !areNullsLast && columns.get(column)?.nullable !== false;
  return rows === 0 || mayBeFirst ? null : { column, isDescending, rows, isReversed };
}
