/** A record of a CSV file. An empty cell without quotes is null, `""` is the empty string. */
type CsvRecord = { readonly line: number; readonly cells: readonly (string | null)[] };

/** The reason why a file is no CSV, with the line of the fault. */
export class CsvSyntaxError extends Error {
  readonly line: number;
  readonly reason: "unclosedQuote" | "textAfterQuote";

  constructor(line: number, reason: CsvSyntaxError["reason"]) {
    super(`${reason} in line ${line}`);
    this.name = "CsvSyntaxError";
    this.line = line;
    this.reason = reason;
  }
}

const CSV_DELIMITERS = [",", ";", "\t"] as const;
export type CsvDelimiter = (typeof CSV_DELIMITERS)[number];

const BYTE_ORDER_MARK = "\uFEFF";

/** Returns the delimiter that occurs most often outside quotes in the first line. */
export function detectDelimiter(text: string): CsvDelimiter {
  const unquoted = text.replace(/"(?:[^"]|"")*"?/g, "");
  const header = /^[^\r\n]*/.exec(unquoted)![0];
  const counts = CSV_DELIMITERS.map((delimiter) => header.split(delimiter).length);
  return CSV_DELIMITERS[counts.indexOf(Math.max(...counts))]!;
}

type Position = "cellStart" | "bare" | "quoted" | "quoteEnd";

/** Reads RFC 4180 in pieces of any length; lines end with LF, CRLF or CR. */
export class CsvReader {
  readonly #delimiter: string;
  #position: Position = "cellStart";
  #cells: (string | null)[] = [];
  #cell = "";
  #line = 1;
  #recordLine = 1;
  #quoteLine = 1;
  #isFirst = true;
  /** True if the last character was a CR; a LF may follow. */
  #afterReturn = false;
  #records: CsvRecord[] = [];

  constructor(delimiter: CsvDelimiter = ",") {
    this.#delimiter = delimiter;
  }

  /** Returns the records that this piece completes. */
  read(piece: string): readonly CsvRecord[] {
    let at = 0;
    if (this.#isFirst && piece !== "") {
      this.#isFirst = false;
      if (piece.startsWith(BYTE_ORDER_MARK)) at = 1;
    }
    while (at < piece.length) at = this.#position === "quoted" ? this.#readQuoted(piece, at) : this.#step(piece, at);
    return this.#take();
  }

  /** Returns the last record, which needs no line end. */
  end(): readonly CsvRecord[] {
    if (this.#position === "quoted") throw new CsvSyntaxError(this.#quoteLine, "unclosedQuote");
    if (this.#position !== "cellStart" || this.#cells.length > 0) this.#endRecord();
    return this.#take();
  }

  #take(): readonly CsvRecord[] {
    const records = this.#records;
    this.#records = [];
    return records;
  }

  #step(piece: string, at: number): number {
    const character = piece[at]!;
    const afterReturn = this.#afterReturn;
    this.#afterReturn = character === "\r";
    // The CR before it has already ended the record.
    if (character === "\n" && afterReturn) return at + 1;
    if (character === this.#delimiter) this.#endCell();
    else if (character === "\n" || character === "\r") {
      this.#endRecord();
      this.#recordLine = ++this.#line;
    } else return this.#readCell(piece, at, character);
    return at + 1;
  }

  #readCell(piece: string, at: number, character: string): number {
    if (character === '"' && this.#position === "cellStart") {
      this.#position = "quoted";
      this.#quoteLine = this.#line;
      return at + 1;
    }
    if (this.#position === "quoteEnd") {
      if (character !== '"') throw new CsvSyntaxError(this.#line, "textAfterQuote");
      this.#position = "quoted";
      this.#cell += '"';
      return at + 1;
    }
    this.#position = "bare";
    const end = this.#endOfBareText(piece, at);
    this.#cell += piece.slice(at, end);
    return end;
  }

  #endOfBareText(piece: string, from: number): number {
    let at = from;
    while (at < piece.length && piece[at] !== this.#delimiter && piece[at] !== "\n" && piece[at] !== "\r") at++;
    return at;
  }

  #readQuoted(piece: string, from: number): number {
    const quote = piece.indexOf('"', from);
    const end = quote === -1 ? piece.length : quote;
    const text = piece.slice(from, end);
    this.#cell += text;
    this.#line += text.match(/\r\n|\n|\r/g)?.length ?? 0;
    if (quote === -1) return end;
    this.#position = "quoteEnd";
    return end + 1;
  }

  #endCell(): void {
    this.#cells.push(this.#position === "cellStart" ? null : this.#cell);
    this.#cell = "";
    this.#position = "cellStart";
  }

  #endRecord(): void {
    this.#endCell();
    this.#records.push({ line: this.#recordLine, cells: this.#cells });
    this.#cells = [];
  }
}
