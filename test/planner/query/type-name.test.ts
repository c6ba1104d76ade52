import { expect, test } from "vitest";
import { compile, typeName } from "../../../planner/query/sql.ts";

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
