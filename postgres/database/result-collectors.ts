import { type AbortLike, toSignal } from "#runtime/concurrency";
import { readLargeRow, readRow, readRowCount, readValueLength } from "../client/server-messages.ts";
import { readerStalled } from "./database-errors.ts";
import type { ExecutionCallbacks, RestartableCollector } from "./pipelined-batch.ts";
import type { StatementResult } from "./statement.ts";

/** Values above this size are passed on as Buffers; shorter ones are faster to send as strings. */
const LARGE_VALUE_BYTES = 32 * 1024;

const CHUNK_BYTES = 64 * 1024;
/**
 * Backpressure starts at 4 MB of waiting chunks. Most results are shorter: then a slow reader occupies no connection,
 * and its slowness does not count against the role's statement_timeout.
 */
const MAX_WAITING_CHUNKS = 64;

export type RowChunk = {
  readonly data: Buffer;
  /** The number of rows that end in this chunk. */
  readonly rows: number;
  readonly last: boolean;
  /** The other columns of the first row, in the first chunk only; null if there is no row. */
  readonly head: readonly (string | null)[] | null;
  /** Allows the buffer to be reused; otherwise it is garbage-collected. */
  release(): void;
};

/** The statement that sends the rows, and its connection while it runs. */
type StreamSource = {
  readonly connection: { pause(): void; resume(): void } | null;
  submit(): void;
};

type RowStreamOptions = {
  /** Separates rows, also across chunks. */
  readonly separator: string;
  /** The maximum wait of a chunk for the reader, in milliseconds. */
  readonly stallTimeout: number;
  readonly signal: AbortLike | undefined;
  readonly request: (collector: RestartableCollector, answer: ExecutionCallbacks, signal: AbortSignal) => StreamSource;
};

/**
 * Joins the first column, a text, into chunks of at most 64 kB, in constant memory. The first chunk comes when 64 kB
 * are collected, or after ReadyForQuery: so an early error still gets an error status.
 */
export class RowStream implements RestartableCollector, AsyncIterableIterator<RowChunk> {
  readonly #separator: Buffer;
  readonly #stallTimeout: number;
  readonly #execution: StreamSource;
  readonly #stopper = new AbortController();
  readonly #signal: AbortSignal;
  readonly #waiting: RowChunk[] = [];
  #started = false;
  #handedOut = false;
  #finished = false;
  #failure: { readonly error: unknown } | null = null;
  #nextEvent = Promise.withResolvers<void>();
  #stall: NodeJS.Timeout | undefined;

  /** The buffers are reused, because garbage collection is late to free external memory: 64 MB would pile up. */
  readonly #spareBuffers: Buffer[] = [];
  #bytes: Buffer = Buffer.allocUnsafeSlow(CHUNK_BYTES);
  #used = 0;
  #rows = 0;
  #isFirstRow = true;
  #head: readonly (string | null)[] | null = null;

