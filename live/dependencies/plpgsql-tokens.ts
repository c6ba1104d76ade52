/** `text`: a word in lower case, a quoted name without its quotes, other tokens as written. */
export type BodyToken = {
  readonly kind: "word" | "quoted" | "string" | "parameter" | "symbol";
  readonly text: string;
  readonly start: number;
  readonly end: number;
};

/** Thrown for a body in a form that cannot be read. */
export class UnrecognizedBody extends Error {}

/** Postgres ends comments and lines at a carriage return, too. */
const SPACE = /(?:[ \t\n\r\f\v]+|--[^\n\r]*)+/y;
const COMMENT_MARK = /\/\*|\*\//g;
const DOLLAR_QUOTE = /\$(?:[A-Za-z_\u0080-\uffff][\w\u0080-\uffff]*)?\$/y;
/** A string that is continued on a further line has the escapes of its first part. */
const CONTINUED_STRING = /[ \t\f\v]*(?:--[^\n\r]*)?[\n\r](?:[ \t\n\r\f\v]|--[^\n\r]*[\n\r])*'/y;
const PATTERNS: readonly (readonly [kind: BodyToken["kind"], pattern: RegExp])[] = [
  ["string", /[eE]'(?:[^'\\]|\\[\s\S]|'')*'|(?:[uU]&|[bBxXnN])?'(?:[^']|'')*'/y],
  ["quoted", /"(?:[^"]|"")+"/y],
  ["parameter", /\$\d+/y],
  ["word", /[A-Za-z_\u0080-\uffff][\w$\u0080-\uffff]*/y],
  // Numbers are recognized only to tell their points from the dots of a range.
  ["symbol", /(?:\d[\w]*(?:\.(?!\.)\w*)?|\.\d\w*)|:=|\.\.|[^\s\w'"$]/y],
];

/** The tokens of a body in PL/pgSQL, without comments. */
export function readBodyTokens(source: string): BodyToken[] {
  const tokens: BodyToken[] = [];
  for (let at = skipSpace(source, 0); at < source.length; ) {
    const token = readToken(source, at);
    tokens.push(token);
    at = skipSpace(source, token.end);
  }
  return tokens;
}

function readToken(source: string, start: number): BodyToken {
  const quote = matchAt(DOLLAR_QUOTE, source, start);
  if (quote !== null) {
    const close = source.indexOf(quote, start + quote.length);
    if (close < 0) throw new UnrecognizedBody();
    return { kind: "string", text: "", start, end: close + quote.length };
  }
  for (const [kind, pattern] of PATTERNS) {
    const text = matchAt(pattern, source, start);
    if (text === null) continue;
    const end = start + text.length;
    if (/^[eE]'/.test(text) && matchAt(CONTINUED_STRING, source, end) !== null) throw new UnrecognizedBody();
    return { kind, text: normalize(kind, text), start, end };
  }
  throw new UnrecognizedBody();
}

function normalize(kind: BodyToken["kind"], text: string): string {
  if (kind === "quoted") return text.slice(1, -1).replaceAll('""', '"');
  return kind === "word" ? text.replace(/[A-Z]/g, (letter) => letter.toLowerCase()) : text;
}

function skipSpace(source: string, start: number): number {
  for (let at = start; ; ) {
    const space = matchAt(SPACE, source, at);
    if (space !== null) at += space.length;
    else if (source.startsWith("/*", at)) at = endOfComment(source, at);
    else return at;
  }
}

/** Comments can be nested. */
function endOfComment(source: string, start: number): number {
  COMMENT_MARK.lastIndex = start;
  let depth = 0;
  for (let mark = COMMENT_MARK.exec(source); mark; mark = COMMENT_MARK.exec(source)) {
    depth += mark[0] === "/*" ? 1 : -1;
    if (depth === 0) return COMMENT_MARK.lastIndex;
  }
  throw new UnrecognizedBody();
}

function matchAt(pattern: RegExp, source: string, at: number): string | null {
  pattern.lastIndex = at;
  return pattern.exec(source)?.[0] ?? null;
}
