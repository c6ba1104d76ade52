import { isUtf8 } from "node:buffer";
import type { Grid } from "../../statement/intent.ts";
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
import { Spans } from "./spans.ts";

/** What must be known of a JSON text before Postgres reads it: whether it is one object or many, and which keys they have. */
export type JsonOutline =
  | { readonly kind: "object"; readonly keys: readonly string[] }
  /** Objects that all have the same keys. */
  | { readonly kind: "rows"; readonly keys: readonly string[]; readonly grid: Grid | null }
  /** An array of anything else. */
  | { readonly kind: "mixed" }
  | { readonly kind: "scalar" };

/** Where the keys of an object begin and end, by turns, quotes included. */
type Keys = number[];

/** Null: it is no JSON. */
export function outlineJson(bytes: Buffer): JsonOutline | null {
  const start = skipSpace(bytes, 0);
  if (bytes[start] === OPEN_BRACKET) return outlineArray(bytes, start);
  const keys: Keys = [];
  const isObject = bytes[start] === OPEN_BRACE;
  const end = isObject ? skipObject(bytes, start, keys, null) : skipValue(bytes, start);
  if (!endsAt(bytes, end)) return null;
  return isObject ? { kind: "object", keys: namesOf(bytes, keys) } : { kind: "scalar" };
}

function outlineArray(bytes: Buffer, start: number): JsonOutline | null {
  let first: Keys | null = null;
  const keys: Keys = [];
  let values: Spans | null = new Spans();
  let uniform = true;
  let at = skipSpace(bytes, start + 1);
  if (bytes[at] === CLOSE_BRACKET) return endsAt(bytes, at + 1) ? { kind: "rows", keys: [], grid: null } : null;
  for (;;) {
    if (uniform && bytes[at] === OPEN_BRACE) {
      at = skipObject(bytes, at, keys, values);
      first ??= [...keys];
      if (at !== FAILED && !haveSameText(bytes, first, keys)) {
        values = null;
        uniform = haveSameKeys(bytes, first, keys);
      }
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
  if (first === null || !uniform) return { kind: "mixed" };
  const names = namesOf(bytes, first);
  return { kind: "rows", keys: names, grid: values && gridOf(bytes, first, names, values) };
}

/** Null where a value may not be what its text says: of a key that comes twice the last one counts, and Postgres refuses some characters. */
function gridOf(bytes: Buffer, first: Keys, keys: readonly string[], values: Spans): Grid | null {
  if (keys.length === 0 || 2 * keys.length !== first.length) return null;
  return isUtf8(bytes) && !bytes.includes("\\u") ? { keys, spans: values.numbers } : null;
}

function endsAt(bytes: Buffer, end: number): boolean {
  return end !== FAILED && skipSpace(bytes, end) === bytes.length;
}

function skipObject(bytes: Buffer, start: number, keys: Keys, values: Spans | null): number {
  keys.length = 0;
  let at = skipSpace(bytes, start + 1);
  if (bytes[at] === CLOSE_BRACE) return at + 1;
  for (;;) {
    const end = skipString(bytes, at);
    keys.push(at, end);
    const value = skipColon(bytes, end);
    const valueEnd = skipValue(bytes, value);
    values?.push(value, valueEnd);
    at = skipSpace(bytes, valueEnd);
    if (bytes[at] === CLOSE_BRACE) return at + 1;
    if (bytes[at] !== COMMA) return FAILED;
    at = skipSpace(bytes, at + 1);
  }
}

function haveSameKeys(bytes: Buffer, first: Keys, keys: Keys): boolean {
  const names = namesOf(bytes, first);
  const others = new Set(namesOf(bytes, keys));
  return names.length === others.size && names.every((name) => others.has(name));
}

/** Most rows are written by one program: the same keys in the same order. */
function haveSameText(bytes: Buffer, first: Keys, keys: Keys): boolean {
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

function namesOf(bytes: Buffer, keys: Keys): string[] {
  const names = new Set<string>();
  for (let index = 0; index < keys.length; index += 2) {
    names.add(JSON.parse(bytes.toString("utf8", keys[index], keys[index + 1])));
  }
  return [...names];
}
