import { type AbortLike, toSignal } from "../concurrency/abort.ts";
import { readerStalled } from "./database-errors.ts";
import { readInt32, readLargeRow, readRow, readRowCount } from "./message-decoder.ts";
import type { ExecutionCallbacks, RestartableCollector, StatementExecution } from "./statement-execution.ts";

/** Beyond this a value is handed on as it came: below, a string is faster to send than a Buffer. */
const LARGE_VALUE_BYTES = 32 * 1024;

const CHUNK_BYTES = 64 * 1024;
/**
 * When so many chunks wait, 4 MB, the server is made to wait too. Most that is read is shorter than that: a slow reader
 * then keeps no connection, and her slowness is not counted against a role's statement_timeout.
 */
const MAX_WAITING_CHUNKS = 64;

export type RowChunk = {
  readonly data: Buffer;
  /** How many rows end in it. */
  readonly rows: number;
  readonly last: boolean;
  /** The first chunk alone has what stands in the first row behind its text; null where there is no row. */
  readonly head: readonly (string | null)[] | null;
  /** Says that the bytes have been sent and may be overwritten; without it they are left to the garbage collector. */
  release(): void;
};

type RowStreamOptions = {
  /** Stands between two rows, also where a new chunk begins between them. */
  readonly separator: string;
  /** How long nobody may read, in milliseconds. */
  readonly stallTimeout: number;
  readonly signal: AbortLike | undefined;
  readonly request: (
    collector: RestartableCollector,
    answer: ExecutionCallbacks,
    signal: AbortSignal,
  ) => StatementExecution;
};

/**
 * The rows' first column, a text, joined, in chunks of 64 kB at most; memory stays flat however many there are. The first
 * chunk comes when 64 kB have, or else everything and ReadyForQuery: so an early error still gets a status of its own.
 */
export class RowStream implements RestartableCollector, AsyncIterableIterator<RowChunk> {
  readonly #separator: Buffer;
  readonly #stallTimeout: number;
  readonly #execution: StatementExecution;
  readonly #stopper = new AbortController();
  readonly #signal: AbortSignal;
  readonly #waiting: RowChunk[] = [];
  #started = false;
  #handedOut = false;
  #finished = false;
  #failure: { readonly error: unknown } | null = null;
  #nextEvent = Promise.withResolvers<void>();
  #stall: NodeJS.Timeout | undefined;

  /** Garbage collection notices external memory late: 64 MB of it would pile up. */
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

  /** Called by `for await` when its body is left early: ends the query. */
  async return(): Promise<IteratorResult<RowChunk, undefined>> {
    this.#stopper.abort();
    this.#finish({ error: this.#stopper.signal.reason });
    return { done: true, value: undefined };
  }

  row(buffer: Buffer, start: number, end: number): void {
    if (this.#signal.aborted) return;
    // Behind the number of columns (2 bytes) stands the first one's length (4).
    const length = Math.max(0, readInt32(buffer, start + 2));
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

  /** A row that is larger than a chunk is cut, so that whoever takes it slowly is seen to take it. */
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

  /** Only what was not cut is used again. */
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
    const length = readInt32(buffer, at);
    at += 4;
    values.push(length < 0 ? null : buffer.toString("utf8", at, at + length));
    at += Math.max(0, length);
  }
  return values;
}

/** All rows of a result that fits in memory. */
export class CollectedRows<Cell> implements RestartableCollector {
  readonly rows: Cell[][] = [];
  rowCount = 0;
  readonly #read: (buffer: Buffer, start: number, owned: boolean) => Cell[];

  private constructor(read: (buffer: Buffer, start: number, owned: boolean) => Cell[]) {
    this.#read = read;
  }

  static ofStrings(): CollectedRows<string | null> {
    return new CollectedRows(readRow);
  }

  /** Values of more than 32 kB come as Buffers, which spares their decoding and encoding. */
  static withBuffers(): CollectedRows<string | Buffer | null> {
    return new CollectedRows((buffer, start, owned) => readLargeRow(buffer, start, owned, LARGE_VALUE_BYTES));
  }

  row(buffer: Buffer, start: number, _end: number, owned: boolean): void {
    this.rows.push(this.#read(buffer, start, owned));
  }

  restart(): boolean {
    this.rows.length = 0;
    return true;
  }

  complete(buffer: Buffer, start: number, end: number): void {
    this.rowCount = readRowCount(buffer, start, end);
  }
}

/** The results of several statements, as they come one after the other. */
export class CollectedResults implements RestartableCollector {
  readonly results: readonly CollectedRows<string | null>[];
  #index = 0;

  constructor(count: number) {
    this.results = Array.from({ length: count }, () => CollectedRows.ofStrings());
  }

  row(buffer: Buffer, start: number, end: number, owned: boolean): void {
    this.results[this.#index]!.row(buffer, start, end, owned);
  }

  restart(): boolean {
    this.#index = 0;
    return this.results.every((rows) => rows.restart());
  }

  complete(buffer: Buffer, start: number, end: number): void {
    this.results[this.#index++]!.complete(buffer, start, end);
  }
}
