import { isUtf8 } from "node:buffer";
import type { Stepwise } from "../../../engine/concurrency/stepwise.ts";
import { Uint32List } from "../../../engine/json/json-records.ts";
import { OPEN_BRACKET, type RecordVisitor, scanJson, skipSpace } from "../../../engine/json/scan-json.ts";
import type { JsonValueSpans } from "../../../engine/statement/intent.ts";

/** What must be known of a JSON text before Postgres reads it: whether it is one object or many, and which keys they have. */
export type JsonOutline =
  | { readonly kind: "object"; readonly keys: JsonKeys }
  /** Objects that all have the same keys. */
  | { readonly kind: "rows"; readonly keys: JsonKeys; readonly valueSpans: JsonValueSpans | null }
  /** An array of anything else. */
  | { readonly kind: "mixed" }
  | { readonly kind: "scalar" }
  | { readonly kind: "invalid" }
  | { readonly kind: "too deep"; readonly maxLevels: number };

/** Null: there are more than a row can have columns. */
export type JsonKeys = readonly string[] | null;

/** Postgres's own limit is 1,600 columns; a function has fewer arguments. */
const MAX_KEYS = 1_600;
/** A longer value is better read by Postgres. */
const MAX_VALUE_BYTES = 256 * 1024;

export function* outlineJson(bytes: Buffer): Stepwise<JsonOutline> {
  const records = new RecordOutline(bytes);
  const scan = yield* scanJson(bytes, records);
  switch (scan.kind) {
    case "object":
      return { kind: "object", keys: records.keys };
    case "list":
      return records.areAlike
        ? { kind: "rows", keys: records.keys, valueSpans: records.valueSpans }
        : { kind: "mixed" };
    case "scalar":
      return { kind: "scalar" };
    default:
      return scan;
  }
}

/** Where the keys of an object begin and end, by turns, quotes included. */
type KeyPositions = number[];

class RecordOutline implements RecordVisitor {
  areAlike = true;
  readonly #bytes: Buffer;
  readonly #places: KeyPositions = [];
  #first: KeyPositions | null = null;
  #firstNames: ReadonlySet<string> | null = null;
  #values: Uint32List | null;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
    this.#values = bytes[skipSpace(bytes, 0)] === OPEN_BRACKET ? new Uint32List() : null;
  }

  get keys(): JsonKeys {
    if (this.#first === null) return [];
    return this.#hasTooMany ? null : [...this.#names];
  }

  /** Null where the text of a value may differ from its value: duplicate keys, invalid UTF-8, escapes that Postgres rejects. */
  get valueSpans(): JsonValueSpans | null {
    const { keys } = this;
    if (keys === null || keys.length === 0 || this.#values === null || 2 * keys.length !== this.#first!.length)
      return null;
    return isUtf8(this.#bytes) && !this.#bytes.includes("\\u") ? { keys, spans: this.#values.numbers } : null;
  }

  beginRecord(): void {
    this.#places.length = 0;
  }

  member(nameStart: number, nameEnd: number, valueStart: number, valueEnd: number): void {
    if (!this.areAlike || this.#places.length > 2 * MAX_KEYS) return;
    this.#places.push(nameStart, nameEnd);
    if (valueEnd - valueStart > MAX_VALUE_BYTES) this.#values = null;
    this.#values?.push(valueStart);
    this.#values?.push(valueEnd);
  }

  endRecord(): void {
    if (!this.areAlike) return;
    if (this.#first === null) this.#first = [...this.#places];
    else if (!haveSameKeyText(this.#bytes, this.#first, this.#places)) {
      this.#values = null;
      this.areAlike = this.#haveSameNames();
    }
  }

  other(): void {
    this.areAlike = false;
  }

  get #hasTooMany(): boolean {
    return this.#first!.length > 2 * MAX_KEYS;
  }

  get #names(): ReadonlySet<string> {
    this.#firstNames ??= keyNames(this.#bytes, this.#first!);
    return this.#firstNames;
  }

  /** Rows with too many names are rejected anyway, so they are not compared. */
  #haveSameNames(): boolean {
    if (this.#hasTooMany || this.#places.length > 2 * MAX_KEYS) return this.#hasTooMany;
    const others = keyNames(this.#bytes, this.#places);
    return this.#names.size === others.size && this.#names.isSubsetOf(others);
  }
}

/** Most rows are written by one program: the same keys in the same order. */
function haveSameKeyText(bytes: Buffer, first: KeyPositions, places: KeyPositions): boolean {
  if (first.length !== places.length) return false;
  for (let index = 0; index < first.length; index += 2) {
    const length = first[index + 1]! - first[index]!;
    if (places[index + 1]! - places[index]! !== length) return false;
    for (let offset = 0; offset < length; offset += 1) {
      if (bytes[first[index]! + offset] !== bytes[places[index]! + offset]) return false;
    }
  }
  return true;
}

function keyNames(bytes: Buffer, places: KeyPositions): ReadonlySet<string> {
  const names = new Set<string>();
  for (let index = 0; index < places.length; index += 2) {
    names.add(JSON.parse(bytes.toString("utf8", places[index], places[index + 1])));
  }
  return names;
}
