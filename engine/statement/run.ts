import type { AbortLike } from "../concurrency/abort.ts";
import type { Database } from "../database/database.ts";
import { isResponseTooLarge } from "../database/database-errors.ts";
import type { IsolationLevel } from "../database/pipelined-batch.ts";
import type { RowChunk } from "../database/result-collectors.ts";
import type { ResultRow, Statement, StatementContext, StatementResult } from "../database/statement.ts";
import type { QueryInTransaction, RunStatement } from "../database/transaction.ts";
import type { Intent } from "./intent.ts";
import { bindValues } from "./plan/bind-parameters.ts";
import type { Plan } from "./plan/plan.ts";
import { MAX_BUFFERED_ROWS, type StreamedPlan } from "./plan/streamed-plan.ts";
import type { PreparedRequest, StreamedRead } from "./prepare.ts";
import {
  type BodyFrame,
  bodyFrame,
  buildEstimateQuery,
  guardError,
  type ResponseRow,
  readResponseRow,
} from "./query/build-query.ts";

/** An answer of more bytes is not held a second time. */
const MAX_BUFFERED_BYTES = 2 * 2 ** 20;

export type StatementRunOptions = {
  /** Undone when it is over, whatever it was. */
  readonly rollback: boolean;
  /** Null: as the database has it. Another one needs a transaction that is begun by itself. */
  readonly isolation: IsolationLevel | null;
  /** Called in the same transaction first. */
  readonly before: Statement | undefined;
  /** Aborted when nobody waits for the answer any more. */
  readonly signal: AbortLike;
};

/** One round trip. Refuses with Postgres's own error, or with what a guard of the plan says. */
export function runRequest(
  { plan, statement, stream }: PreparedRequest,
  context: StatementContext,
  database: Database,
  options: StatementRunOptions,
): Promise<RunResult> {
  // Rows come one by one in a transaction of the usual kind alone.
  const isPlainTransaction = !options.rollback && options.isolation === null;
  if (stream && isPlainTransaction)
    return runStreamable({ plan, long: stream }, context, database, options).catch(throwGuardError);
  return runWholeStatement(plan.readOnly, statement, context, database, options).then(
    ({ rows }) => readResult(plan, rows),
    throwGuardError,
  );
}

/** The same in a transaction that somebody else has begun. */
export function runInTransaction(
  execute: RunStatement,
  { plan, statement }: PreparedRequest,
): Promise<ResponseRow<string | Buffer>> {
  return execute(statement).then(({ rows }) => readResult(plan, rows), throwGuardError);
}

function throwGuardError(error: unknown): never {
  throw guardError(error) ?? error;
}

function readResult(plan: Plan, rows: readonly ResultRow<string | Buffer | null>[]): ResponseRow<string | Buffer> {
  if (plan.format.kind === "plan") return readExplainLines(rows.map(([line]) => String(line)));
  return readResponseRow(rows[0]! as readonly (string | Buffer)[], plan);
}

type ResultRows = Pick<StatementResult<string | Buffer | null>, "rows">;

function runWholeStatement(
  readOnly: boolean,
  statement: Statement,
  context: StatementContext,
  database: Database,
  { rollback, isolation, before, signal }: StatementRunOptions,
): Promise<ResultRows> {
  if (isolation === null) {
    return database.run(context, statement, { readOnly, rollback, before, signal, largeValues: "buffer" });
  }
  let rolledBack: ResultRows | null = null;
  const runInside = async (query: QueryInTransaction) => {
    if (before) await query(before);
    const result = await query(statement);
    if (!rollback) return result;
    await query(CHECK_CONSTRAINTS);
    rolledBack = result;
    throw new Error("undone on purpose");
  };
  return database.transaction(context, runInside, { readOnly, isolation }).catch((error: unknown) => {
    if (rolledBack) return rolledBack;
    throw error;
  });
}

/** As they would be at commit. */
const CHECK_CONSTRAINTS: Statement = { text: "set constraints all immediate", values: [] };

/** Postgres tells its plan line by line. */
function readExplainLines(lines: readonly string[]): ResponseRow<string> {
  const body = lines.join("\n");
  return { body, page: 0, total: null, headers: null, status: null, location: null, inserted: null };
}

/** What Postgres tells. While rows are still coming their number may be unknown. */
export type RunResult<Body = string | Buffer | RowBodyStream> = Omit<ResponseRow, "body" | "page"> & {
  readonly body: Body | null;
  readonly page: number | null;
};

type PreparedStream = Pick<PreparedRequest, "plan"> & { readonly long: StreamedRead };

