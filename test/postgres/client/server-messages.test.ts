import fc from "fast-check";
import pg from "pg";
import { describe, expect, test } from "vitest";
import {
  checkRow,
  isFatal,
  MessageReader,
  readCommand,
  readError,
  readFields,
  readLargeRow,
  readPair,
  readRow,
  readRowCount,
  readTransactionStatus,
} from "../../../postgres/client/server-messages.ts";
import { propertyRuns } from "../../property-runs.ts";

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

/** Returns the result of the work; undefined if the server is said to have violated the protocol. Other exceptions are passed on. */
function onlyViolations<Result>(work: () => Result): Result | undefined {
  try {
    return work();
  } catch (error) {
    if (!(error as Error).message.startsWith("The server sent something that is not Postgres's protocol")) throw error;
    return undefined;
  }
}

/** A message's body in the middle of others, as in the buffer of a socket. */
function amongOthers(body: Buffer): { buffer: Buffer; start: number; end: number } {
  const others = Buffer.from("\0other's\0other's\0".repeat(20));
  return { buffer: Buffer.concat([others, body, others]), start: others.length, end: others.length + body.length };
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

  test.each([
    ["D", [0, 3, -1, -0x80000000, 0x7fffffff]],
    ["d", [0, 3, -1, 0x7fffffff]],
    ["E", [-1, 0x10_00_00_05, 0x7fffffff]],
    ["S", [-1, 40_000, 0x7fffffff]],
    ["Z", [-1, 40_000, 0x7fffffff]],
  ])("refuses an impossible length of a message of type %s before it allocates memory", (type, lengths) => {
    for (const length of lengths) {
      const stream = Buffer.concat([Buffer.from(type), int32(length)]);
      const admitted: number[] = [];
      const reader = new MessageReader(
        () => {},
        (_type, bytes) => admitted.push(bytes) > 0,
      );
      expect(() => reader.read(stream, stream.length)).toThrow("not Postgres's protocol");
      expect(admitted).toEqual([]);
    }
  });

  test("reads anything at all without an exception but its own, wherever it is cut", () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ minLength: 1, maxLength: 60 }), { maxLength: 8 }), (pieces) => {
        onlyViolations(() => readThroughOneBuffer(pieces.map((piece) => Buffer.from(piece))));
      }),
    );
  });
});

