import fc from "fast-check";
import pg from "pg";
import { describe, expect, test } from "vitest";
import {
  isFatal,
  MessageReader,
  readCommand,
  readError,
  readFields,
  readLargeRow,
  readPair,
  readRow,
  readRowCount,
} from "../../../engine/database/protocol-messages.ts";

type Message = { readonly type: number; readonly body: Buffer };

function int16(number: number): Buffer {
  return Buffer.from([(number >> 8) & 255, number & 255]);
}

function int32(number: number): Buffer {
  const buffer = Buffer.alloc(4);
  buffer.writeInt32BE(number);
  return buffer;
}

function wireOf({ type, body }: Message): Buffer {
  return Buffer.concat([Buffer.from([type]), int32(body.length + 4), body]);
}

function rowBody(values: readonly (string | null)[]): Buffer {
  const parts = values.flatMap((value) =>
    value === null ? [int32(-1)] : [int32(Buffer.byteLength(value)), Buffer.from(value)],
  );
  return Buffer.concat([int16(values.length), ...parts]);
}

/** Feeds pieces through one buffer that every read overwrites, as the socket does. */
function readThroughOneBuffer(pieces: readonly Buffer[]): Message[] {
  const seen: Message[] = [];
  const reader = new MessageReader((type, buffer, start, end) =>
    seen.push({ type, body: Buffer.from(buffer.subarray(start, end)) }),
  );
  const shared = Buffer.alloc(Math.max(1, ...pieces.map((piece) => piece.length)));
  for (const piece of pieces) {
    shared.fill(0xee);
    piece.copy(shared);
    reader.read(shared, piece.length);
  }
  return seen;
}

const message = fc.record({
  type: fc.constantFrom(0x31, 0x32, 0x43, 0x44, 0x5a),
  body: fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes)),
});

describe("the message decoder", () => {
  test("finds the same messages wherever the stream is cut in two", () => {
    const messages = [
      { type: 0x31, body: Buffer.alloc(0) },
      { type: 0x44, body: rowBody(["a", null, "ß€😀"]) },
      { type: 0x43, body: Buffer.from("SELECT 1\0") },
      { type: 0x5a, body: Buffer.from("I") },
    ];
    const stream = Buffer.concat(messages.map(wireOf));
    for (let cut = 0; cut <= stream.length; cut++) {
      expect(readThroughOneBuffer([stream.subarray(0, cut), stream.subarray(cut)])).toEqual(messages);
    }
  });

  test("finds the same messages when every byte arrives separately", () => {
    fc.assert(
      fc.property(fc.array(message, { maxLength: 12 }), (messages) => {
        const stream = Buffer.concat(messages.map(wireOf));
        expect(readThroughOneBuffer([...stream].map((byte) => Buffer.from([byte])))).toEqual(messages);
      }),
    );
  });

  test("finds the same messages however the stream is cut", () => {
    fc.assert(
      fc.property(fc.array(message, { maxLength: 12 }), fc.array(fc.nat({ max: 600 })), (messages, cuts) => {
        const stream = Buffer.concat(messages.map(wireOf));
        const ends = [...cuts, stream.length].map((cut) => Math.min(cut, stream.length)).sort((a, b) => a - b);
        const pieces = ends.map((end, index) => stream.subarray(ends[index - 1] ?? 0, end));
        expect(readThroughOneBuffer(pieces)).toEqual(messages);
      }),
    );
  });

  test("returns a message in one chunk without a copy, and one in several chunks in memory of its own", () => {
    const owned: boolean[] = [];
    const reader = new MessageReader((_type, _buffer, _start, _end, isOwned) => owned.push(isOwned));
    const stream = wireOf({ type: 0x44, body: Buffer.alloc(100) });
    reader.read(stream, stream.length);
    reader.read(stream.subarray(0, 50), 50);
    reader.read(stream.subarray(50), stream.length - 50);
    expect(owned).toEqual([false, true]);
  });

  test("skips an oversized message wherever the stream is cut, and returns those around it", () => {
    const small = (text: string) => ({ type: 0x43, body: Buffer.from(text) });
    const messages = [small("before"), { type: 0x44, body: Buffer.alloc(50) }, small("behind"), small("at the end")];
    const stream = Buffer.concat(messages.map(wireOf));
    for (let size = 1; size < 50; size++) {
      const seen: string[] = [];
      const deliver = (_type: number, buffer: Buffer, start: number, end: number) =>
        void seen.push(buffer.toString("utf8", start, end));
      const reader = new MessageReader(deliver, (type, bytes) => type !== 0x44 && bytes < 50);
      for (let at = 0; at < stream.length; at += size) {
        const piece = stream.subarray(at, at + size);
        reader.read(piece, piece.length);
      }
      expect(seen).toEqual(["before", "behind", "at the end"]);
    }
  });

  test("refuses an impossible length before it allocates memory", () => {
    const reader = new MessageReader(() => {});
    for (const length of [0, 3, -1, 0x7fffffff]) {
      const stream = Buffer.concat([Buffer.from("D"), int32(length)]);
      expect(() => reader.read(stream, stream.length)).toThrow("not Postgres's protocol");
    }
  });
});

