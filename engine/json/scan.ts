import type { Stepwise } from "../stepwise.ts";
import {
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COMMA,
  FAILED,
  OPEN_BRACE,
  OPEN_BRACKET,
  QUOTE,
  skipCharacters,
  skipColon,
  skipLiteral,
  skipSpace,
  skipString,
} from "./tokens.ts";

type Counts = {
  /** Scalars, lists and objects, whatever they lie within. */
  readonly values: number;
  /** How deep lists and objects lie within each other. */
  readonly levels: number;
};

/** What a JSON text is, before anything is made of it. */
export type JsonScan =
  | ({ readonly kind: "object" } & Counts)
  | ({ readonly kind: "list" } & Counts)
  | ({ readonly kind: "scalar" } & Counts)
  | { readonly kind: "invalid" }
  | { readonly kind: "too deep"; readonly mostLevels: number };

/** Is told of records while they are read: of the one object that a text is, or of the objects in its one list. */
export type RecordVisitor = {
  beginRecord(): void;
  /** Where a name, quotes included, and its value begin and end, and how many values that is. */
  member(nameStart: number, nameEnd: number, valueStart: number, valueEnd: number, values: number): void;
  endRecord(start: number, end: number): void;
  /** Something else in the list. */
  other(): void;
};

/** Deeper than Postgres reads, and little to remember of a text that only nests. */
const MOST_LEVELS = 10_000;
const BYTES_PER_STEP = 16 * 1024;

const INVALID: JsonScan = { kind: "invalid" };

/** Reads a whole text once, from its beginning to its end, by a loop: a hostile one may nest as deep as it is long. */
export function* scanJson(
  bytes: Buffer,
  visitor: RecordVisitor | null = null,
  mostLevels = MOST_LEVELS,
): Stepwise<JsonScan> {
  /** What ends the lists and objects that have begun. */
  const closers: number[] = [];
  let at = skipSpace(bytes, 0);
  const isList = bytes[at] === OPEN_BRACKET;
  const kind = isList ? "list" : bytes[at] === OPEN_BRACE ? "object" : "scalar";
  const recordLevel = visitor === null ? FAILED : isList ? 2 : 1;
  let levels = 0;
  let values = 0;
  let recordStart = at;
  let nameStart = 0;
  let nameEnd = 0;
  let valueStart = 0;
  let valuesBefore = 0;
  let pauseAt = BYTES_PER_STEP;

  for (;;) {
    // A value begins here.
    if (at >= pauseAt) {
      yield;
      pauseAt = at + BYTES_PER_STEP;
    }
    values += 1;
    const byte = bytes[at];
    const level = closers.length + 1;
    if (isList && level === 2) recordStart = at;
    if (byte === OPEN_BRACE || byte === OPEN_BRACKET) {
      const closer = byte === OPEN_BRACE ? CLOSE_BRACE : CLOSE_BRACKET;
      if (level > mostLevels) return { kind: "too deep", mostLevels };
      if (level > levels) levels = level;
      if (level === recordLevel) {
        if (byte === OPEN_BRACE) visitor!.beginRecord();
        else visitor!.other();
      }
      at = skipSpace(bytes, at + 1);
      if (bytes[at] !== closer) {
        closers.push(closer);
        if (closer === CLOSE_BRACKET) continue;
        const end = skipString(bytes, at);
        const start = at;
        at = skipColon(bytes, end);
        if (at === FAILED) return INVALID;
        if (level === recordLevel) {
          nameStart = start;
          nameEnd = end;
          valueStart = at;
          valuesBefore = values;
        }
        continue;
      }
      at += 1;
      if (level === recordLevel && byte === OPEN_BRACE) visitor!.endRecord(recordStart, at);
    } else {
      if (level === recordLevel && isList) visitor!.other();
      if (byte === QUOTE) {
        let end = skipCharacters(bytes, at + 1, pauseAt);
        // It may be as long as the body.
        while (end < FAILED) {
          yield;
          pauseAt = ~end + BYTES_PER_STEP;
          end = skipCharacters(bytes, ~end, pauseAt);
        }
        at = end;
      } else {
        at = skipLiteral(bytes, at);
      }
      if (at === FAILED) return INVALID;
    }

    // A value has ended here, and perhaps what it lies within.
    for (;;) {
      const depth = closers.length;
      if (depth === 0) return skipSpace(bytes, at) === bytes.length ? { kind, values, levels } : INVALID;
      const closer = closers[depth - 1];
      if (depth === recordLevel && closer === CLOSE_BRACE) {
        visitor!.member(nameStart, nameEnd, valueStart, at, values - valuesBefore);
      }
      at = skipSpace(bytes, at);
      if (bytes[at] === COMMA) {
        at = skipSpace(bytes, at + 1);
        if (closer === CLOSE_BRACE) {
          const end = skipString(bytes, at);
          const start = at;
          at = skipColon(bytes, end);
          if (at === FAILED) return INVALID;
          if (depth === recordLevel) {
            nameStart = start;
            nameEnd = end;
            valueStart = at;
            valuesBefore = values;
          }
        }
        break;
      }
      if (bytes[at] !== closer) return INVALID;
      at += 1;
      closers.pop();
      if (depth === recordLevel && closer === CLOSE_BRACE) visitor!.endRecord(recordStart, at);
    }
  }
}
