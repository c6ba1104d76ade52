import { concatenate, HttpError } from "#http";
import type { Stepwise } from "#runtime/concurrency";

/** The maximum size of the JSON: each row repeats the column names, so a small file with long names could exceed the memory. */
const MAX_CSV_BYTES = 64 * 2 ** 20;
const MAX_GROWTH = 8;
/** Postgres's limit for a table. */
const MAX_COLUMNS = 1_600;
/** Characters of CSV read, or of JSON written, between two pauses for other requests. */
const LENGTH_PER_STEP = 16 * 1024;
const [QUOTE, COMMA, LINE_FEED, CARRIAGE_RETURN] = [0x22, 0x2c, 0x0a, 0x0d];

type CsvRows = { readonly json: Buffer; readonly columns: readonly string[] };

/**
 * Converts CSV (RFC 4180) to rows of JSON objects of strings; `NULL` is null, quoted or not, as in PostgREST. Calls `holdMemory`
 * with the memory that they use.
 */
export function* csvToJson(text: string, holdMemory: (bytes: number) => void = () => {}): Stepwise<CsvRows> {
  const lines = new CsvLines(text);
  const output = new JsonOutput(Math.max(MAX_CSV_BYTES, MAX_GROWTH * text.length), holdMemory);
  let columns: readonly string[] | null = null;
  let names: readonly string[] = [];
  let opener = "[{";
  let pauseAt = LENGTH_PER_STEP;
  while (lines.next(columns?.length ?? MAX_COLUMNS)) {
    if (lines.at > pauseAt) {
      yield;
      pauseAt = lines.at + LENGTH_PER_STEP;
    }
    if (lines.isEmpty) continue;
    if (columns === null) {
      if (lines.length > MAX_COLUMNS) throw invalidCsv(`The CSV may not have more than ${MAX_COLUMNS} columns`);
      columns = Array.from({ length: lines.length }, (_, index) => lines.field(index));
      names = columns.map((name, index) => `${index === 0 ? "" : ","}${JSON.stringify(name)}:`);
      continue;
    }
    if (lines.length !== columns.length) throw invalidCsv("All lines must have same number of fields");
    output.write(opener);
    for (let index = 0; index < names.length; index++) {
      output.write(names[index]!);
      if (lines.lengthOf(index) > LENGTH_PER_STEP) yield* writeLongField(lines, index, output);
      else output.write(fieldToJson(lines.field(index)));
    }
    output.write("}");
    opener = ",{";
  }
  if (columns === null) throw invalidCsv("The first line of the CSV must name the columns");
  output.write(opener === "[{" ? "[]" : "]");
  return { json: yield* output.end(), columns };
}

function fieldToJson(field: string): string {
  return field === "NULL" ? "null" : JSON.stringify(field);
}

function* writeLongField(lines: CsvLines, index: number, output: JsonOutput): Stepwise<void> {
  output.write('"');
  for (const part of lines.partsOf(index)) {
    output.write(JSON.stringify(part).slice(1, -1));
    yield;
  }
  output.write('"');
}

/** Collects JSON and encodes it in pieces. */
class JsonOutput {
  readonly #pieces: Buffer[] = [];
  readonly #maxBytes: number;
  readonly #holdMemory: (bytes: number) => void;
  #bytes = 0;
  #waiting = "";

  constructor(maxBytes: number, holdMemory: (bytes: number) => void) {
    this.#maxBytes = maxBytes;
    this.#holdMemory = holdMemory;
  }

