/** The response of `POST /sql`. */
export type SqlResponse = {
  readonly transaction: "committed" | "rolled back";
  readonly results: readonly SqlResult[];
  readonly notices: readonly SqlMessage[];
  readonly dropped_notices: number;
  readonly error: SqlMessage | null;
};

/** A row, with each value in Postgres's text format. */
export type SqlRow = readonly (string | null)[];

export type SqlColumn = {
  readonly name: string;
  /** The name as Postgres prints it: `character varying(20)`. */
  readonly type: string;
  /** `pg_type.typcategory`: N for numbers, D for dates and times, B for boolean, … */
  readonly category: string;
};

export type SqlResult = {
  /** The position of the statement in the text that was sent. */
  readonly start: number;
  readonly end: number;
  readonly command: string | null;
  readonly row_count: number | null;
  /** Null if the statement returns no rows. */
  readonly columns: readonly SqlColumn[] | null;
  readonly rows: readonly SqlRow[];
  /** The limit that was reached; the rows after it are missing. */
  readonly cut: "rows" | "bytes" | null;
  readonly plan: readonly StatementPlan[] | null;
  readonly duration_ms: number;
};

export type SqlMessage = {
  /** The index of the statement; null if the transaction could not begin or end. */
  readonly statement: number | null;
  readonly severity: string;
  readonly sqlstate: string;
  readonly message: string;
  readonly detail: string | null;
  readonly hint: string | null;
  /** The functions that were running. */
  readonly where: string | null;
  readonly constraint: string | null;
  /** The offset in the text that was sent, in UTF-16 code units; null if Postgres reports none. */
  readonly offset: number | null;
  readonly line: number | null;
  readonly column: number | null;
};

/** A node of `explain (format json)`. */
export type ExplainedNode = {
  readonly "Node Type": string;
  readonly "Plan Rows": number;
  readonly "Total Cost": number;
  readonly "Actual Rows"?: number;
  readonly "Actual Loops"?: number;
  readonly "Actual Total Time"?: number;
  readonly "Workers Launched"?: number;
  readonly Plans?: readonly ExplainedNode[];
  readonly [property: string]: unknown;
};

export type StatementPlan = {
  readonly Plan: ExplainedNode;
  readonly "Planning Time"?: number;
  readonly "Execution Time"?: number;
  readonly Settings?: Readonly<Record<string, string>>;
};

export type SavedQuery = { readonly name: string; readonly text: string };

/** The response of `POST /queries`. */
export type SharedQuery = SavedQuery & {
  /** The id of an administrator. */
  readonly saved_by: string | null;
  readonly saved_at: string;
};

/** The response of `GET /queries`. */
export type SharedQueryList = { readonly queries: readonly SharedQuery[] };