describe("the fields of messages", () => {
  test("a row's values are strings or null", () => {
    fc.assert(
      fc.property(fc.array(fc.option(fc.string({ unit: "grapheme" }))), (values) => {
        expect(readRow(rowBody(values), 0)).toEqual(values);
      }),
    );
  });

  test("large values are Buffers that survive the next read", () => {
    const body = rowBody(["short", "long".repeat(10), null]);
    const row = readLargeRow(body, 0, false, 20);
    const original = Buffer.from("long".repeat(10));
    body.fill(0);
    expect(row).toEqual(["short", original, null]);
  });

  test("large values of a message with memory of its own are not copied again", () => {
    const body = rowBody(["long".repeat(10)]);
    const [value] = readLargeRow(body, 0, true, 20) as [Buffer];
    expect(value.buffer).toBe(body.buffer);
  });

  test.each([
    ["INSERT 0 12", 12, "INSERT"],
    ["SELECT 1048576", 1048576, "SELECT"],
    ["UPDATE 0", 0, "UPDATE"],
    ["BEGIN", 0, "BEGIN"],
    ["CREATE TABLE", 0, "CREATE"],
  ])("%s has the number of rows and the command", (tag, count, command) => {
    const body = Buffer.from(`${tag}\0`);
    expect(readRowCount(body, 0, body.length)).toBe(count);
    expect(readCommand(body, 0, body.length)).toBe(command);
  });

  test("fields have names and type oids, also oids above two thousand million", () => {
    const field = (name: string, oid: number) =>
      Buffer.concat([Buffer.from(`${name}\0`), Buffer.alloc(6), int32(oid), Buffer.alloc(8)]);
    const body = Buffer.concat([int16(2), field("größe", 25), field("", 0xfffffff0 | 0)]);
    expect(readFields(body, 0)).toEqual([
      { name: "größe", type: 25 },
      { name: "", type: 0xfffffff0 },
    ]);
  });

  test("a reported setting is a pair", () => {
    expect(readPair(Buffer.from("xTimeZone\0Europe/Paris\0"), 1)).toEqual(["TimeZone", "Europe/Paris"]);
  });

  test("an error is pg's own DatabaseError with all its fields", () => {
    const text =
      "SFATALE\0VFATAL\0C23505\0Mdoppelt\0Da detail\0Ha hint\0ttable\0ccolumn\0nconstraint\0sschema\0Wwhere\0\0";
    const body = Buffer.from(text);
    const error = readError(body, 0, body.length);
    expect(error).toBeInstanceOf(pg.DatabaseError);
    expect(error).toMatchObject({
      message: "doppelt",
      severity: "FATAL",
      code: "23505",
      detail: "a detail",
      hint: "a hint",
      schema: "schema",
      table: "table",
      column: "column",
      constraint: "constraint",
      where: "where",
    });
    expect(isFatal(error)).toBe(true);
  });
});
