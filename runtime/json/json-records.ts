import { isUtf8 } from "node:buffer";
import type { Stepwise } from "../concurrency/stepwise.ts";
import { parseJsonExactly } from "./json-values.ts";
import { type RecordVisitor, scanJson } from "./scan-json.ts";

const INITIAL_CAPACITY = 64;

/** The structure of a JSON body, with its objects; members are parsed on access. */
type JsonRecords =
  /** One object, or a list of objects only; at most the maximum of the `count` objects is kept. */
  | { readonly kind: "object" | "list"; readonly count: number; readonly records: readonly JsonRecord[] }
  | { readonly kind: "other" }
  | { readonly kind: "invalid" }
  | { readonly kind: "too deep"; readonly maxLevels: number }
  | { readonly kind: "too many members"; readonly maxMembers: number };

type JsonRecordLimits = { readonly maxRecords: number; readonly maxMembers: number; readonly maxLevels: number };

/** The limits for results from Postgres, which need none. */
export const NO_RECORD_LIMITS: JsonRecordLimits = {
  maxRecords: Number.POSITIVE_INFINITY,
  maxMembers: Number.POSITIVE_INFINITY,
  maxLevels: Number.POSITIVE_INFINITY,
};

const BYTE_ORDER_MARK = Buffer.from("\uFEFF");

export function* readJsonRecords(input: Buffer, limits: JsonRecordLimits): Stepwise<JsonRecords> {
  if (!isUtf8(input)) return { kind: "invalid" };
  const isMarked = input.subarray(0, BYTE_ORDER_MARK.length).equals(BYTE_ORDER_MARK);
  const bytes = isMarked ? input.subarray(BYTE_ORDER_MARK.length) : input;
  const collector = new RecordCollector(bytes, limits);
  const scan = yield* scanJson(bytes, collector, limits.maxLevels);
  if (scan.kind === "invalid" || scan.kind === "too deep") return scan;
  if (scan.kind === "scalar" || collector.hasOthers) return { kind: "other" };
  const { maxMembers } = limits;
  if (collector.hasTooManyMembers) return { kind: "too many members", maxMembers };
  return { kind: scan.kind, count: collector.count, records: collector.records };
}

/** One object of a JSON text. */
export class JsonRecord {
  /** The length in bytes. */
  readonly length: number;
  readonly #bytes: Buffer;
  readonly #start: number;
  readonly #places: Uint32Array;

  constructor(
    bytes: Buffer,
    { start, length }: { readonly start: number; readonly length: number },
    places: Uint32Array,
  ) {
    this.length = length;
    this.#bytes = bytes;
    this.#start = start;
    this.#places = places;
  }

  /** The unparsed text. */
  get text(): string {
    return this.#bytes.toString("utf8", this.#start, this.#start + this.length);
  }

  /** Returns the members by name; of duplicate names the last one counts. */
  members(): ReadonlyMap<string, JsonMember> {
    const members = new Map<string, JsonMember>();
    for (let at = 0; at < this.#places.length; at += NUMBERS_PER_MEMBER) {
      const [nameStart, nameEnd, start, end, size] = this.#places.subarray(at, at + NUMBERS_PER_MEMBER);
      const name: string = JSON.parse(this.#bytes.toString("utf8", nameStart, nameEnd));
      members.set(name, new JsonMember(this.#bytes, { start: start!, end: end!, size: size! }));
    }
    return members;
  }
}

type MemberPosition = { readonly start: number; readonly end: number; readonly size: number };

export class JsonMember {
  /** The number of values, which is more than one for a list or an object. */
  readonly size: number;
  readonly #bytes: Buffer;
  readonly #place: MemberPosition;

  constructor(bytes: Buffer, place: MemberPosition) {
    this.size = place.size;
    this.#bytes = bytes;
    this.#place = place;
  }

  /** The unparsed text. */
  get text(): string {
    return this.#bytes.toString("utf8", this.#place.start, this.#place.end);
  }

  /** The same text as a part of the whole JSON, which it keeps in memory. */
  get bytes(): Buffer {
    return this.#bytes.subarray(this.#place.start, this.#place.end);
  }

  get value(): unknown {
    return parseJsonExactly(this.text);
  }
}

/** The numbers per member: start and end of name and value, and its size. */
const NUMBERS_PER_MEMBER = 5;

class RecordCollector implements RecordVisitor {
  count = 0;
  hasOthers = false;
  hasTooManyMembers = false;
  readonly #bytes: Buffer;
  readonly #limits: JsonRecordLimits;
  readonly #places = new Uint32List();
  /** The data per record: its length, and the end of its members in the list of all members. */
  readonly #records: { readonly start: number; readonly length: number; readonly end: number }[] = [];
  #begin = 0;

  constructor(bytes: Buffer, limits: JsonRecordLimits) {
    this.#bytes = bytes;
    this.#limits = limits;
  }

  get records(): readonly JsonRecord[] {
    const places = this.#places.numbers;
    return this.#records.map(({ start, length, end }, index) => {
      const begin = index === 0 ? 0 : this.#records[index - 1]!.end;
      return new JsonRecord(this.#bytes, { start, length }, places.subarray(begin, end));
    });
  }

  beginRecord(): void {
    this.count++;
    this.#begin = this.#places.length;
  }

  member(...place: readonly [nameStart: number, nameEnd: number, valueStart: number, valueEnd: number, size: number]) {
    if (this.count > this.#limits.maxRecords || this.hasTooManyMembers) return;
    this.hasTooManyMembers = this.#places.length - this.#begin >= NUMBERS_PER_MEMBER * this.#limits.maxMembers;
    for (const number of place) this.#places.push(number);
  }

  endRecord(start: number, end: number): void {
    if (this.count > this.#limits.maxRecords) return;
    this.#records.push({ start, length: end - start, end: this.#places.length });
  }

  other(): void {
    this.hasOthers = true;
  }
}

/** Positions in a text, as plain numbers, since a body may have a million of them. */
export class Uint32List {
  #numbers = new Uint32Array(INITIAL_CAPACITY);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  get numbers(): Uint32Array {
    return this.#numbers.subarray(0, this.#length);
  }

  push(number: number): void {
    if (this.#length === this.#numbers.length) this.#grow();
    this.#numbers[this.#length++] = number;
  }

  #grow(): void {
    const more = new Uint32Array(2 * this.#numbers.length);
    more.set(this.#numbers);
    this.#numbers = more;
  }
}
