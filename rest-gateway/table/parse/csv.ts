import { ApiError } from "../../../engine/errors.ts";

/** Each row of JSON names its columns again: a few lines of CSV below long names would become more than memory holds. */
const MOST_BYTES = 64 * 2 ** 20;
const MOST_GROWTH = 8;
/** Rows are encoded many at a time, and never all at once. */
const PIECE_LENGTH = 64 * 1024;

type Field = { readonly value: string; readonly end: number };

/** The rows of CSV (RFC 4180) as JSON objects of strings; `NULL` is null, quoted or not, as in PostgREST. */
export function csvToJson(text: string): { readonly json: Buffer; readonly columns: readonly string[] } {
  const lines = readLines(text);
  const { value: columns } = lines.next();
  if (columns === undefined) throw unreadable("The first line of the CSV must name the columns");
  const json = encode(jsonRows(columns, lines), Math.max(MOST_BYTES, MOST_GROWTH * text.length));
  return { json, columns };
}

/** `[`, `{"a":"1"}`, `,{"a":"2"}`, `]` */
function* jsonRows(columns: readonly string[], lines: Iterable<string[]>): Generator<string> {
  const names = columns.map((name) => JSON.stringify(name));
  let separator = "";
  yield "[";
  for (const fields of lines) {
    if (fields.length !== columns.length) throw unreadable("All lines must have same number of fields");
    yield `${separator}{${fields.map((field, index) => `${names[index]}:${toJson(field)}`)}}`;
    separator = ",";
  }
  yield "]";
}

function encode(texts: Iterable<string>, most: number): Buffer {
  const pieces: Buffer[] = [];
  let bytes = 0;
  let waiting = "";
  const encodeWaiting = () => {
    const piece = Buffer.from(waiting);
    bytes += piece.length;
    if (bytes > most) throw tooLarge(most);
    pieces.push(piece);
    waiting = "";
  };
  for (const text of texts) {
    waiting += text;
    if (waiting.length > PIECE_LENGTH) encodeWaiting();
  }
  encodeWaiting();
  return Buffer.concat(pieces, bytes);
}

/** The fields of each line that is not empty. */
function* readLines(text: string): Generator<string[], undefined> {
  let fields: string[] = [];
  // What spreadsheets put in front to say that it is UTF-8.
  let at = text.startsWith("\uFEFF") ? 1 : 0;
  for (;;) {
    const { value, end } = text[at] === '"' ? readQuoted(text, at) : readPlain(text, at);
    fields.push(value);
    at = text.startsWith("\r\n", end) ? end + 2 : end + 1;
    if (text[end] === ",") continue;
    if (fields.length > 1 || value !== "") yield fields;
    if (end === text.length) return;
    fields = [];
  }
}

function readPlain(text: string, start: number): Field {
  const mark = /[",\r\n]/g;
  mark.lastIndex = start;
  const end = mark.exec(text)?.index ?? text.length;
  if (text[end] === '"') throw misplacedQuote(text, end);
  return { value: text.slice(start, end), end };
}

/** A quote within is written twice. */
function readQuoted(text: string, start: number): Field {
  let close = text.indexOf('"', start + 1);
  while (close >= 0 && text[close + 1] === '"') close = text.indexOf('"', close + 2);
  const end = close + 1;
  if (close < 0 || (end < text.length && !",\r\n".includes(text[end]!))) throw misplacedQuote(text, start);
  return { value: text.slice(start + 1, close).replaceAll('""', '"'), end };
}

function toJson(field: string): string {
  return field === "NULL" ? "null" : JSON.stringify(field);
}

function misplacedQuote(text: string, at: number): ApiError {
  return unreadable(`Misplaced quote in line ${text.slice(0, at).split("\n").length} of the CSV`);
}

function tooLarge(most: number): ApiError {
  return new ApiError(413, "PAYLOAD_TOO_LARGE", `As JSON the body is larger than ${most} bytes.`, {
    hint: "Send it in several requests.",
  });
}

function unreadable(message: string): ApiError {
  return new ApiError(400, "PGRST102", message);
}
