import {
  type Database,
  failedStatementOf,
  type IsolationLevel,
  isResponseTooLarge,
  type QueryInTransaction,
  type QueryTogether,
  type RowChunk,
  type RunStatement,
} from "#postgres/database";
import type { ResultRow, Statement, StatementContext, StatementResult } from "#postgres/statement";
import type { AbortLike } from "#runtime/concurrency";
import { explainNestedError, explainRowsError } from "./nested-errors.ts";
import { MAX_BUFFERED_ROWS, type Plan, type StreamedPlan } from "./plan/plan.ts";
import type { PreparedEstimate, PreparedRequest, PreparedStream } from "./prepare.ts";
import { type BodyFrame, bodyFrame, guardError, type ResponseRow, readResponseRow } from "./query/build-query.ts";
import { isByKey } from "./query/build-update.ts";

/** Larger responses are not buffered a second time. */
const MAX_BUFFERED_BYTES = 2 * 2 ** 20;

type StatementRunOptions = {
  /** True if the transaction is always rolled back. */
  readonly rollback: boolean;
  /** Null for the database's default; others require an explicit BEGIN. */
  readonly isolation: IsolationLevel | null;
  /** A statement that runs first in the same transaction. */
  readonly before: Statement | undefined;
  /** Aborted when the client is gone. */
  readonly signal: AbortLike;
};

/** Runs a request in one round trip. Throws Postgres's own error, or the error of a guard. */
export function runRequest(
  prepared: PreparedRequest,
  context: StatementContext,
  database: Database,
  options: StatementRunOptions,
): Promise<RunResult> {
  if (prepared.nested) return runNestedInsert(prepared, context, database, options);
  const { plan, statement, stream, estimate } = prepared;
  // Only transactions with default options are streamed.
  const canStream = !options.rollback && options.isolation === null;
  const result: Promise<RunResult> =
    stream && canStream
      ? runStreamable(plan, stream, context, database, options).catch(throwExplained(prepared))
      : runWholeStatement(plan.readOnly, statement, context, database, options).then(
          ({ rows }) => readResult(plan, rows),
          throwExplained(prepared),
        );
  return estimate ? result.then((known) => withEstimate(known, estimate, context, database)) : result;
}

async function runNestedInsert(
  prepared: PreparedRequest,
  context: StatementContext,
  database: Database,
  { rollback, isolation, before, signal }: StatementRunOptions,
): Promise<RunResult> {
  const statements = statementsOf(prepared);
  try {
    if (isolation === null) {
      const options = { rollback, before, signal, largeValues: "buffer" } as const;
      return readGroupResult(prepared, await database.runTogether(context, statements, options));
    }
    const whole = { rollback, before, isolation, readOnly: false };
    return readGroupResult(prepared, await runInOwnTransaction(statements, context, database, whole));
  } catch (error) {
    throw explainGroupError(prepared, error, failedStatementOf(error));
  }
}

type GroupedRequest = Pick<PreparedRequest, "statement" | "nested"> & Partial<Pick<PreparedRequest, "estimate">>;

/** The statements of a request in their order; the last one returns the response, or the estimate of its total. */
export function statementsOf({ statement, nested, estimate }: GroupedRequest): Statement[] {
  if (!nested && !estimate) return [statement];
  return [...(nested?.statements ?? []), statement, ...(estimate ? [estimate.statement] : [])];
}

/** The response of a request, from the results of its statements. */
export function readGroupResult(
  { plan, estimate }: Pick<PreparedRequest, "plan" | "estimate">,
  results: readonly ResultRows[],
): RunResult<string | Buffer> {
  const result = readResult(plan, results.at(estimate ? -2 : -1)!.rows);
  return estimate ? withEstimatedTotal(result, estimate, results.at(-1)!.rows) : result;
}

type ExplainedRequest = Pick<PreparedRequest, "plan" | "nested" | "intent">;

/** The error of a request whose statement with that index has failed; null: the error is not a statement's. */
export function explainGroupError(
  { plan, nested, intent }: ExplainedRequest,
  error: unknown,
  failed: number | null,
): unknown {
  const known = guardError(error);
  if (known) return known;
  if (nested) return explainNestedError(error, nested.steps, failed);
  if (plan.kind !== "write" || plan.change.kind !== "update" || intent.kind !== "update") return error;
  return isByKey(plan.change) ? explainRowsError(error, intent, plan.table) : error;
}

function throwExplained(prepared: ExplainedRequest): (error: unknown) => never {
  return (error) => {
    throw explainGroupError(prepared, error, null);
  };
}

