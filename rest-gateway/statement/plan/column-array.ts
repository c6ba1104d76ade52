import type { Stepwise } from "../../../engine/stepwise.ts";
import type { Grid, Payload } from "../intent.ts";

const [QUOTE, BACKSLASH, COMMA, LETTER_N] = [0x22, 0x5c, 0x2c, 0x6e];
const [OPEN_BRACE, CLOSE_BRACE, OPEN_BRACKET] = [0x7b, 0x7d, 0x5b];

const BYTES_PER_STEP = 16 * 1024;

type Wanted = { readonly name: string; readonly isJson: boolean };

/**
 * `{"a",5,null}`: an array whose elements are what Postgres would read for one column from each of the rows. Values
 * are copied as they were written, for a number that has been a number here may not be the same one.
 */
export function* columnArray({ json, grid }: Payload, { name, isJson }: Wanted): Stepwise<Buffer> {
  const { keys, spans } = grid!;
  const first = 2 * keys.indexOf(name);
  const step = 2 * keys.length;
  const array = Buffer.allocUnsafe(mostBytes(grid!, first, step));
  const put = isJson ? putJson : putScalar;
  let end = 0;
  let pauseAt = BYTES_PER_STEP;
  for (let index = first; index < spans.length; index += step) {
    if (end > pauseAt) {
      yield;
      pauseAt = end + BYTES_PER_STEP;
    }
    array[end++] = index === first ? OPEN_BRACE : COMMA;
    end = put(json, spans[index]!, spans[index + 1]!, array, end);
  }
  array[end++] = CLOSE_BRACE;
  return array.subarray(0, end);
}

/** Each byte escaped, with quotes and a comma, between braces. */
function mostBytes({ spans }: Grid, first: number, step: number): number {
  let bytes = 2;
  for (let index = first; index < spans.length; index += step) {
    bytes += 2 * (spans[index + 1]! - spans[index]!) + 3;
  }
  return bytes;
}

type Put = (json: Buffer, start: number, end: number, array: Buffer, at: number) => number;

/** Without an escape a text is quoted there as it is here. */
const putScalar: Put = (json, start, end, array, at) => {
  const byte = json[start];
  if (byte === OPEN_BRACE || byte === OPEN_BRACKET) return putQuoted(json, start, end, array, at);
  let to = at;
  for (let from = start; from < end; from += 1) {
    if (json[from] === BACKSLASH) return putText(JSON.parse(json.toString("utf8", start, end)), array, at);
    array[to++] = json[from]!;
  }
  return to;
};

/** A null is the column's, not JSON's. A text of its own is written anew, as Postgres does it. */
const putJson: Put = (json, start, end, array, at) => {
  if (json[start] === LETTER_N) return putScalar(json, start, end, array, at);
  const isText = json[start] === QUOTE;
  if (!isText || json.subarray(start, end).indexOf(BACKSLASH) < 0) return putQuoted(json, start, end, array, at);
  return putText(JSON.stringify(JSON.parse(json.toString("utf8", start, end))), array, at);
};

function putText(text: string, array: Buffer, at: number): number {
  const bytes = Buffer.from(text);
  return putQuoted(bytes, 0, bytes.length, array, at);
}

const putQuoted: Put = (json, start, end, array, at) => {
  let to = at;
  array[to++] = QUOTE;
  for (let from = start; from < end; from += 1) {
    const byte = json[from]!;
    if (byte === QUOTE || byte === BACKSLASH) array[to++] = BACKSLASH;
    array[to++] = byte;
  }
  array[to++] = QUOTE;
  return to;
};
