import type { ReadYourWrites } from "./read-your-writes.ts";

/** A parameter in text format. A Buffer is text already encoded as UTF-8, such as a raw JSON body. */
export type ParameterValue = string | Buffer | null;

/** The text is the statement's identity: what differs from request to request belongs in the values. */
export type Statement = { readonly text: string; readonly values: readonly ParameterValue[] };

/** Who asks. Every setting that a policy may read belongs here, in every request, anonymous ones included. */
export type StatementContext = {
  readonly role: string;
  readonly settings: readonly (readonly [name: string, value: string])[];
  /** Absent: only the primary is asked. */
  readonly readYourWrites?: ReadYourWrites;
  /** Identifies the caller, whose statements have a share of each pool together. Absent: all callers of the role are one. */
  readonly callerKey?: () => string;
};

export type ResultField = { readonly name: string; readonly type: number };

export type ResultRow<Cell = string | null> = readonly Cell[];

export type StatementResult<Cell = string | null> = {
  /** Each value as Postgres writes it. */
  readonly rows: readonly ResultRow<Cell>[];
  readonly rowCount: number;
  /** Null unless they were asked for. */
  readonly fields: readonly ResultField[] | null;
};
