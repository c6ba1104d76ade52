import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { MessageEncoder } from "../../../postgres/database/protocol-messages.ts";
import type { ParameterValue } from "../../../postgres/database/statement.ts";

const name = fc.stringMatching(/^s\d{1,6}$/);
const large = fc.nat({ max: 60_000 }).map((length) => "xß€😀".repeat(length / 4));
const text = fc.oneof(fc.string({ unit: "grapheme", maxLength: 400 }), large);
const value: fc.Arbitrary<ParameterValue> = fc.oneof(
  { weight: 6, arbitrary: fc.string({ unit: "grapheme", maxLength: 200 }) },
  { weight: 2, arbitrary: fc.constant(null) },
  { weight: 2, arbitrary: large },
  { weight: 2, arbitrary: fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)) },
  { weight: 1, arbitrary: large.map((long) => Buffer.from(long)) },
);

/** The protocol's documentation, put plainly. */
function message(type: string, ...parts: (Buffer | string)[]): Buffer {
  const body = Buffer.concat(parts.map((part) => Buffer.from(part)));
  return Buffer.concat([Buffer.from(type), int32(body.length + 4), body]);
}

function bindMessage(statement: string, values: readonly ParameterValue[]): Buffer {
  const parts = values.flatMap((part) => (part === null ? [int32(-1)] : [int32(Buffer.byteLength(part)), part]));
  return message("B", "\0", `${statement}\0`, int16(0), int16(values.length), ...parts, int16(0));
}

function int16(number: number): Buffer {
  return Buffer.from([number >> 8, number & 255]);
}

function int32(number: number): Buffer {
  const buffer = Buffer.alloc(4);
  buffer.writeInt32BE(number);
  return buffer;
}

function taken(outbox: MessageEncoder): Buffer {
  return Buffer.concat(outbox.take());
}

describe("the outbox", () => {
  test("encodes Parse by the protocol, however long the text", () => {
    const outbox = new MessageEncoder();
    fc.assert(
      fc.property(name, text, (statement, sql) => {
        outbox.parse(statement, sql);
        expect(taken(outbox).equals(message("P", `${statement}\0`, `${sql}\0`, int16(0)))).toBe(true);
      }),
    );
  });

  test("encodes Bind by the protocol, for strings, Buffers and nulls of all sizes", () => {
    const outbox = new MessageEncoder();
    fc.assert(
      fc.property(name, fc.array(value, { maxLength: 12 }), (statement, values) => {
        outbox.bind(statement, values);
        expect(taken(outbox).equals(bindMessage(statement, values))).toBe(true);
      }),
    );
  });

  test("keeps messages in order if they exceed one chunk", () => {
    const outbox = new MessageEncoder();
    fc.assert(
      fc.property(fc.array(fc.tuple(name, fc.array(value, { maxLength: 3 })), { maxLength: 30 }), (binds) => {
        for (const [statement, values] of binds) outbox.bind(statement, values);
        const expected = Buffer.concat(binds.map(([statement, values]) => bindMessage(statement, values)));
        expect(taken(outbox).equals(expected)).toBe(true);
      }),
    );
  });

  test("encodes the short messages", () => {
    const outbox = new MessageEncoder();
    outbox.describePortal();
    outbox.execute();
    outbox.executeSome(200);
    outbox.closeStatement("s7");
    outbox.sync();
    const executes = [message("E", "\0", int32(0)), message("E", "\0", int32(200)), message("H")];
    expect(taken(outbox)).toEqual(
      Buffer.concat([message("D", "P\0"), ...executes, message("C", "Ss7\0"), message("S")]),
    );
  });

  test("returns chunks that later writes do not change", () => {
    const outbox = new MessageEncoder();
    outbox.bind("s1", ["first"]);
    const chunks = outbox.take();
    outbox.bind("s1", ["OTHER"]);
    expect(Buffer.concat(chunks)).toEqual(bindMessage("s1", ["first"]));
  });

  test("a large Buffer is sent as it is, without a copy", () => {
    const body = Buffer.alloc(100_000, "a");
    const outbox = new MessageEncoder();
    outbox.bind("s1", [body]);
    expect(outbox.take().some((chunk) => chunk === body)).toBe(true);
  });
});