/** Runs the same in an open transaction. */
export function runInTransaction(
  execute: RunStatement,
  prepared: ExplainedRequest & Pick<PreparedRequest, "statement">,
): Promise<ResponseRow<string | Buffer>> {
  const { plan, statement, nested } = prepared;
  if (nested) return runNestedInTransaction(execute, prepared);
  return execute(statement).then(({ rows }) => readResult(plan, rows), throwExplained(prepared));
}

/** The statements are pipelined: after a failed one, the others fail as well. */
async function runNestedInTransaction(
  execute: RunStatement,
  prepared: ExplainedRequest & Pick<PreparedRequest, "statement">,
): Promise<ResponseRow<string | Buffer>> {
  const results = await Promise.allSettled(statementsOf(prepared).map(execute));
  const failed = results.findIndex(({ status }) => status === "rejected");
  const result = results.at(failed)!;
  if (result.status === "rejected") throw explainGroupError(prepared, result.reason, failed);
  return readResult(prepared.plan, result.value.rows);
}

function readResult(plan: Plan, rows: readonly ResultRow<string | Buffer | null>[]): ResponseRow<string | Buffer> {
  if (plan.format.kind === "plan") return readExplainLines(rows.map(([line]) => String(line)));
  return readResponseRow(rows[0]! as readonly (string | Buffer)[], plan);
}

type ResultRows = Pick<StatementResult<string | Buffer | null>, "rows">;

type OwnTransactionOptions = Pick<StatementRunOptions, "rollback" | "before"> & {
  readonly isolation: IsolationLevel;
  readonly readOnly: boolean;
};

/** Runs the statements in a transaction of that isolation level, and ends it in the same round trip. */
function runInOwnTransaction(
  [first, ...others]: readonly Statement[],
  context: StatementContext,
  database: Database,
  { rollback, before, isolation, readOnly }: OwnTransactionOptions,
): Promise<ResultRows[]> {
  const runInside = async (_: QueryInTransaction, queryTogether: QueryTogether) =>
    queryTogether([{ ...first!, before }, ...others], { end: rollback ? "checked" : "commit" });
  return database.transaction(context, runInside, { readOnly, isolation });
}

async function runWholeStatement(
  readOnly: boolean,
  statement: Statement,
  context: StatementContext,
  database: Database,
  { rollback, isolation, before, signal }: StatementRunOptions,
): Promise<ResultRows> {
  if (isolation === null) {
    return database.run(context, statement, { readOnly, rollback, before, signal, largeValues: "buffer" });
  }
  const [result] = await runInOwnTransaction([statement], context, database, { rollback, before, isolation, readOnly });
  return result!;
}

/** EXPLAIN returns one row per line. */
function readExplainLines(lines: readonly string[]): ResponseRow<string> {
  const body = lines.join("\n");
  return { body, rowCount: 0, total: null, headers: null, status: null, location: null, inserted: null };
}

/** The result of a statement. While rows are streamed, their number may be unknown. */
export type RunResult<Body = string | Buffer | RowBodyStream> = Omit<ResponseRow, "body" | "rowCount"> & {
  readonly body: Body | null;
  readonly rowCount: number | null;
};

type StreamRunOptions = { readonly before: Statement | undefined; readonly signal: AbortLike };

/**
 * Lets Postgres aggregate the whole response, which is fastest, if the previous response of its shape was short. If it
 * turns out to be long, its rows are streamed, and the next time from the start.
 */
async function runStreamable(
  plan: Plan,
  stream: PreparedStream,
  context: StatementContext,
  database: Database,
  options: StreamRunOptions,
): Promise<RunResult> {
  const { probe, history } = stream;
  // While all streams are taken by slow readers, the response may still turn out to be short.
  if (history.wasTooLong && database.hasFreeStream(context))
    return streamRows(plan, stream, context, database, options);
  const { before, signal } = options;
  let row: ResultRow<string | Buffer | null>;
  try {
    const runOptions = { before, signal, readOnly: true, largeValues: "buffer" } as const;
    row = (await database.run(context, probe, runOptions)).rows[0]!;
  } catch (error) {
    // Too large to be buffered, but not to be streamed.
    if (isResponseTooLarge(error)) return streamRows(plan, stream, context, database, options);
    throw error;
  }
  const result = readResponseRow(row, plan);
  history.wasTooLong = isTooLong({ rows: result.rowCount, bytes: result.body?.length ?? 0 });
  return result.rowCount > MAX_BUFFERED_ROWS ? streamRows(plan, stream, context, database, options) : result;
}