  write(text: string): void {
    this.#waiting += text;
    if (this.#waiting.length > LENGTH_PER_STEP) this.#encode();
  }

  *end(): Stepwise<Buffer> {
    this.#encode();
    return yield* concatenate(this.#pieces, this.#bytes);
  }

  #encode(): void {
    const piece = Buffer.from(this.#waiting);
    this.#waiting = "";
    this.#bytes += piece.length;
    if (this.#bytes > this.#maxBytes) throw csvTooLarge(this.#maxBytes);
    this.#holdMemory(piece.length);
    this.#pieces.push(piece);
  }
}

/** Reads one line at a time. */
class CsvLines {
  readonly #text: string;
  /** Start and end positions of the fields of the line, alternating, without the quotes. */
  readonly #spans: number[] = [];
  at: number;

  constructor(text: string) {
    this.#text = text;
    // Spreadsheets write a byte order mark for UTF-8.
    this.at = text.startsWith("\uFEFF") ? 1 : 0;
  }

  /** The number of fields of the line; one more than requested if it has more. */
  get length(): number {
    return this.#spans.length / 2;
  }

  get isEmpty(): boolean {
    return this.#spans.length === 2 && this.lengthOf(0) === 0;
  }

  /** Reads the next line; false at the end. */
  next(maxFields: number): boolean {
    const text = this.#text;
    const spans = this.#spans;
    if (this.at > text.length) return false;
    spans.length = 0;
    for (;;) {
      const end = text.charCodeAt(this.at) === QUOTE ? this.#quoted() : this.#plain();
      const isOver = text.charCodeAt(end) !== COMMA;
      this.at = end + (isOver && text.startsWith("\r\n", end) ? 2 : 1);
      if (isOver || this.length > maxFields) return true;
    }
  }

  lengthOf(index: number): number {
    return this.#spans[2 * index + 1]! - this.#spans[2 * index]!;
  }

  field(index: number): string {
    const [start, end] = [this.#spans[2 * index]!, this.#spans[2 * index + 1]!];
    return this.#unquoted(start, end);
  }

  /** Yields a long field in parts, never split inside a surrogate pair or a doubled quote. */
  *partsOf(index: number): Generator<string> {
    const end = this.#spans[2 * index + 1]!;
    for (let start = this.#spans[2 * index]!; start < end; ) {
      let stop = Math.min(start + LENGTH_PER_STEP, end);
      if (stop < end && isLowSurrogate(this.#text.charCodeAt(stop))) stop++;
      let quotes = 0;
      while (this.#text.charCodeAt(stop - 1 - quotes) === QUOTE && stop - quotes > start) quotes++;
      if (quotes % 2 === 1 && stop < end) stop++;
      yield this.#unquoted(start, stop);
      start = stop;
    }
  }

  #unquoted(start: number, end: number): string {
    const raw = this.#text.slice(start, end);
    return raw.includes('"') ? raw.replaceAll('""', '"') : raw;
  }

  /** Reads a plain field. Returns the position after it. */
  #plain(): number {
    const text = this.#text;
    let end = this.at;
    for (; end < text.length; end++) {
      const character = text.charCodeAt(end);
      if (character === COMMA || character === LINE_FEED || character === CARRIAGE_RETURN) break;
      if (character === QUOTE) throw misplacedQuote(text, end);
    }
    this.#spans.push(this.at, end);
    return end;
  }

  /** Reads a quoted field, in which quotes are doubled. */
  #quoted(): number {
    const text = this.#text;
    let close = this.at + 1;
    for (; close < text.length; close++) {
      if (text.charCodeAt(close) !== QUOTE) continue;
      if (text.charCodeAt(close + 1) !== QUOTE) break;
      close++;
    }
    const end = close + 1;
    if (close >= text.length || (end < text.length && !",\r\n".includes(text[end]!)))
      throw misplacedQuote(text, this.at);
    this.#spans.push(this.at + 1, close);
    return end;
  }
}

function isLowSurrogate(character: number): boolean {
  return character >= 0xdc00 && character < 0xe000;
}

function misplacedQuote(text: string, at: number): HttpError {
  let line = 1;
  for (let index = 0; index < at; index++) if (text.charCodeAt(index) === LINE_FEED) line++;
  return invalidCsv(`Misplaced quote in line ${line} of the CSV`);
}

function csvTooLarge(max: number): HttpError {
  return new HttpError(413, "PAYLOAD_TOO_LARGE", `As JSON the body is larger than ${max} bytes.`, {
    hint: "Send it in several requests.",
  });
}

function invalidCsv(message: string): HttpError {
  return new HttpError(400, "PGRST102", message);
}
