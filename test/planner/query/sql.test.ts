import { describe, expect, test } from "vitest";
import {
  compile,
  identifier,
  integer,
  join,
  literal,
  NOTHING,
  parameter,
  sql,
  typeName,
} from "../../../planner/query/sql.ts";

describe("an SQL fragment", () => {
  test.each([
    [identifier("plain"), '"plain"'],
    [identifier("two", 'wo"rds'), '"two"."wo""rds"'],
    [literal("it's"), "'it''s'"],
    [literal("back\\slash's"), " E'back\\\\slash''s'"],
    [integer(20), "20"],
    [join([sql`a`, sql`b`, sql`c`], ", "), "a, b, c"],
    [sql`${NOTHING}a${identifier("b")}c`, 'a"b"c'],
  ])("is spelled %#", (piece, text) => {
    expect(compile(piece)).toEqual({ text, parameters: [] });
  });

  test("numbers its parameters in order of appearance, and a repeated one once", () => {
    const id = parameter({ kind: "operand", index: 1 });
    const body = parameter({ kind: "payload" });
    const all = parameter({ kind: "argument", name: "a", all: true });
    const last = parameter({ kind: "argument", name: "a", all: false });
    expect(compile(sql`${id} ${body} ${id} ${all} ${last} ${all}`)).toEqual({
      text: "$1 $2 $1 $3 $4 $3",
      parameters: [...id.parts, ...body.parts, ...all.parts, ...last.parts],
    });
  });
});

test("a statement that would be too long is refused", () => {
  const filter = sql`${literal("x".repeat(100_000))}`;
  const conditions = (count: number) =>
    join(
      Array.from({ length: count }, () => filter),
      " and ",
    );
  expect(compile(conditions(39)).text.length).toBeGreaterThan(3_900_000);
  expect(() => compile(conditions(41))).toThrow(expect.objectContaining({ kind: "invalid", code: "54001" }));
});

describe("the name of a type", () => {
  test.each([
    ["int", "integer"],
    ["BIGINT", "bigint"],
    ["double  precision", "double precision"],
    ["char", "character"],
    ["timestamp with time zone", "timestamp with time zone"],
    ["text", '"text"'],
    ["Numeric", '"numeric"'],
    ["my_type", '"my_type"'],
    ['x" as y) from z --', '"x"" as y) from z --"'],
  ])("%j is %s", (written, expected) => {
    expect(compile(typeName(written)).text).toBe(expected);
  });
});