async function streamRows(
  wholePlan: Plan,
  stream: PreparedStream,
  context: StatementContext,
  database: Database,
  options: StreamRunOptions,
): Promise<RunResult> {
  const { plan, rows, history } = stream;
  const frame = bodyFrame(plan);
  const chunks = database.stream(context, rows(), { ...options, separator: frame.separator });
  const first: RowChunk = (await chunks.next()).value!;
  history.wasTooLong = !first.last;
  // The further columns, such as the count, exist only with a row.
  if (!first.head) return runStreamable(wholePlan, stream, context, database, options);
  const result = readResponseRow([null, String(first.rows), ...first.head], plan);
  if (first.last) {
    return { ...result, body: Buffer.concat([Buffer.from(frame.opening), first.data, Buffer.from(frame.closing)]) };
  }
  const onEnd = (size: StreamedSize) => {
    history.wasTooLong = isTooLong(size);
  };
  return {
    ...result,
    rowCount: expectedRowCount(plan, result.total),
    body: new RowBodyStream({ first, chunks, frame, onEnd }),
  };
}

function isTooLong({ rows, bytes }: StreamedSize): boolean {
  return rows > MAX_BUFFERED_ROWS || bytes > MAX_BUFFERED_BYTES;
}

/** The expected number of rows; null if not all were counted. */
function expectedRowCount({ rows, total }: StreamedPlan, counted: number | null): number | null {
  if (counted === null || (total.kind === "counted" && total.max === counted)) return null;
  return Math.min(Math.max(counted - rows.offset, 0), rows.limit ?? counted);
}

type StreamPiece = Pick<RowChunk, "data" | "release">;
export type StreamedSize = { readonly rows: number; readonly bytes: number };

type RowBodyStreamOptions = {
  /** The chunk that was read ahead, to know whether there are more. */
  readonly first: RowChunk;
  readonly chunks: AsyncIterableIterator<RowChunk>;
  readonly frame: BodyFrame;
  /** Called after the last row. */
  readonly onEnd: (size: StreamedSize) => void;
};

/** A body that streams rows as they are read. The owner must read it to its end or call `return`. */
export class RowBodyStream implements AsyncIterableIterator<StreamPiece> {
  readonly #ready: StreamPiece[];
  readonly #chunks: AsyncIterableIterator<RowChunk>;
  readonly #closing: string;
  readonly #onEnd: (size: StreamedSize) => void;
  #rows: number;
  #bytes: number;

  constructor({ first, chunks, frame, onEnd }: RowBodyStreamOptions) {
    this.#ready = [toPiece(frame.opening), first];
    this.#chunks = chunks;
    this.#closing = frame.closing;
    this.#onEnd = onEnd;
    this.#rows = first.rows;
    this.#bytes = first.data.length;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<StreamPiece, undefined>> {
    const ready = this.#ready.shift();
    if (ready) return { done: false, value: ready };
    const { done, value: chunk } = await this.#chunks.next();
    if (done) return { done, value: undefined };
    this.#rows += chunk.rows;
    this.#bytes += chunk.data.length;
    if (chunk.last) {
      this.#ready.push(toPiece(this.#closing));
      this.#onEnd({ rows: this.#rows, bytes: this.#bytes });
    }
    return { done: false, value: chunk };
  }

  async return(): Promise<IteratorResult<StreamPiece, undefined>> {
    await this.#chunks.return?.();
    return { done: true, value: undefined };
  }
}

function toPiece(text: string): StreamPiece {
  return { data: Buffer.from(text), release: () => {} };
}

/**
 * `count=planned` is Postgres's estimate. `count=estimated` counts up to the maximum page and uses the estimate beyond;
 * without a maximum it returns the greater of both, as PostgREST does.
 */
async function withEstimate<R extends Pick<RunResult, "body" | "total">>(
  result: R,
  estimate: PreparedEstimate,
  context: StatementContext,
  database: Database,
): Promise<R> {
  const { body } = result;
  if (isCountExact(result, estimate)) return result;
  try {
    const { rows } = await database.run(context, estimate.statement, { readOnly: true });
    return withEstimatedTotal(result, estimate, rows);
  } catch (error) {
    if (body instanceof RowBodyStream) await body.return();
    throw error;
  }
}

function isCountExact({ total }: Pick<RunResult, "total">, { exactUpTo }: PreparedEstimate): boolean {
  return exactUpTo !== null && total !== null && total <= exactUpTo;
}

/** `rows` are the lines of EXPLAIN. */
function withEstimatedTotal<R extends Pick<RunResult, "total">>(
  result: R,
  estimate: PreparedEstimate,
  rows: ResultRows["rows"],
): R {
  if (isCountExact(result, estimate)) return result;
  const planned = Number(JSON.parse(rows.map(([line]) => line).join("\n"))[0].Plan["Plan Rows"]);
  return { ...result, total: Math.max(planned, result.total ?? 0) };
}
