import pg from "pg";
import type { ParameterValue, ResultField } from "./statement.ts";

// The first byte of each message (https://www.postgresql.org/docs/current/protocol-message-formats.html).

/** From the client to the server. */
export const BIND = 0x42;
export const CLOSE = 0x43;
export const DESCRIBE = 0x44;
export const EXECUTE = 0x45;
export const PARSE = 0x50;
export const SYNC = 0x53;

/** From the server to the client. */
export const PARSE_COMPLETE = 0x31;
export const BIND_COMPLETE = 0x32;
export const CLOSE_COMPLETE = 0x33;
export const NOTIFICATION = 0x41;
export const COMMAND_COMPLETE = 0x43;
export const DATA_ROW = 0x44;
export const ERROR = 0x45;
export const EMPTY_QUERY = 0x49;
export const NOTICE = 0x4e;
export const PARAMETER_STATUS = 0x53;
export const ROW_DESCRIPTION = 0x54;
export const READY_FOR_QUERY = 0x5a;
export const NO_DATA = 0x6e;

/** Target of Describe and Close. */
export const PORTAL = 0x50;
export const STATEMENT = 0x53;

/** ReadyForQuery: no transaction is open. */
export const IDLE = 0x49;

const SLAB_BYTES = 16 * 1024;
/** No UTF-16 unit takes more bytes than this in UTF-8. */
const MAX_BYTES_PER_CHARACTER = 3;

const EXECUTE_MESSAGE = Buffer.from([EXECUTE, 0, 0, 0, 9, 0, 0, 0, 0, 0]);
const DESCRIBE_MESSAGE = Buffer.from([DESCRIBE, 0, 0, 0, 6, PORTAL, 0]);
const SYNC_MESSAGE = Buffer.from([SYNC, 0, 0, 0, 4]);

/**
 * Encodes messages of the extended query protocol and collects them until `take`. All parameters and results are in
 * text format. Small messages share one slab; a large value becomes a chunk of its own and is not copied, so it must
 * not change until it is sent.
 */
export class MessageEncoder {
  readonly #slab = Buffer.allocUnsafeSlow(SLAB_BYTES);
  #used = 0;
  #chunks: Buffer[] = [];

  parse(name: string, text: string): void {
    const widest = 8 + name.length + MAX_BYTES_PER_CHARACTER * text.length;
    if (widest > SLAB_BYTES) {
      const bytes = Buffer.from(text);
      this.#reserve(6 + name.length);
      this.#begin(PARSE, 4 + name.length + 1 + bytes.length + 1 + 2);
      this.#name(name);
      this.#raw(bytes);
      this.#reserve(3);
    } else {
      this.#reserve(widest);
      const length = this.#begin(PARSE, 0);
      this.#name(name);
      this.#used += this.#slab.write(text, this.#used);
      this.#patch(length, this.#used - length + 3);
    }
    this.#byte(0);
    this.#int16(0);
  }

  bind(name: string, values: readonly ParameterValue[]): void {
    let widest = 13 + name.length;
    for (const value of values) widest += 4 + maxLengthOf(value);
    if (widest > SLAB_BYTES) this.#bindLarge(name, values);
    else this.#bindSmall(name, values, widest);
  }

  describePortal(): void {
    this.#constant(DESCRIBE_MESSAGE);
  }

  execute(): void {
    this.#constant(EXECUTE_MESSAGE);
  }

  sync(): void {
    this.#constant(SYNC_MESSAGE);
  }

  closeStatement(name: string): void {
    this.#reserve(7 + name.length);
    this.#begin(CLOSE, 6 + name.length);
    this.#byte(STATEMENT);
    this.#name(name);
  }

  /** Everything written since the last take, in order. */
  take(): Buffer[] {
    this.#spill();
    const chunks = this.#chunks;
    this.#chunks = [];
    return chunks;
  }

