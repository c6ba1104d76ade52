import { expect, test } from "vitest";
import { parseSqlConstant } from "../../plugins/FunctionArgumentsPlugin.ts";

test.each([
  ["'DRAFT'::article_status", "DRAFT"],
  ["'it''s'::text", "it's"],
  ["'-1'::integer", "-1"],
  ["'x'::character varying", "x"],
  ["'x'::numeric(12,2)", "x"],
  ["5", "5"],
  ["'1.5'::numeric", "1.5"],
  ["true", "true"],
  ["'5'::integer + 1", null],
  ["NULL::text", null],
  ["now()", null],
  ["'a'::text || 'b'::text", null],
  ["lower('A'::text)", null],
  ["E'a\\\\b'::text", null],
  ["('now'::text)::date", null],
])("the default %s is the constant %j", (expression, constant) => {
  expect(parseSqlConstant(expression)).toBe(constant);
});
