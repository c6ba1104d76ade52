import { LIST_TYPES, TYPES } from "@dataplan/pg";
import { describe, expect, test } from "vitest";
import { idKindOf, isIdCodec, toIdCodec } from "../../plugins/IdScalarPlugin.ts";

describe("an id", () => {
  test.each([
    [TYPES.bigint, "7", "7"],
    [TYPES.bigint, "007", "7"],
    [TYPES.bigint, "-1", "-1"],
    [TYPES.bigint, "9223372036854775807", "9223372036854775807"],
    [TYPES.bigint, "9223372036854775808", null],
    [TYPES.int, "2147483648", null],
    [TYPES.int2, "40000", null],
    [TYPES.bigint, "99999999999999999999", null],
    [TYPES.bigint, "abc", null],
    [TYPES.bigint, "1.0", null],
    [TYPES.bigint, "1e3", null],
    [TYPES.bigint, " 1", null],
    [TYPES.bigint, "", null],
    [TYPES.uuid, "4B0C5E52-1F2A-4C3D-8E9F-0A1B2C3D4E5F", "4b0c5e52-1f2a-4c3d-8e9f-0a1b2c3d4e5f"],
    [TYPES.uuid, "4b0c5e52", null],
    [TYPES.text, "any text", "any text"],
  ])("of type %s: %j is %j to Postgres", (codec, text, read) => {
    expect(toIdCodec(codec, "matches nothing").toPg(text)).toBe(read);
  });

  test("is refused if it is null where null has another meaning", () => {
    expect(toIdCodec(TYPES.bigint, "is refused").toPg("7")).toBe("7");
    expect(() => toIdCodec(TYPES.bigint, "is refused").toPg("abc")).toThrow('"abc" is not a valid id.');
  });

  test("is created once for each type", () => {
    const codec = toIdCodec(TYPES.bigint, "matches nothing");
    expect(toIdCodec(TYPES.bigint, "matches nothing")).toBe(codec);
    expect(toIdCodec(codec, "is refused")).toBe(codec);
    expect(isIdCodec(codec)).toBe(true);
    expect(isIdCodec(TYPES.bigint)).toBe(false);
  });

  test("is a number for a numeric column, and a string only as a key", () => {
    expect(idKindOf(TYPES.bigint)).toBe("number");
    expect(idKindOf(TYPES.text)).toBe("word");
    expect(idKindOf(TYPES.timestamptz)).toBeNull();
    expect(idKindOf(LIST_TYPES.uuid)).toBeNull();
  });
});
