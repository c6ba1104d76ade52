import { ApiError } from "../../../engine/errors.ts";

type Field = { readonly value: string; readonly end: number };

/** The rows of CSV (RFC 4180) as JSON objects of strings; `NULL` is null, quoted or not, as in PostgREST. */
export function csvToJson(text: string): { readonly json: string; readonly columns: readonly string[] } {
  const lines = readLines(text);
  const { value: columns } = lines.next();
  if (columns === undefined) throw unreadable("The first line of the CSV must name the columns");
  const names = columns.map((name) => JSON.stringify(name));
  const rows: string[] = [];
  for (const fields of lines) {
    if (fields.length !== columns.length) throw unreadable("All lines must have same number of fields");
    rows.push(`{${fields.map((field, index) => `${names[index]}:${toJson(field)}`)}}`);
  }
  return { json: `[${rows}]`, columns };
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

function unreadable(message: string): ApiError {
  return new ApiError(400, "PGRST102", message);
}
