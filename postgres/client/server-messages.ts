import type { Duplex } from "node:stream";
import pg from "pg";

// The first byte of each message from the server (https://www.postgresql.org/docs/current/protocol-message-formats.html).
export const PARSE_COMPLETE = 0x31;
export const BIND_COMPLETE = 0x32;
export const CLOSE_COMPLETE = 0x33;
export const NOTIFICATION = 0x41;
export const COMMAND_COMPLETE = 0x43;
export const DATA_ROW = 0x44;
const COPY_DATA = 0x64;
export const ERROR = 0x45;
export const EMPTY_QUERY = 0x49;
export const NOTICE = 0x4e;
export const PARAMETER_STATUS = 0x53;
export const ROW_DESCRIPTION = 0x54;
export const READY_FOR_QUERY = 0x5a;
export const PORTAL_SUSPENDED = 0x73;
export const NO_DATA = 0x6e;

/** ReadyForQuery: no transaction is open. */
export const IDLE = 0x49;
/** ReadyForQuery: a transaction is open, and has failed. */
export const FAILED = 0x45;
const IN_TRANSACTION = 0x54;
const IN_FAILED_TRANSACTION = 0x45;

export type ResultField = {
  readonly name: string;
  readonly type: number;
  /** The type modifier, for example the length of a `varchar(20)`; -1 if there is none. */
  readonly modifier: number;
};

const HEADER_BYTES = 5;
/** The maximum length of a message from Postgres; a longer one means that the stream is out of sync. As in libpq, only some types may be long. */
const MAX_MESSAGE_BYTES = 0x3fffffff;
const MAX_SHORT_MESSAGE_BYTES = 30_000;
/** The maximum length of texts and descriptions, which are always collected. */
const MAX_TEXT_BYTES = 16 * 1024 * 1024;
const MAX_BYTES_BY_TYPE: ReadonlyMap<number, number> = new Map([
  [DATA_ROW, MAX_MESSAGE_BYTES],
  [COPY_DATA, MAX_MESSAGE_BYTES],
  [ROW_DESCRIPTION, MAX_TEXT_BYTES],
  [ERROR, MAX_TEXT_BYTES],
  [NOTICE, MAX_TEXT_BYTES],
  [NOTIFICATION, MAX_TEXT_BYTES],
]);

export function protocolViolation(what: string): Error {
  return new Error(`The server sent something that is not Postgres's protocol: ${what}`);
}

/**
 * One message's body is `buffer` from `start` to `end`. Unless `owned`, those bytes are overwritten by the next read:
 * decode or copy before returning, and let no slice escape.
 */
export type OnMessage = (type: number, buffer: Buffer, start: number, end: number, owned: boolean) => void;

/** Decides by length whether a message that spans several chunks is collected or dropped. */
export type AcceptMessage = (type: number, bytes: number) => boolean;

/** Splits the stream into messages. A message that spans several chunks is collected in its own memory, or dropped. */
export class MessageReader {
  readonly #deliver: OnMessage;
  readonly #admit: AcceptMessage;
  readonly #header = Buffer.alloc(HEADER_BYTES);
  #headerBytes = 0;
  #body: Buffer | null = null;
  #bodyBytes = 0;
  /** The remaining bytes to skip of a dropped message. */
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
  if (length < 0 || (length > MAX_SHORT_MESSAGE_BYTES && length > maxBytesOf(buffer[at]!)))
    throw protocolViolation(`a message of type ${nameOfType(buffer[at]!)} with ${length} bytes`);
  return length;
}

function maxBytesOf(type: number): number {
  return MAX_BYTES_BY_TYPE.get(type) ?? MAX_SHORT_MESSAGE_BYTES;
}

/** Returns the letter or digit of a message type; for any other byte its number. */
export function nameOfType(type: number): string {
  const name = String.fromCharCode(type);
  return /^[A-Za-z0-9]$/.test(name) ? name : String(type);
}

function readInt16(buffer: Buffer, at: number): number {
  return (buffer[at]! << 8) | buffer[at + 1]!;
}

