import type { Footing } from "./replicas/footing.ts";

/** A parameter in text format. A Buffer is text already encoded as UTF-8, such as a raw JSON body. */
export type Value = string | Buffer | null;

/** The text is the statement's identity: what differs from request to request belongs in the values. */
export type Statement = { readonly text: string; readonly values: readonly Value[] };

/** Who asks. Every setting that a policy may read belongs here, in every request, anonymous ones included. */
export type Context = {
  readonly role: string;
  readonly settings: readonly (readonly [name: string, value: string])[];
  /** Absent: only the primary is asked. */
  readonly footing?: Footing;
  /** Identifies the caller, whose statements have a share of each pool together. Absent: all callers of the role are one. */
  readonly callerKey?: () => string;
};

export type Field = { readonly name: string; readonly type: number };

export type Row<Cell = string | null> = readonly Cell[];

export type Result<Cell = string | null> = {
  /** Each value as Postgres writes it. */
  readonly rows: readonly Row<Cell>[];
  readonly rowCount: number;
  /** Null unless they were asked for. */
  readonly fields: readonly Field[] | null;
};