type StreamRunOptions = { readonly before: Statement | undefined; readonly signal: AbortLike };

/**
 * Has the whole answer put together by Postgres, which is fastest, where the latest one of its shape was short. If it
 * turns out to be long, and the next time at once, its rows are taken as they come.
 */
async function runStreamable(
  read: PreparedStream,
  context: StatementContext,
  database: Database,
  options: StreamRunOptions,
): Promise<RunResult> {
  const { probe, history } = read.long;
  // Whose answer may be short this time is not kept waiting by those who read slowly.
  if (history.wasTooLong && hasFreeStream(database)) return streamRows(read, context, database, options);
  const { before, signal } = options;
  let row: ResultRow<string | Buffer | null>;
  try {
    const runOptions = { before, signal, readOnly: true, largeValues: "buffer" } as const;
    row = (await database.run(context, probe, runOptions)).rows[0]!;
  } catch (error) {
    // Too large to be held, but not to be sent row by row.
    if (isResponseTooLarge(error)) return streamRows(read, context, database, options);
    throw error;
  }
  const result = readResponseRow(row, read.plan);
  history.wasTooLong = isTooLong({ rows: result.page, bytes: result.body?.length ?? 0 });
  return result.page > MAX_BUFFERED_ROWS ? streamRows(read, context, database, options) : result;
}

function hasFreeStream(database: Database): boolean {
  const { inFlight, waiting, most: max } = database.state().lanes.stream;
  return inFlight + waiting < max;
}

async function streamRows(
  read: PreparedStream,
  context: StatementContext,
  database: Database,
  options: StreamRunOptions,
): Promise<RunResult> {
  const { plan, rows, history } = read.long;
  const frame = bodyFrame(plan);
  const chunks = database.stream(context, rows(), { ...options, separator: frame.separator });
  const first: RowChunk = (await chunks.next()).value!;
  history.wasTooLong = !first.last;
  // What stands beside a row is not told where there is none.
  if (!first.head) return runStreamable(read, context, database, options);
  const result = readResponseRow([null, String(first.rows), ...first.head], plan);
  if (first.last) {
    return { ...result, body: Buffer.concat([Buffer.from(frame.opening), first.data, Buffer.from(frame.closing)]) };
  }
  const onEnd = (size: StreamedSize) => {
    history.wasTooLong = isTooLong(size);
  };
  return {
    ...result,
    page: expectedRowCount(plan, result.total),
    body: new RowBodyStream({ first, chunks, frame, onEnd }),
  };
}

function isTooLong({ rows, bytes }: StreamedSize): boolean {
  return rows > MAX_BUFFERED_ROWS || bytes > MAX_BUFFERED_BYTES;
}

/** How many rows will have come; null where not all have been counted. */
function expectedRowCount({ rows, total }: StreamedPlan, counted: number | null): number | null {
  if (counted === null || (total.kind === "counted" && total.most === counted)) return null;
  return Math.min(Math.max(counted - rows.offset, 0), rows.limit ?? counted);
}

type StreamPiece = Pick<RowChunk, "data" | "release">;
export type StreamedSize = { readonly rows: number; readonly bytes: number };

type RowBodyStreamOptions = {
  /** The one that has been awaited: with it, it is known that there are more. */
  readonly first: RowChunk;
  readonly chunks: AsyncIterableIterator<RowChunk>;
  readonly frame: BodyFrame;
  /** Told when the last row is there. */
  readonly onEnd: (size: StreamedSize) => void;
};

/** A body whose rows come as they are read. Whoever has one reads it to its end or calls `return`. */
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

type EstimateDependencies = {
  readonly context: StatementContext;
  readonly database: Database;
  readonly maxRows: number | null;
};

/**
 * `planned` is Postgres's guess; `estimated` counts as far as the largest page reaches and believes the guess beyond. Where
 * pages have no limit the greater of both is told, as PostgREST does.
 */
export async function estimateTotal(
  plan: Plan,
  intent: Intent,
  { total }: Pick<ResponseRow, "total">,
  { context, database, maxRows }: EstimateDependencies,
): Promise<number | null> {
  if (plan.kind !== "read" || !plan.needsEstimate || plan.format.kind === "plan") return total;
  if (intent.count === "estimated" && (total === null || (maxRows !== null && total <= maxRows))) return total;
  const { text, parameters: slots } = buildEstimateQuery(plan);
  const { rows } = await database.run(context, { text, values: bindValues(slots, intent) }, { readOnly: true });
  const guess = Number(JSON.parse(rows.map(([line]) => line).join("\n"))[0].Plan["Plan Rows"]);
  return Math.max(guess, total ?? 0);
}