describe("the fields of messages", () => {
  test("a row's values are strings or null", () => {
    fc.assert(
      fc.property(fc.array(fc.option(fc.string({ unit: "grapheme" }))), (values) => {
        const body = rowBody(values);
        expect(readRow(body, 0, body.length)).toEqual(values);
      }),
    );
  });

  test("large values are Buffers that survive the next read", () => {
    const body = rowBody(["short", "long".repeat(10), null]);
    const row = readLargeRow(body, 0, body.length, false, 20);
    const original = Buffer.from("long".repeat(10));
    body.fill(0);
    expect(row).toEqual(["short", original, null]);
  });

  test("large values of a message with memory of its own are not copied again", () => {
    const body = rowBody(["long".repeat(10)]);
    const [value] = readLargeRow(body, 0, body.length, true, 20) as [Buffer];
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

  test("fields have names, type oids, also oids above two thousand million, and modifiers", () => {
    const field = (name: string, oid: number, modifier: number) =>
      Buffer.concat([Buffer.from(`${name}\0`), Buffer.alloc(6), int32(oid), int16(0), int32(modifier), int16(0)]);
    const body = Buffer.concat([int16(2), field("größe", 25, -1), field("", 0xfffffff0 | 0, 24)]);
    expect(readFields(body, 0, body.length)).toEqual([
      { name: "größe", type: 25, modifier: -1 },
      { name: "", type: 0xfffffff0, modifier: 24 },
    ]);
  });

  test("a reported setting is a pair", () => {
    const body = Buffer.from("xTimeZone\0Europe/Paris\0");
    expect(readPair(body, 1, body.length)).toEqual(["TimeZone", "Europe/Paris"]);
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

describe("a malformed message", () => {
  /** Replaces some bytes of well-formed messages, so that the damage is not only found at the beginning. */
  const damaged = (whole: fc.Arbitrary<Buffer>) =>
    fc
      .tuple(whole, fc.array(fc.tuple(fc.nat(), fc.nat({ max: 255 })), { minLength: 1, maxLength: 4 }), fc.nat())
      .map(([body, changes, cut]) => {
        const copy = Buffer.from(body.subarray(0, body.length - (cut % 3)));
        for (const [at, byte] of changes) if (copy.length > 0) copy[at % copy.length] = byte;
        return copy;
      });
  const anyBytes = fc.uint8Array({ maxLength: 60 }).map((bytes) => Buffer.from(bytes));
  const row = fc.array(fc.option(fc.string({ unit: "grapheme", maxLength: 12 })), { maxLength: 6 }).map(rowBody);
  const field = fc
    .tuple(fc.stringMatching(/^[a-z]{0,8}$/), fc.nat())
    .map(([name, oid]) => Buffer.concat([Buffer.from(`${name}\0`), Buffer.alloc(6), int32(oid), Buffer.alloc(8)]));
  const fields = fc
    .array(field, { maxLength: 4 })
    .map((described) => Buffer.concat([int16(described.length), ...described]));
  const error = fc
    .array(fc.tuple(fc.constantFrom("S", "C", "M", "D"), fc.stringMatching(/^[0-9A-Z]{0,6}$/)), { maxLength: 5 })
    .map((parts) => Buffer.from(`${parts.map(([letter, value]) => `${letter}${value}\0`).join("")}\0`));
  const pair = fc.constant(Buffer.from("TimeZone\0Europe/Paris\0"));
  const tag = fc.constant(Buffer.from("INSERT 0 12\0"));

  type Range = ReturnType<typeof amongOthers>;
  test.each<[string, fc.Arbitrary<Buffer>, (range: Range) => unknown]>([
    ["row", row, ({ buffer, start, end }) => readRow(buffer, start, end)],
    ["row that is only checked", row, ({ buffer, start, end }) => checkRow(buffer, start, end)],
    ["row with large values", row, ({ buffer, start, end }) => readLargeRow(buffer, start, end, false, 3)],
    ["description of a row", fields, ({ buffer, start, end }) => readFields(buffer, start, end)],
    ["setting", pair, ({ buffer, start, end }) => readPair(buffer, start, end)],
    ["error", error, ({ buffer, start, end }) => Object.values(readError(buffer, start, end))],
    ["end of a command", tag, ({ buffer, start, end }) => readRowCount(buffer, start, end)],
    ["end of a command's name", tag, ({ buffer, start, end }) => readCommand(buffer, start, end)],
    ["state", fc.constant(Buffer.from("I")), ({ buffer, start, end }) => readTransactionStatus(buffer, start, end)],
  ])("%s is refused, or read without a byte of the messages around it", (_kind, whole, read) => {
    fc.assert(
      fc.property(fc.oneof(damaged(whole), anyBytes), (body) => {
        const result = onlyViolations(() => read(amongOthers(body)));
        expect(JSON.stringify(result ?? null)).not.toContain("other");
      }),
      { numRuns: propertyRuns(1_000) },
    );
  });

  test.each<[string, Buffer, string]>([
    ["a value longer than its row", Buffer.concat([int16(1), int32(5), Buffer.from("four")]), "a value that exceeds"],
    ["a value of negative length", Buffer.concat([int16(1), int32(-2)]), "a value that exceeds it"],
    ["the greatest length", Buffer.concat([int16(1), int32(0x7fffffff)]), "a value that exceeds it"],
    ["more values than bytes", Buffer.concat([int16(0xffff), int32(-1)]), "a value that exceeds it"],
    ["more bytes than values", Buffer.concat([int16(1), int32(-1), Buffer.from("rest")]), "more bytes than values"],
  ])("that is a row with %s is refused", (_what, body, reason) => {
    expect(() => readRow(body, 0, body.length)).toThrow(reason);
    expect(() => readLargeRow(body, 0, body.length, true, 1)).toThrow(reason);
    expect(() => checkRow(body, 0, body.length)).toThrow(reason);
    const among = amongOthers(body);
    expect(() => readRow(among.buffer, among.start, among.end)).toThrow(reason);
  });

  test.each([
    ["without an end", "SERROR\0C23505\0Mthe message", "a text without an end"],
    ["without an end of its fields", "SERROR\0C23505\0Mthe message\0", "an error without an end"],
    ["without SQLSTATE", "SERROR\0Mthe message\0\0", "an error without SQLSTATE: the message"],
    ["with something else for SQLSTATE", "SERROR\0Coops\0Mthe message\0\0", "an error without SQLSTATE: the message"],
    ["without anything", "", "an error without an end"],
  ])("that is an error %s is refused", (_what, text, reason) => {
    const body = Buffer.from(text);
    expect(() => readError(body, 0, body.length)).toThrow(reason);
  });
});
