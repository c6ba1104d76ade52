// The tokens of JSON (RFC 8259) read in place, byte by byte, without making values of them. Each function starts at a
// position and answers the one behind what it skipped, or FAILED; reading on from FAILED fails again.
export const FAILED = -1;

export const OPEN_BRACE = 0x7b;
export const CLOSE_BRACE = 0x7d;
export const OPEN_BRACKET = 0x5b;
export const CLOSE_BRACKET = 0x5d;
export const COMMA = 0x2c;
export const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const SPACE = 0x20;
const [COLON, MINUS, PLUS, DOT, ZERO, NINE, LETTER_E, LETTER_U] = [0x3a, 0x2d, 0x2b, 0x2e, 0x30, 0x39, 0x65, 0x75];

export function skipSpace(bytes: Buffer, start: number): number {
  let at = start;
  for (;;) {
    const byte = bytes[at];
    if (byte !== SPACE && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) return at;
    at += 1;
  }
}

/** `:` */
export function skipColon(bytes: Buffer, start: number): number {
  const at = skipSpace(bytes, start);
  return bytes[at] === COLON ? skipSpace(bytes, at + 1) : FAILED;
}

export function skipString(bytes: Buffer, start: number): number {
  return bytes[start] === QUOTE ? skipCharacters(bytes, start + 1, bytes.length) : FAILED;
}

/** From within a string to behind its end. Where that does not come before `pauseAt`, the complement (`~`) of a position to go on at. */
export function skipCharacters(bytes: Buffer, start: number, pauseAt: number): number {
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

/** From behind the backslash. */
function skipEscape(bytes: Buffer, at: number): number {
  if (bytes[at] !== LETTER_U) return isOneOf(bytes[at], '"\\/bfnrt') ? at + 1 : FAILED;
  for (let digit = at + 1; digit <= at + 4; digit += 1) {
    if (!isOneOf(bytes[digit], "0123456789abcdefABCDEF")) return FAILED;
  }
  return at + 5;
}

/** A number, true, false or null. */
export function skipLiteral(bytes: Buffer, at: number): number {
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

/** At least one. */
function skipDigits(bytes: Buffer, start: number): number {
  let at = start;
  while (bytes[at]! >= ZERO && bytes[at]! <= NINE) at += 1;
  return at > start ? at : FAILED;
}

function isOneOf(byte: number | undefined, characters: string): boolean {
  return byte !== undefined && characters.includes(String.fromCharCode(byte));
}