function readInt32(buffer: Buffer, at: number): number {
  return (buffer[at]! << 24) | (buffer[at + 1]! << 16) | (buffer[at + 2]! << 8) | buffer[at + 3]!;
}

/** Returns the length of a row's value, -1 for null. The value must end within the row, because the next bytes belong to another message. */
export function readValueLength(buffer: Buffer, at: number, end: number): number {
  const length = readInt32(buffer, at);
  const rest = end - at - 4;
  if (length > rest || length < -1 || rest < 0) throw protocolViolation("a row with a value that exceeds it");
  return length;
}

function checkRowEnd(at: number, end: number): void {
  if (at !== end) throw protocolViolation("a row with more bytes than values");
}

/** Checks a DataRow without decoding it. */
export function checkRow(buffer: Buffer, start: number, end: number): void {
  let at = start + 2;
  for (let rest = readInt16(buffer, start); rest > 0; rest--) at += 4 + Math.max(0, readValueLength(buffer, at, end));
  checkRowEnd(at, end);
}

/** Reads a DataRow, with every value as a string. */
export function readRow(buffer: Buffer, start: number, end: number): (string | null)[] {
  const count = readInt16(buffer, start);
  const row = new Array<string | null>(count);
  let at = start + 2;
  for (let index = 0; index < count; index++) {
    const length = readValueLength(buffer, at, end);
    at += 4;
    if (length < 0) row[index] = null;
    else {
      row[index] = buffer.toString("utf8", at, at + length);
      at += length;
    }
  }
  checkRowEnd(at, end);
  return row;
}

/** Reads a DataRow; values longer than `largerThan` bytes become Buffers of their own. */
export function readLargeRow(
  buffer: Buffer,
  start: number,
  end: number,
  owned: boolean,
  largerThan: number,
): (string | Buffer | null)[] {
  const count = readInt16(buffer, start);
  const row: (string | Buffer | null)[] = [];
  let at = start + 2;
  for (let index = 0; index < count; index++) {
    const length = readValueLength(buffer, at, end);
    at += 4;
    if (length < 0) row.push(null);
    else {
      const next = at + length;
      if (length <= largerThan) row.push(buffer.toString("utf8", at, next));
      else row.push(owned ? buffer.subarray(at, next) : Buffer.from(buffer.subarray(at, next)));
      at = next;
    }
  }
  checkRowEnd(at, end);
  return row;
}

/** Reads the number at the end of a CommandComplete such as `INSERT 0 1`; 0 if there is none, as in `BEGIN`. */
export function readRowCount(buffer: Buffer, start: number, end: number): number {
  let count = 0;
  for (let at = end - 2, unit = 1; at >= start; at--, unit *= 10) {
    const digit = buffer[at]! - 0x30;
    if (digit < 0 || digit > 9) break;
    count += digit * unit;
  }
  return count;
}

/** Reads the first word of a CommandComplete. */
export function readCommand(buffer: Buffer, start: number, end: number): string {
  return buffer.toString("latin1", start, end - 1).split(" ", 1)[0]!;
}

/** The type of each field follows its name and the table's oid (4) and column (2), before size (2), modifier (4) and format (2). */
const FIELD_BYTES = 18;

export function readFields(buffer: Buffer, start: number, end: number): ResultField[] {
  const count = readInt16(buffer, start);
  const fields: ResultField[] = [];
  let at = start + 2;
  for (let index = 0; index < count; index++) {
    const close = textEnd(buffer, at, end);
    fields.push({
      name: buffer.toString("utf8", at, close),
      type: readInt32(buffer, close + 7) >>> 0,
      modifier: readInt32(buffer, close + 13),
    });
    at = close + 1 + FIELD_BYTES;
  }
  if (at !== end) throw protocolViolation("fields that are not as long as their message");
  return fields;
}

/** Returns the offset of the zero that ends a text. */
function textEnd(buffer: Buffer, at: number, end: number): number {
  const close = buffer.indexOf(0, at);
  if (close < 0 || close >= end) throw protocolViolation("a text without an end");
  return close;
}

