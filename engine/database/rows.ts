import type { RestartableCollector } from "./request.ts";
import { readLargeRow, readRow, readRowCount } from "./wire/decode.ts";

/** Beyond this a value is handed on as it came: below, a string is faster to send than a Buffer. */
const LARGE = 32 * 1024;

/** All rows of a result that fits in memory. */
export class Rows<Cell> implements RestartableCollector {
  readonly rows: Cell[][] = [];
  rowCount = 0;
  readonly #read: (buffer: Buffer, start: number, owned: boolean) => Cell[];

  private constructor(read: (buffer: Buffer, start: number, owned: boolean) => Cell[]) {
    this.#read = read;
  }

  static ofStrings(): Rows<string | null> {
    return new Rows(readRow);
  }

  /** Values of more than 32 kB come as Buffers, which spares their decoding and encoding. */
  static withBuffers(): Rows<string | Buffer | null> {
    return new Rows((buffer, start, owned) => readLargeRow(buffer, start, owned, LARGE));
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
export class RowsInTurn implements RestartableCollector {
  readonly results: readonly Rows<string | null>[];
  #index = 0;

  constructor(count: number) {
    this.results = Array.from({ length: count }, () => Rows.ofStrings());
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
