import type { Stepwise } from "../concurrency/stepwise.ts";

// Scans JSON tokens (RFC 8259) in place, byte by byte, without creating values. Each function takes a position and returns the one after
// the token, or FAILED; scanning from FAILED fails again.
const FAILED = -1;

export const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
export const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const COMMA = 0x2c;
const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const SPACE = 0x20;
const [COLON, MINUS, PLUS, DOT, ZERO, NINE, LETTER_E, LETTER_U] = [0x3a, 0x2d, 0x2b, 0x2e, 0x30, 0x39, 0x65, 0x75];

type JsonCounts = {
  /** The number of scalars, lists and objects at all levels. */
  readonly values: number;
  /** The nesting depth of lists and objects. */
  readonly levels: number;
};

/** The structure of a JSON text, before values are created. */
export type JsonScan =
  | ({ readonly kind: "object" } & JsonCounts)
  | ({ readonly kind: "list" } & JsonCounts)
  | ({ readonly kind: "scalar" } & JsonCounts)
  | { readonly kind: "invalid" }
  | { readonly kind: "too deep"; readonly maxLevels: number };

/** Called for records while they are scanned: the one object, or the objects of the one list. */
export type RecordVisitor = {
  beginRecord(): void;
  /** Receives the start and end of a name, with quotes, and of its value, and the number of values in it. */
  member(nameStart: number, nameEnd: number, valueStart: number, valueEnd: number, values: number): void;
  endRecord(start: number, end: number): void;
  /** Reports another value in the list. */
  other(): void;
};

/** The depth exceeds the limit of Postgres, and bounds the memory for a text that only nests. */
const MAX_LEVELS = 10_000;
const BYTES_PER_STEP = 16 * 1024;

const INVALID_JSON: JsonScan = { kind: "invalid" };

/**
 * Scans a text once, without recursion: a hostile text may nest as deep as it is long. It is one function, since nearly all
 * of its parts change the same local variables for each token.
 */
export function* scanJson(
  bytes: Buffer,
  visitor: RecordVisitor | null = null,
  maxLevels = MAX_LEVELS,
): Stepwise<JsonScan> {
  /** The closing characters of the open lists and objects. */
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
      if (level > maxLevels) return { kind: "too deep", maxLevels };
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
        if (at === FAILED) return INVALID_JSON;
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
        // The string may be as long as the body.
        while (end < FAILED) {
          yield;
          pauseAt = ~end + BYTES_PER_STEP;
          end = skipCharacters(bytes, ~end, pauseAt);
        }
        at = end;
      } else {
        at = skipLiteral(bytes, at);
      }
      if (at === FAILED) return INVALID_JSON;
    }

    // A value has ended here, and possibly the lists and objects around it.
    for (;;) {
      const depth = closers.length;
      if (depth === 0) return skipSpace(bytes, at) === bytes.length ? { kind, values, levels } : INVALID_JSON;
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
          if (at === FAILED) return INVALID_JSON;
          if (depth === recordLevel) {
            nameStart = start;
            nameEnd = end;
            valueStart = at;
            valuesBefore = values;
          }
        }
        break;
      }
      if (bytes[at] !== closer) return INVALID_JSON;
      at += 1;
      closers.pop();
      if (depth === recordLevel && closer === CLOSE_BRACE) visitor!.endRecord(recordStart, at);
    }
  }
}

export function skipSpace(bytes: Buffer, start: number): number {
  let at = start;
  for (;;) {
    const byte = bytes[at];
    if (byte !== SPACE && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) return at;
    at += 1;
  }
}

function skipColon(bytes: Buffer, start: number): number {
  const at = skipSpace(bytes, start);
  return bytes[at] === COLON ? skipSpace(bytes, at + 1) : FAILED;
}

function skipString(bytes: Buffer, start: number): number {
  return bytes[start] === QUOTE ? skipCharacters(bytes, start + 1, bytes.length) : FAILED;
}

/** Skips to the end of a string. If that is not reached before `pauseAt`, returns the complement (`~`) of the position to continue at. */
function skipCharacters(bytes: Buffer, start: number, pauseAt: number): number {
  const end = Math.min(pauseAt, bytes.length);
  let at = start;
  while (at < end) {
    const byte = bytes[at]!;
    if (byte < SPACE) return FAILED;
    at += 1;
    if (byte === QUOTE) return at;
    if (byte === BACKSLASH) {
      at = skipEscape(bytes, at);
      if (at === FAILED) return FAILED;
    }
  }
  return at < bytes.length ? ~at : FAILED;
}

/** `at` is the position after the backslash. */
function skipEscape(bytes: Buffer, at: number): number {
  if (bytes[at] !== LETTER_U) return isOneOf(bytes[at], '"\\/bfnrt') ? at + 1 : FAILED;
  for (let digit = at + 1; digit <= at + 4; digit += 1) {
    if (!isOneOf(bytes[digit], "0123456789abcdefABCDEF")) return FAILED;
  }
  return at + 5;
}

/** Skips a number, true, false or null. */
function skipLiteral(bytes: Buffer, at: number): number {
  switch (bytes[at]) {
    case 0x74:
      return skipWord(bytes, at, "true");
    case 0x66:
      return skipWord(bytes, at, "false");
    case 0x6e:
      return skipWord(bytes, at, "null");
    default:
      return skipNumber(bytes, at);
  }
}

function skipWord(bytes: Buffer, at: number, word: string): number {
  for (let index = 0; index < word.length; index += 1) {
    if (bytes[at + index] !== word.charCodeAt(index)) return FAILED;
  }
  return at + word.length;
}

function skipNumber(bytes: Buffer, start: number): number {
  let at = bytes[start] === MINUS ? start + 1 : start;
  at = bytes[at] === ZERO ? at + 1 : skipDigits(bytes, at);
  if (bytes[at] === DOT) at = skipDigits(bytes, at + 1);
  if (at !== FAILED && (bytes[at]! | SPACE) === LETTER_E) {
    const isSigned = bytes[at + 1] === MINUS || bytes[at + 1] === PLUS;
    at = skipDigits(bytes, isSigned ? at + 2 : at + 1);
  }
  return at;
}

/** Skips at least one digit. */
function skipDigits(bytes: Buffer, start: number): number {
  let at = start;
  while (bytes[at]! >= ZERO && bytes[at]! <= NINE) at += 1;
  return at > start ? at : FAILED;
}

function isOneOf(byte: number | undefined, characters: string): boolean {
  return byte !== undefined && characters.includes(String.fromCharCode(byte));
}
