// JSON read in place, byte by byte, without making values of it. Each function starts at a position and answers the one
// behind what it skipped, or FAILED; reading on from FAILED fails again.
export const FAILED = -1;

export const OPEN_BRACE = 0x7b;
export const CLOSE_BRACE = 0x7d;
export const OPEN_BRACKET = 0x5b;
export const CLOSE_BRACKET = 0x5d;
export const COMMA = 0x2c;
const [COLON, QUOTE, BACKSLASH, SPACE] = [0x3a, 0x22, 0x5c, 0x20];
const [MINUS, PLUS, DOT, ZERO, NINE, LETTER_E, LETTER_U] = [0x2d, 0x2b, 0x2e, 0x30, 0x39, 0x65, 0x75];

/** Deeper than any document is, and little to remember of one that only nests. */
const DEEPEST = 10_000;

export function skipSpace(bytes: Buffer, start: number): number {
  let at = start;
  for (;;) {
    const byte = bytes[at];
    if (byte !== SPACE && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) return at;
    at += 1;
  }
}

export function skipValue(bytes: Buffer, start: number): number {
  const isNested = bytes[start] === OPEN_BRACE || bytes[start] === OPEN_BRACKET;
  return isNested ? skipNested(bytes, start) : skipScalar(bytes, start);
}

/** Not by recursion: a hostile body may nest as deep as it is long. */
function skipNested(bytes: Buffer, start: number): number {
  const closers: number[] = [];
  let at = start;
  do {
    const opener = bytes[at];
    if (opener === OPEN_BRACE || opener === OPEN_BRACKET) {
      const closer = opener === OPEN_BRACE ? CLOSE_BRACE : CLOSE_BRACKET;
      at = skipSpace(bytes, at + 1);
      if (bytes[at] !== closer) {
        if (closers.push(closer) > DEEPEST) return FAILED;
        if (closer === CLOSE_BRACE) at = skipKey(bytes, at);
        continue;
      }
      at += 1;
    } else {
      at = skipScalar(bytes, at);
    }
    at = skipToNext(bytes, at, closers);
  } while (closers.length > 0 && at !== FAILED);
  return at;
}

/** From behind a value to the beginning of the next one, or behind all that is closed. */
function skipToNext(bytes: Buffer, start: number, closers: number[]): number {
  let at = start;
  while (closers.length > 0) {
    at = skipSpace(bytes, at);
    const closer = closers.at(-1)!;
    if (bytes[at] === COMMA) {
      at = skipSpace(bytes, at + 1);
      return closer === CLOSE_BRACE ? skipKey(bytes, at) : at;
    }
    if (bytes[at] !== closer) return FAILED;
    closers.pop();
    at += 1;
  }
  return at;
}

/** `"name" : `, up to the value */
function skipKey(bytes: Buffer, start: number): number {
  return skipColon(bytes, skipString(bytes, start));
}

export function skipColon(bytes: Buffer, start: number): number {
  const at = skipSpace(bytes, start);
  return bytes[at] === COLON ? skipSpace(bytes, at + 1) : FAILED;
}

export function skipString(bytes: Buffer, start: number): number {
  if (bytes[start] !== QUOTE) return FAILED;
  let at = start + 1;
  for (;;) {
    const byte = bytes[at];
    if (byte === undefined || byte < SPACE) return FAILED;
    at += 1;
    if (byte === QUOTE) return at;
    if (byte === BACKSLASH) at = skipEscape(bytes, at);
  }
}

function skipEscape(bytes: Buffer, at: number): number {
  if (bytes[at] !== LETTER_U) return isOneOf(bytes[at], '"\\/bfnrt') ? at + 1 : FAILED;
  for (let digit = at + 1; digit <= at + 4; digit += 1) {
    if (!isOneOf(bytes[digit], "0123456789abcdefABCDEF")) return FAILED;
  }
  return at + 5;
}

function skipScalar(bytes: Buffer, at: number): number {
  switch (bytes[at]) {
    case QUOTE:
      return skipString(bytes, at);
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

/** At least one. */
function skipDigits(bytes: Buffer, start: number): number {
  let at = start;
  while (bytes[at]! >= ZERO && bytes[at]! <= NINE) at += 1;
  return at > start ? at : FAILED;
}

function isOneOf(byte: number | undefined, characters: string): boolean {
  return byte !== undefined && characters.includes(String.fromCharCode(byte));
}