  #bindSmall(name: string, values: readonly ParameterValue[], widest: number): void {
    this.#reserve(widest);
    const length = this.#begin(BIND, 0);
    this.#beginBind(name, values.length);
    for (const value of values) this.#value(value);
    this.#int16(0);
    this.#patch(length, this.#used - length);
  }

  #bindLarge(name: string, values: readonly ParameterValue[]): void {
    const encoded = values.map((value) => (typeof value === "string" ? Buffer.from(value) : value));
    const bytes = encoded.reduce((sum, value) => sum + 4 + (value?.length ?? 0), 0);
    this.#reserve(10 + name.length);
    this.#begin(BIND, 12 + name.length + bytes);
    this.#beginBind(name, values.length);
    for (const value of encoded) {
      this.#reserve(4);
      this.#int32(value === null ? -1 : value.length);
      if (value) this.#raw(value);
    }
    this.#reserve(2);
    this.#int16(0);
  }

  #beginBind(name: string, count: number): void {
    this.#byte(0);
    this.#name(name);
    this.#int16(0);
    this.#int16(count);
  }

  #value(value: ParameterValue): void {
    const start = this.#used + 4;
    if (value === null) this.#int32(-1);
    else {
      const length = typeof value === "string" ? this.#slab.write(value, start) : value.copy(this.#slab, start);
      this.#int32(length);
      this.#used += length;
    }
  }

  #raw(bytes: Buffer): void {
    if (bytes.length > SLAB_BYTES - this.#used) this.#spill();
    if (bytes.length > SLAB_BYTES) this.#chunks.push(bytes);
    else this.#used += bytes.copy(this.#slab, this.#used);
  }

  #constant(message: Buffer): void {
    this.#reserve(message.length);
    const slab = this.#slab;
    const start = this.#used;
    for (let index = 0; index < message.length; index++) slab[start + index] = message[index]!;
    this.#used = start + message.length;
  }

  /** Writes the type byte and the length; returns the offset of the length. */
  #begin(type: number, length: number): number {
    this.#byte(type);
    this.#int32(length);
    return this.#used - 4;
  }

  #patch(at: number, value: number): void {
    const end = this.#used;
    this.#used = at;
    this.#int32(value);
    this.#used = end;
  }

  /** Statement names are generated and plain ASCII. */
  #name(name: string): void {
    for (let index = 0; index < name.length; index++) this.#byte(name.charCodeAt(index));
    this.#byte(0);
  }

  #byte(value: number): void {
    this.#slab[this.#used++] = value;
  }

  #int16(value: number): void {
    const slab = this.#slab;
    slab[this.#used++] = value >>> 8;
    slab[this.#used++] = value;
  }

  #int32(value: number): void {
    const slab = this.#slab;
    slab[this.#used++] = value >>> 24;
    slab[this.#used++] = value >>> 16;
    slab[this.#used++] = value >>> 8;
    slab[this.#used++] = value;
  }

  #reserve(bytes: number): void {
    if (bytes > SLAB_BYTES - this.#used) this.#spill();
  }

  /** Copies the slab, because the socket may keep the chunk while the slab is overwritten. */
  #spill(): void {
    if (this.#used === 0) return;
    const chunk = Buffer.allocUnsafe(this.#used);
    this.#slab.copy(chunk, 0, 0, this.#used);
    this.#chunks.push(chunk);
    this.#used = 0;
  }
}

function maxLengthOf(value: ParameterValue): number {
  if (value === null) return 0;
  return typeof value === "string" ? MAX_BYTES_PER_CHARACTER * value.length : value.length;
}

const HEADER_BYTES = 5;
/** Postgres sends no longer message; a longer length means that the stream is out of sync. */
const MAX_MESSAGE_BYTES = 0x3fffffff;

/**
 * One message's body is `buffer` from `start` to `end`. Unless `owned`, those bytes are overwritten by the next read:
 * decode or copy before returning, and let no slice escape.
 */
export type OnMessage = (type: number, buffer: Buffer, start: number, end: number, owned: boolean) => void;

/** Decides by its length whether a message that spans several chunks is collected or dropped. */
export type AcceptMessage = (type: number, bytes: number) => boolean;

/** Splits the stream into messages. A message that spans several chunks is collected in memory of its own, or dropped. */
export class MessageReader {
  readonly #deliver: OnMessage;
  readonly #admit: AcceptMessage;
  readonly #header = Buffer.alloc(HEADER_BYTES);
  #headerBytes = 0;
  #body: Buffer | null = null;
  #bodyBytes = 0;
  /** The bytes still to skip of a dropped message. */
  #dropping = 0;

  constructor(deliver: OnMessage, admit: AcceptMessage = () => true) {
    this.#deliver = deliver;
    this.#admit = admit;
  }

  read(chunk: Buffer, length: number): void {
    let at = 0;
    if (this.#dropping > 0) at = this.#drop(length);
    else if (this.#headerBytes > 0) at = this.#continue(chunk, length);
    while (length - at >= HEADER_BYTES) {
      const start = at + HEADER_BYTES;
      const end = start + bodyLength(chunk, at);
      if (end > length) break;
      this.#deliver(chunk[at]!, chunk, start, end, false);
      at = end;
    }
    if (at < length) this.#continue(chunk.subarray(at, length), length - at);
  }

  /** Starts or continues a message that spans several chunks; returns the offset of the next message. */
  #continue(chunk: Buffer, length: number): number {
    const at = chunk.copy(this.#header, this.#headerBytes, 0, length);
    this.#headerBytes += at;
    if (this.#headerBytes < HEADER_BYTES) return length;
    if (!this.#body) {
      const bytes = bodyLength(this.#header, 0);
      if (!this.#admit(this.#header[0]!, bytes)) {
        this.#headerBytes = 0;
        this.#dropping = bytes;
        return at + this.#drop(length - at);
      }
      this.#body = Buffer.allocUnsafeSlow(bytes);
    }
    const copied = chunk.copy(this.#body, this.#bodyBytes, at, length);
    this.#bodyBytes += copied;
    if (this.#bodyBytes < this.#body.length) return length;

    const body = this.#body;
    this.#headerBytes = 0;
    this.#body = null;
    this.#bodyBytes = 0;
    this.#deliver(this.#header[0]!, body, 0, body.length, true);
    return at + copied;
  }

  /** Skips bytes of a dropped message; returns how many. */
  #drop(bytes: number): number {
    const dropped = Math.min(bytes, this.#dropping);
    this.#dropping -= dropped;
    return dropped;
  }
}

function bodyLength(buffer: Buffer, at: number): number {
  const length = readInt32(buffer, at + 1) - 4;
  if (length < 0 || length > MAX_MESSAGE_BYTES)
    throw new Error("The server sent something that is not Postgres's protocol");
  return length;
}

function readInt16(buffer: Buffer, at: number): number {
  return (buffer[at]! << 8) | buffer[at + 1]!;
}

export function readInt32(buffer: Buffer, at: number): number {
  return (buffer[at]! << 24) | (buffer[at + 1]! << 16) | (buffer[at + 2]! << 8) | buffer[at + 3]!;
}

/** DataRow, every value as a string. */
export function readRow(buffer: Buffer, start: number): (string | null)[] {
  const count = readInt16(buffer, start);
  const row = new Array<string | null>(count);
  let at = start + 2;
  for (let index = 0; index < count; index++) {
    const length = readInt32(buffer, at);
    at += 4;
    if (length < 0) row[index] = null;
    else {
      row[index] = buffer.toString("utf8", at, at + length);
      at += length;
    }
  }
  return row;
}

/** DataRow, values longer than `largerThan` bytes as Buffers of their own. */
export function readLargeRow(
  buffer: Buffer,
  start: number,
  owned: boolean,
  largerThan: number,
): (string | Buffer | null)[] {
  const count = readInt16(buffer, start);
  const row: (string | Buffer | null)[] = [];
  let at = start + 2;
  for (let index = 0; index < count; index++) {
    const length = readInt32(buffer, at);
    at += 4;
    if (length < 0) row.push(null);
    else {
      const end = at + length;
      if (length <= largerThan) row.push(buffer.toString("utf8", at, end));
      else row.push(owned ? buffer.subarray(at, end) : Buffer.from(buffer.subarray(at, end)));
      at = end;
    }
  }
  return row;
}

/** CommandComplete: the number at the end of `INSERT 0 1`; 0 where there is none, as in `BEGIN`. */
export function readRowCount(buffer: Buffer, start: number, end: number): number {
  let count = 0;
  for (let at = end - 2, unit = 1; at >= start; at--, unit *= 10) {
    const digit = buffer[at]! - 0x30;
    if (digit < 0 || digit > 9) break;
    count += digit * unit;
  }
  return count;
}

/** CommandComplete's first word. */
export function readCommand(buffer: Buffer, start: number, end: number): string {
  return buffer.toString("latin1", start, end - 1).split(" ", 1)[0]!;
}

export function readFields(buffer: Buffer, start: number): ResultField[] {
  const count = readInt16(buffer, start);
  const fields: ResultField[] = [];
  let at = start + 2;
  for (let index = 0; index < count; index++) {
    const end = buffer.indexOf(0, at);
    // After the name: table oid (4), column (2), type oid (4), size (2), modifier (4), format (2).
    fields.push({ name: buffer.toString("utf8", at, end), type: readInt32(buffer, end + 7) >>> 0 });
    at = end + 19;
  }
  return fields;
}

/** Two zero-terminated strings, as in ParameterStatus. */
export function readPair(buffer: Buffer, start: number): [string, string] {
  const middle = buffer.indexOf(0, start);
  const end = buffer.indexOf(0, middle + 1);
  return [buffer.toString("utf8", start, middle), buffer.toString("utf8", middle + 1, end)];
}

const FIELD_NAMES = {
  C: "code",
  D: "detail",
  H: "hint",
  P: "position",
  p: "internalPosition",
  q: "internalQuery",
  W: "where",
  s: "schema",
  t: "table",
  c: "column",
  d: "dataType",
  n: "constraint",
  F: "file",
  L: "line",
  R: "routine",
} as const;

type ErrorClass = new (message: string, length: number, name: "error") => pg.DatabaseError;

/** Decodes ErrorResponse to pg's own error class, or to a subclass. */
export function readError(
  buffer: Buffer,
  start: number,
  end: number,
  Class: ErrorClass = pg.DatabaseError,
): pg.DatabaseError {
  const fields = new Map<string, string>();
  for (let at = start; at < end && buffer[at] !== 0; ) {
    const close = buffer.indexOf(0, at + 1);
    fields.set(String.fromCharCode(buffer[at]!), buffer.toString("utf8", at + 1, close));
    at = close + 1;
  }
  const error = new Class(fields.get("M") ?? "", end - start, "error");
  // V is the severity in English whatever lc_messages says.
  error.severity = fields.get("V") ?? fields.get("S");
  for (const [letter, name] of Object.entries(FIELD_NAMES)) error[name] = fields.get(letter);
  return error;
}

/** FATAL and PANIC end the session. */
export function isFatal(error: pg.DatabaseError): boolean {
  return error.severity === "FATAL" || error.severity === "PANIC";
}
