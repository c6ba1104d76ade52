import type { ParameterValue } from "./statement.ts";

// The first byte of each message from the client (https://www.postgresql.org/docs/current/protocol-message-formats.html).
export const BIND = 0x42;
const CLOSE = 0x43;
const DESCRIBE = 0x44;
export const EXECUTE = 0x45;
const FLUSH = 0x48;
export const PARSE = 0x50;
export const SYNC = 0x53;

/** The targets of Describe and Close. */
const PORTAL = 0x50;
export const STATEMENT = 0x53;

const SLAB_BYTES = 16 * 1024;
/** No UTF-16 unit takes more bytes than this in UTF-8. */
const MAX_BYTES_PER_CHARACTER = 3;

const EXECUTE_MESSAGE = Buffer.from([EXECUTE, 0, 0, 0, 9, 0, 0, 0, 0, 0]);
const DESCRIBE_MESSAGE = Buffer.from([DESCRIBE, 0, 0, 0, 6, PORTAL, 0]);
const FLUSH_MESSAGE = Buffer.from([FLUSH, 0, 0, 0, 4]);
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

  /** Executes some rows without a Sync, so that the portal can be executed further. */
  executeSome(rows: number): void {
    this.#reserve(10);
    this.#begin(EXECUTE, 9);
    this.#byte(0);
    this.#int32(rows);
    this.#constant(FLUSH_MESSAGE);
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

  /** Returns all bytes written since the last take, in order. */
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

  /** Writes a statement name. Names are generated and plain ASCII. */
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
