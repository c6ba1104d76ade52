import { ApiError } from "#runtime";

/** `name`: the name for the lookup; `word`: the keyword in upper case, or null if the name was quoted. */
export type Token =
  | { readonly kind: "name"; readonly at: number; readonly name: string; readonly word: string | null }
  | { readonly kind: "string" | "number" | "symbol"; readonly at: number; readonly text: string }
  | { readonly kind: "parameter"; readonly at: number; readonly number: number }
  | { readonly kind: "end"; readonly at: number };

const SPACE = /\s+/y;
const PATTERNS: readonly (readonly [pattern: RegExp, read: (found: string, at: number) => Token])[] = [
  [/'(?:[^']|'')*'/y, (found, at) => ({ kind: "string", at, text: found.slice(1, -1).replaceAll("''", "'") })],
  [/(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?/y, (found, at) => ({ kind: "number", at, text: found })],
  [/\$\d{1,4}/y, (found, at) => ({ kind: "parameter", at, number: Number(found.slice(1)) })],
  [
    /"(?:[^"]|"")+"/y,
    (found, at) => ({ kind: "name", at, name: found.slice(1, -1).replaceAll('""', '"'), word: null }),
  ],
  [
    /[\p{L}_][\p{L}\p{N}_$]*/uy,
    (found, at) => ({ kind: "name", at, name: found.toLowerCase(), word: found.toUpperCase() }),
  ],
  [/<>|!=|<=|>=|::|[=<>(),.[\]*+-]/y, (found, at) => ({ kind: "symbol", at, text: found })],
];

/** A condition in SQL as tokens, the last of which is `end`. */
export function readTokens(text: string, parameter: string): Token[] {
  const tokens: Token[] = [];
  for (let at = 0; ; ) {
    SPACE.lastIndex = at;
    if (SPACE.test(text)) at = SPACE.lastIndex;
    if (at >= text.length) break;
    const token = readToken(text, at);
    if (!token) throw invalidCondition(parameter, at, `${JSON.stringify(text[at])} is not expected`);
    tokens.push(token.token);
    at = token.end;
  }
  return [...tokens, { kind: "end", at: text.length }];
}

function readToken(text: string, at: number): { readonly token: Token; readonly end: number } | null {
  for (const [pattern, read] of PATTERNS) {
    pattern.lastIndex = at;
    const found = pattern.exec(text)?.[0];
    if (found !== undefined) return { token: read(found, at), end: at + found.length };
  }
  return null;
}

/** `at` counts from 0, but the message counts from 1. */
export function invalidCondition(parameter: string, at: number, reason: string): ApiError {
  return new ApiError("invalid", "INVALID_SHAPE", `${parameter}: ${reason}, at position ${at + 1}.`, {
    hint: "Use comparisons of columns with values, AND, OR, NOT, IN, LIKE, BETWEEN, IS NULL and = ANY.",
  });
}

/** Parses names as SQL does: in lower case unless they are quoted. */
export function parseNames(text: string, parameter: string, separator: string): string[] {
  const names: string[] = [];
  const tokens = readTokens(text, parameter);
  for (const [index, token] of tokens.slice(0, -1).entries()) {
    const isName = index % 2 === 0;
    if (isName && token.kind === "name") names.push(token.name);
    else if (isName || token.kind !== "symbol" || token.text !== separator)
      throw invalidCondition(parameter, token.at, `expected ${isName ? "a name" : separator}`);
  }
  if (tokens.length % 2 === 1) throw invalidCondition(parameter, text.length, "expected a name");
  return names;
}
