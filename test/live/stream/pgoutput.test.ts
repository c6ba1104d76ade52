import { constants } from "node:buffer";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { PgoutputDecoder, type WalHandler } from "../../../live/stream/pgoutput.ts";
import { propertyRuns } from "../../property-runs.ts";

const LSN = Buffer.alloc(8, 1);
const int16 = (number: number) => Buffer.from([number >> 8, number & 255]);
const int32 = (number: number) => Buffer.from([number >>> 24, number >>> 16, number >>> 8, number]);
const value = (text: string) => Buffer.concat([Buffer.from("t"), int32(text.length), Buffer.from(text)]);
const row = (...values: readonly Buffer[]) => Buffer.concat([int16(values.length), ...values]);
const NULL = Buffer.from("n");
const UNCHANGED = Buffer.from("u");

function frame(type: string, ...parts: readonly (Buffer | string)[]): Buffer {
  return Buffer.concat([Buffer.from(type), ...parts.map((part) => Buffer.from(part))]);
}

const column = (name: string, flags: number) => frame("", Buffer.from([flags]), `${name}\0`, int32(25), int32(-1));
const RELATION = frame("R", int32(7), "public\0items\0", "d", int16(2), column("id", 1), column("name", 0));
const BEGIN = frame("B", LSN, LSN, int32(5));
const COMMIT = frame("C", Buffer.alloc(1), LSN, LSN, LSN);
const INSERT = frame("I", int32(7), "N", row(value("1"), value("one")));
const UPDATE = frame("U", int32(7), "K", row(value("1"), NULL), "N", row(value("2"), UNCHANGED));
const DELETE = frame("D", int32(7), "O", row(value("1"), value("one")));
const TRUNCATE = frame("T", int32(1), Buffer.alloc(1), int32(7));
const MESSAGE = frame("M", Buffer.alloc(1), LSN, "prefix\0", int32(4), "text");
const TYPE = frame("Y", int32(20_000), "public\0mood\0");
const FRAMES = [RELATION, BEGIN, INSERT, UPDATE, DELETE, TRUNCATE, MESSAGE, TYPE, COMMIT];

class Seen implements WalHandler {
  readonly changes: unknown[] = [];
  readonly messages: string[] = [];
  begin(): void {}
  commit(): void {}
  wants(): boolean {
    return true;
  }
  change({ kind, new: after, old }: Parameters<WalHandler["change"]>[0]): void {
    this.changes.push([kind, after, old]);
  }
  message({ content }: Parameters<WalHandler["message"]>[0]): void {
    this.messages.push(content.toString());
  }
}

const HEADER = Buffer.from("header");

async function read(frames: readonly Buffer[]): Promise<Seen> {
  const decoder = new PgoutputDecoder(new Map([[25, "text"]]));
  const seen = new Seen();
  for (const bytes of frames) await decoder.read(Buffer.concat([HEADER, bytes]), HEADER.length, seen);
  return seen;
}

describe("the decoder of the change stream", () => {
  test("reads changes and messages", async () => {
    const { changes, messages } = await read(FRAMES);
    expect(changes).toEqual([
      ["INSERT", ["1", "one"], null],
      ["UPDATE", ["2", undefined], ["1", undefined]],
      ["DELETE", null, ["1", "one"]],
      ["TRUNCATE", null, null],
    ]);
    expect(messages).toEqual(["text"]);
  });

  test("reads a row with a value that is too long for a string without that value", () => {
    const length = constants.MAX_STRING_LENGTH + 1;
    const start = frame("I", int32(7), "N", int16(2), value("1"), "t", int32(length));
    const bytes = Buffer.alloc(start.length + length);
    start.copy(bytes);
    const decoder = new PgoutputDecoder(new Map([[25, "text"]]));
    const seen = new Seen();
    decoder.read(RELATION, 0, seen);
    decoder.read(bytes, 0, seen);
    expect(seen.changes).toEqual([["INSERT", ["1", undefined], null]]);
  });

  test.each<[string, readonly Buffer[], string]>([
    ["a change of a table that was not described", [INSERT], "a table that it has not described"],
    ["a truncation of a table that was not described", [TRUNCATE], "a table that it has not described"],
    ["a value longer than its row", [RELATION, INSERT.subarray(0, -1)], "a value that exceeds it"],
    ["a row without its last length", [RELATION, INSERT.subarray(0, -5)], "a value that exceeds it"],
    ["a row without its last value", [RELATION, INSERT.subarray(0, -8)], "a value of an unknown kind"],
    ["a row with another number of columns", [RELATION, frame("I", int32(7), "N", row(NULL))], "more or fewer columns"],
    ["the greatest length", [RELATION, frame("I", int32(7), "N", int16(2), "t", int32(-1))], "a value that exceeds it"],
    ["a truncation of too many tables", [RELATION, frame("T", int32(-1), Buffer.alloc(1), int32(7))], "more tables"],
    ["a message longer than itself", [frame("M", Buffer.alloc(1), LSN, "p\0", int32(5), "text")], "as long as it says"],
    ["a name without an end", [frame("R", int32(7), "public")], "a name without an end"],
    ["a transaction that ends early", [BEGIN.subarray(0, 12)], "a message that ends early"],
  ])("refuses %s", async (_what, frames, reason) => {
    await expect(read(frames)).rejects.toThrow(reason);
  });

  test("refuses each message that is cut short, wherever it is", async () => {
    for (const whole of FRAMES) {
      for (let length = 1; length < whole.length; length++) {
        await expect(read([RELATION, whole.subarray(0, length)])).rejects.toThrow("not Postgres's protocol");
      }
    }
  });

  test("reads or refuses whatever is changed in a message", async () => {
    const change = fc.array(fc.tuple(fc.nat(), fc.nat({ max: 255 })), { minLength: 1, maxLength: 4 });
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(...FRAMES), change, async (whole, changes) => {
        const bytes = Buffer.from(whole);
        for (const [at, byte] of changes) bytes[at % bytes.length] = byte;
        const outcome = await read([RELATION, bytes, INSERT]).catch((error: Error) => error.message);
        if (typeof outcome === "string") expect(outcome).toContain("not Postgres's protocol");
      }),
      { numRuns: propertyRuns(2_000) },
    );
  });
});
