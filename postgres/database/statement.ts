import type { ResultField } from "../client/server-messages.ts";
import type { Lsn } from "./lsn.ts";

/** A parameter in text format. A Buffer is text already encoded as UTF-8, such as a raw JSON body. */
export type ParameterValue = string | Buffer | null;

/** The text identifies the statement: values that differ between requests must be parameters. */
export type Statement = { readonly text: string; readonly values: readonly ParameterValue[] };

/** The caller's role and settings. Every setting that a policy may read belongs here, in every request, anonymous ones included. */
export type StatementContext = {
  readonly role: string;
  readonly settings: readonly (readonly [name: string, value: string])[];
  /** If absent, only the primary is used. */
  readonly readYourWrites?: ReadYourWrites;
  /** Identifies the caller for the shares of the pools. If absent, all callers of the role are one. */
  readonly callerKey?: () => string;
};

/** The earlier writes that the reads of a request must see; with it, replicas may serve the reads. */
export type ReadYourWrites = {
  /** The writer: one user, or all callers of a role without a user id. */
  readonly subject: string;
  /** Selects the replica: the same one for all requests of a user, so that rows do not disappear between requests. */
  readonly replicaSeed: number;
  /** The position that the client sent; 0 if it sent none, null if it cannot be parsed. */
  readonly minLsn: Lsn | null;
  /** Called with the position after the request's own write. */
  onWrite(place: Lsn): void;
};

/** The holder of shares of a pool: the caller and the relations of a statement. */
export type ShareHolder = {
  readonly caller: string;
  readonly isAnonymous: boolean;
  readonly relations: readonly string[];
  /** True if the statement is known to run long. */
  readonly isLong: boolean;
};

export type ResultRow<Cell = string | null> = readonly Cell[];

export type StatementResult<Cell = string | null> = {
  /** The rows, with each value in Postgres's text format. */
  readonly rows: readonly ResultRow<Cell>[];
  readonly rowCount: number;
  /** The columns; null unless requested. */
  readonly fields: readonly ResultField[] | null;
};

/** Returns the result with Buffers decoded to strings. */
export function withTextCells({ rows, ...result }: StatementResult<string | Buffer | null>): StatementResult {
  return { ...result, rows: rows.map((row) => row.map((cell) => (Buffer.isBuffer(cell) ? cell.toString() : cell))) };
}