/** Reads two zero-terminated strings, as in ParameterStatus. */
export function readPair(buffer: Buffer, start: number, end: number): [string, string] {
  const middle = textEnd(buffer, start, end);
  const close = textEnd(buffer, middle + 1, end);
  return [buffer.toString("utf8", start, middle), buffer.toString("utf8", middle + 1, close)];
}

/** Reads the transaction status of a ReadyForQuery: `IDLE`, `FAILED`, or in a transaction. */
export function readTransactionStatus(buffer: Buffer, start: number, end: number): number {
  const status = buffer[start]!;
  if (end - start !== 1 || (status !== IDLE && status !== IN_TRANSACTION && status !== IN_FAILED_TRANSACTION))
    throw protocolViolation("an unknown state of the transaction");
  return status;
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

const SQLSTATE = /^[0-9A-Z]{5}$/;

/** Decodes ErrorResponse to pg's own error class, or to a subclass. */
export function readError(
  buffer: Buffer,
  start: number,
  end: number,
  Class: ErrorClass = pg.DatabaseError,
): pg.DatabaseError {
  const fields = new Map<string, string>();
  let at = start;
  while (at < end && buffer[at] !== 0) {
    const close = textEnd(buffer, at + 1, end);
    fields.set(String.fromCharCode(buffer[at]!), buffer.toString("utf8", at + 1, close));
    at = close + 1;
  }
  if (at >= end) throw protocolViolation("an error without an end");
  // The SQLSTATE decides whether the statement caused the error, and how it is handled.
  if (!SQLSTATE.test(fields.get("C") ?? ""))
    throw protocolViolation(`an error without SQLSTATE: ${fields.get("M") ?? ""}`);
  const error = new Class(fields.get("M") ?? "", end - start, "error");
  // V is the severity in English, whatever the setting of lc_messages.
  error.severity = fields.get("V") ?? fields.get("S");
  for (const [letter, name] of Object.entries(FIELD_NAMES)) error[name] = fields.get(letter);
  return error;
}

/** FATAL and PANIC end the session. */
export function isFatal(error: pg.DatabaseError): boolean {
  return error.severity === "FATAL" || error.severity === "PANIC";
}

type DataListener = (chunk: Buffer) => void;
type ParsingConnection = pg.Connection & { attachListeners(stream: Pick<Duplex, "on">): void };

/** The message types that pg's parser knows. It would report any other type as an error of the running query. */
const TYPES_OF_PG = new Set([..."123ACDEGHIKNRSTWZcdnst"].map((letter) => letter.charCodeAt(0)));

/**
 * Checks the messages of the server before pg parses them, and closes the connection at the first that is malformed.
 * pg's parser would collect a message of any length, search for the end of an error for ever, and throw an exception
 * that nothing catches.
 */
export function checkMessages(connection: pg.Connection): void {
  const internals = connection as ParsingConnection;
  const attach = internals.attachListeners.bind(connection);
  internals.attachListeners = (stream) => {
    const reader = new MessageReader(checkMessage, isChecked);
    const check = (listener: DataListener) => (chunk: Buffer) => {
      try {
        reader.read(chunk, chunk.length);
        listener(chunk);
      } catch (error) {
        connection.stream.destroy(error as Error);
      }
    };
    attach({
      on: (event: string, listener: DataListener) => stream.on(event, event === "data" ? check(listener) : listener),
    } as Pick<Duplex, "on">);
  };
}

/** True if the message is checked. Messages of other types can be long, so they are skipped when they span several chunks. */
function isChecked(type: number): boolean {
  if (!TYPES_OF_PG.has(type)) throw protocolViolation(`a message of type ${nameOfType(type)}`);
  return type === DATA_ROW || type === ROW_DESCRIPTION || type === ERROR || type === NOTICE;
}

function checkMessage(type: number, buffer: Buffer, start: number, end: number): void {
  if (!isChecked(type)) return;
  if (type === DATA_ROW) checkRow(buffer, start, end);
  else if (type === ROW_DESCRIPTION) readFields(buffer, start, end);
  // Two zeros end the message: one ends the last field, the other the list of fields.
  else if (end - start < 2 || buffer[end - 1] !== 0 || buffer[end - 2] !== 0)
    throw protocolViolation("an error without an end");
}