  constructor({ separator, stallTimeout, signal, request }: RowStreamOptions) {
    this.#separator = Buffer.from(separator);
    this.#stallTimeout = stallTimeout;
    this.#signal = signal ? AbortSignal.any([toSignal(signal), this.#stopper.signal]) : this.#stopper.signal;
    const answer = { resolve: () => this.#finish(null), reject: (error: unknown) => this.#finish({ error }) };
    this.#execution = request(this, answer, this.#signal);
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<RowChunk, undefined>> {
    if (!this.#started) this.#execution.submit();
    this.#started = true;
    while (this.#waiting.length === 0 && !this.#finished) await this.#nextEvent.promise;
    if (this.#failure) throw this.#failure.error;
    const chunk = this.#waiting.shift();
    if (!chunk) return { done: true, value: undefined };
    this.#handedOut = true;
    if (this.#stall) this.#resume();
    return { done: false, value: chunk };
  }

  /** Called by `for await` on an early exit: cancels the query. */
  async return(): Promise<IteratorResult<RowChunk, undefined>> {
    this.#stopper.abort();
    this.#finish({ error: this.#stopper.signal.reason });
    return { done: true, value: undefined };
  }

  row(buffer: Buffer, start: number, end: number): void {
    if (this.#signal.aborted) return;
    // The column count (2 bytes) is followed by the length of the first column (4).
    const length = Math.max(0, readValueLength(buffer, start + 2, end));
    const separator = this.#isFirstRow ? 0 : this.#separator.length;
    if (this.#used + separator + length > this.#bytes.length) this.#startNextBuffer(separator + length);
    if (separator) this.#used += this.#separator.copy(this.#bytes, this.#used);
    this.#used += buffer.copy(this.#bytes, this.#used, start + 6, start + 6 + length);
    this.#rows++;
    if (this.#isFirstRow) this.#head = readValues(buffer, start + 6 + length, end);
    this.#isFirstRow = false;
  }

  complete(): void {}

  restart(): boolean {
    if (this.#handedOut) return false;
    this.#stopStall();
    this.#waiting.length = 0;
    this.#used = 0;
    this.#rows = 0;
    this.#isFirstRow = true;
    this.#head = null;
    return true;
  }

  #startNextBuffer(bytes: number): void {
    if (this.#rows > 0) this.#emit(false);
    this.#bytes = bytes > CHUNK_BYTES ? Buffer.allocUnsafeSlow(bytes) : this.#nextBuffer();
    this.#used = 0;
    if (this.#waiting.length >= MAX_WAITING_CHUNKS && !this.#stall) this.#pause();
  }

  #nextBuffer(): Buffer {
    return this.#spareBuffers.pop() ?? Buffer.allocUnsafeSlow(CHUNK_BYTES);
  }

  /** Splits a row that is larger than a chunk, so that the progress of a slow reader is visible. */
  #emit(last: boolean): void {
    const release = this.#releaseOf(this.#bytes);
    for (let start = 0; start === 0 || start < this.#used; start += CHUNK_BYTES) {
      const end = Math.min(start + CHUNK_BYTES, this.#used);
      const isEnd = end === this.#used;
      this.#waiting.push({
        data: this.#bytes.subarray(start, end),
        rows: isEnd ? this.#rows : 0,
        last: last && isEnd,
        head: this.#head,
        release,
      });
      this.#head = null;
    }
    this.#rows = 0;
    this.#wakeReader();
  }

  /** Returns the function that releases a buffer. Only buffers of the standard size are reused. */
  #releaseOf(bytes: Buffer): () => void {
    let released: Buffer | null = bytes;
    return () => {
      if (released?.length === CHUNK_BYTES) this.#spareBuffers.push(released);
      released = null;
    };
  }

  #pause(): void {
    this.#execution.connection?.pause();
    this.#stall = setTimeout(() => this.#stopper.abort(readerStalled()), this.#stallTimeout);
  }

  #resume(): void {
    this.#stopStall();
    this.#execution.connection?.resume();
  }

  #stopStall(): void {
    clearTimeout(this.#stall);
    this.#stall = undefined;
  }

  #finish(failure: { readonly error: unknown } | null): void {
    if (this.#finished) return;
    this.#finished = true;
    this.#failure = failure;
    this.#stopStall();
    if (failure) this.#waiting.length = 0;
    else this.#emit(true);
    this.#wakeReader();
  }

  #wakeReader(): void {
    this.#nextEvent.resolve();
    this.#nextEvent = Promise.withResolvers();
  }
}

function readValues(buffer: Buffer, start: number, end: number): (string | null)[] {
  const values: (string | null)[] = [];
  for (let at = start; at < end; ) {
    const length = readValueLength(buffer, at, end);
    at += 4;
    values.push(length < 0 ? null : buffer.toString("utf8", at, at + length));
    at += Math.max(0, length);
  }
  return values;
}

type RowReader<Cell> = (buffer: Buffer, start: number, end: number, owned: boolean) => Cell[];

/** Collects all rows of a result that fits in memory. */
export class CollectedRows<Cell> implements RestartableCollector {
  readonly rows: Cell[][] = [];
  rowCount = 0;
  readonly #read: RowReader<Cell>;

  private constructor(read: RowReader<Cell>) {
    this.#read = read;
  }

  static ofStrings(): CollectedRows<string | null> {
    return new CollectedRows(readRow);
  }

  /** Makes a collector that returns values of more than 32 kB as Buffers, which saves decoding and encoding. */
  static withBuffers(): CollectedRows<string | Buffer | null> {
    return new CollectedRows((buffer, start, end, owned) => readLargeRow(buffer, start, end, owned, LARGE_VALUE_BYTES));
  }

  row(buffer: Buffer, start: number, end: number, owned: boolean): void {
    this.rows.push(this.#read(buffer, start, end, owned));
  }

  restart(): boolean {
    this.rows.length = 0;
    return true;
  }

  complete(buffer: Buffer, start: number, end: number): void {
    this.rowCount = readRowCount(buffer, start, end);
  }
}

/** Collects the results of several statements in sequence. */
export class CollectedResults<Cell> implements RestartableCollector {
  readonly #collected: readonly CollectedRows<Cell>[];
  #index = 0;

  private constructor(collected: readonly CollectedRows<Cell>[]) {
    this.#collected = collected;
  }

  static ofStrings(count: number): CollectedResults<string | null> {
    return new CollectedResults(Array.from({ length: count }, () => CollectedRows.ofStrings()));
  }

  static withBuffers(count: number): CollectedResults<string | Buffer | null> {
    return new CollectedResults(Array.from({ length: count }, () => CollectedRows.withBuffers()));
  }

  get results(): StatementResult<Cell>[] {
    return this.#collected.map(({ rows, rowCount }) => ({ rows, rowCount, fields: null }));
  }

  /** The number of rows collected. */
  get rowCount(): number {
    return this.#collected.reduce((sum, { rows }) => sum + rows.length, 0);
  }

  row(buffer: Buffer, start: number, end: number, owned: boolean): void {
    this.#collected[this.#index]!.row(buffer, start, end, owned);
  }

  restart(): boolean {
    this.#index = 0;
    return this.#collected.every((rows) => rows.restart());
  }

  complete(buffer: Buffer, start: number, end: number): void {
    this.#collected[this.#index++]!.complete(buffer, start, end);
  }
}
