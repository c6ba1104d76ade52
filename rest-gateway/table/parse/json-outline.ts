import {
  CLOSE_BRACE,
  CLOSE_BRACKET,
  COMMA,
  FAILED,
  OPEN_BRACE,
  OPEN_BRACKET,
  skipColon,
  skipSpace,
  skipString,
  skipValue,
} from "./json-text.ts";

/** What must be known of a JSON text before Postgres reads it: whether it is one object or many, and which keys they have. */
export type JsonOutline =
  | { readonly kind: "object"; readonly keys: readonly string[] }
  /** Objects that all have the same keys. */
  | { readonly kind: "rows"; readonly keys: readonly string[] }
  /** An array of anything else. */
  | { readonly kind: "mixed" }
  | { readonly kind: "scalar" };

/** Where the keys of an object begin and end, by turns, quotes included. */
type Spans = number[];

/** Null: it is no JSON. */
export function outlineJson(bytes: Buffer): JsonOutline | null {
  const start = skipSpace(bytes, 0);
  if (bytes[start] === OPEN_BRACKET) return outlineArray(bytes, start);
  const keys: Spans = [];
  const isObject = bytes[start] === OPEN_BRACE;
  const end = isObject ? skipObject(bytes, start, keys) : skipValue(bytes, start);
  if (!endsAt(bytes, end)) return null;
  return isObject ? { kind: "object", keys: namesOf(bytes, keys) } : { kind: "scalar" };
}

function outlineArray(bytes: Buffer, start: number): JsonOutline | null {
  let first: Spans | null = null;
  const keys: Spans = [];
  let uniform = true;
  let at = skipSpace(bytes, start + 1);
  if (bytes[at] === CLOSE_BRACKET) return endsAt(bytes, at + 1) ? { kind: "rows", keys: [] } : null;
  for (;;) {
    if (uniform && bytes[at] === OPEN_BRACE) {
      at = skipObject(bytes, at, keys);
      first ??= [...keys];
      uniform = at === FAILED || haveSameKeys(bytes, first, keys);
    } else {
      uniform = false;
      at = skipValue(bytes, at);
    }
    at = skipSpace(bytes, at);
    if (bytes[at] === CLOSE_BRACKET) break;
    if (bytes[at] !== COMMA) return null;
    at = skipSpace(bytes, at + 1);
  }
  if (!endsAt(bytes, at + 1)) return null;
  return first !== null && uniform ? { kind: "rows", keys: namesOf(bytes, first) } : { kind: "mixed" };
}

function endsAt(bytes: Buffer, end: number): boolean {
  return end !== FAILED && skipSpace(bytes, end) === bytes.length;
}

function skipObject(bytes: Buffer, start: number, keys: Spans): number {
  keys.length = 0;
  let at = skipSpace(bytes, start + 1);
  if (bytes[at] === CLOSE_BRACE) return at + 1;
  for (;;) {
    const end = skipString(bytes, at);
    keys.push(at, end);
    at = skipSpace(bytes, skipValue(bytes, skipColon(bytes, end)));
    if (bytes[at] === CLOSE_BRACE) return at + 1;
    if (bytes[at] !== COMMA) return FAILED;
    at = skipSpace(bytes, at + 1);
  }
}

/** Most rows are written by one program: the same keys in the same order. */
function haveSameKeys(bytes: Buffer, first: Spans, keys: Spans): boolean {
  if (haveSameText(bytes, first, keys)) return true;
  const names = namesOf(bytes, first);
  const others = new Set(namesOf(bytes, keys));
  return names.length === others.size && names.every((name) => others.has(name));
}

function haveSameText(bytes: Buffer, first: Spans, keys: Spans): boolean {
  if (first.length !== keys.length) return false;
  for (let index = 0; index < first.length; index += 2) {
    const length = first[index + 1]! - first[index]!;
    if (keys[index + 1]! - keys[index]! !== length) return false;
    for (let offset = 0; offset < length; offset += 1) {
      if (bytes[first[index]! + offset] !== bytes[keys[index]! + offset]) return false;
    }
  }
  return true;
}

function namesOf(bytes: Buffer, keys: Spans): string[] {
  const names = new Set<string>();
  for (let index = 0; index < keys.length; index += 2) {
    names.add(JSON.parse(bytes.toString("utf8", keys[index], keys[index + 1])));
  }
  return [...names];
}
