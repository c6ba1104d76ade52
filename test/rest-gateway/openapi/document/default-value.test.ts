import { describe, expect, test } from "vitest";
import type { DataType } from "../../../../catalog/data-types.ts";
import { defaultValue } from "../../../../rest-gateway/openapi/document/json-schema.ts";

const named = { oid: 1, schema: "pg_catalog", comment: null };
const base = (name: string): DataType => ({
  ...named,
  kind: "base",
  comparison: "order",
  operatorSchema: null,
  name,
  sqlName: name,
});
const genre: DataType = { ...named, kind: "enum", name: "genre", sqlName: "genre", values: ["novel"] };
const texts: DataType = {
  ...named,
  kind: "array",
  name: "_text",
  sqlName: "text[]",
  element: base("text"),
  delimiter: ",",
};

describe("a constant default", () => {
  test.each([
    ["'untitled'::character varying", base("varchar"), "untitled"],
    ["'it''s'::text", base("text"), "it's"],
    ["'a'::character varying(3)", base("varchar"), "a"],
    ["'novel'::api.genre", genre, "novel"],
    ["'14 days'::interval", base("interval"), "14 days"],
    ["0", base("int4"), 0],
    ["'-1'::integer", base("int4"), -1],
    ["9.5", base("numeric"), 9.5],
    ["true", base("bool"), true],
    ["'{}'::text[]", texts, []],
    ["'{\"a\": [1]}'::jsonb", base("jsonb"), { a: [1] }],
  ])("%s is documented", (expression, type, value) => {
    expect(defaultValue(expression, type)).toEqual(value);
  });

  test.each([
    [null, base("text")],
    ["now()", base("timestamptz")],
    ["'a'::text || 'b'::text", base("text")],
    ["nextval('api.sequence'::regclass)", base("int8")],
    ["9223372036854775807", base("int8")],
    ["'{a}'::text[]", texts],
    ["NULL::character varying", base("varchar")],
    ["'not json'::json", base("json")],
  ])("%s is not documented", (expression, type) => {
    expect(defaultValue(expression, type)).toBeUndefined();
  });
});
