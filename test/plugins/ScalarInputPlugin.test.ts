import { parse, validate } from "grafast/graphql";
import { describe, expect, test } from "vitest";
import { anonymous } from "../db/callers.ts";
import { useGeneratedSchema } from "./generated-schema.ts";

const generated = useGeneratedSchema({
  template: "empty",
  sql: `
    create domain public.price as numeric check (value >= 0);
    create function public.exact(n numeric) returns text stable language sql as 'select n::text';
    create function public.large(n bigint) returns text stable language sql as 'select n::text';
    create function public.costs(n public.price) returns text stable language sql as 'select n::text';
    create function public.marked(up xml) returns text stable language sql as 'select up::text';
    create function public.known(key uuid) returns text stable language sql as 'select key::text';
    create function public.seen(at timestamptz) returns text stable language sql as 'select at::text';
    create function public.kept(value jsonb) returns jsonb stable language sql as 'select value';
    grant usage on schema public to anon;
    grant execute on all functions in schema public to anon;`,
});

const refusalsOf = (source: string) =>
  validate(generated.schema, parse(source)).map(({ message, locations }) => ({
    message,
    column: locations?.[0]?.column,
  }));

describe("a number of any length", () => {
  test.each([
    ["{ exact(n: 12345678901234567890.123456789) }", { exact: "12345678901234567890.123456789" }],
    ["{ exact(n: -5) }", { exact: "-5" }],
    ['{ exact(n: "5.0") }', { exact: "5.0" }],
    ["{ large(n: 9007199254740993) }", { large: "9007199254740993" }],
    ["{ costs(n: 1.50) }", { costs: "1.50" }],
  ])("is written in a document unquoted: %s", async (source, data) => {
    expect(await generated.read(anonymous, source)).toEqual(data);
  });

  test("is a number or a string in a variable, and a string if JSON would lose digits", async () => {
    const large = (n: unknown) => generated.ask(anonymous, "query ($n: BigInt!) { large(n: $n) }", { n });
    expect((await large(9007199254740991)).data).toEqual({ large: "9007199254740991" });
    expect((await large("9007199254740993")).data).toEqual({ large: "9007199254740993" });
    // biome-ignore lint/correctness/noPrecisionLoss: that is what it is about.
    const { data, faults } = await large(9007199254740993);
    expect(data).toBeUndefined();
    expect(faults).toMatchObject([{ message: expect.stringContaining("send it as a string") }]);
  });
});

describe("a value that is neither a string nor a number", () => {
  test.each([[{ a: 1 }], [["<a/>"]], [true]])("is refused in a variable: %j", async (up: unknown) => {
    const { data, faults } = await generated.ask(anonymous, "query ($up: XML!) { marked(up: $up) }", { up });
    expect(data).toBeUndefined();
    expect(faults).toMatchObject([{ message: expect.stringContaining("XML must be a string or a number.") }]);
  });

  test.each(["{ marked(up: {a: 1}) }", '{ marked(up: ["<a/>"]) }', "{ marked(up: true) }"])(
    "is refused with its position in a document: %s",
    (source) => {
      expect(refusalsOf(source)).toEqual([{ message: "XML must be a string or a number.", column: 14 }]);
    },
  );
});

test.each(['{ known(key: "x") }', '{ seen(at: "yesterday") }'])(
  "an invalid value of a type is refused with its position: %s",
  (source) => {
    expect(refusalsOf(source)).toEqual([{ message: expect.any(String), column: source.indexOf('"') + 1 }]);
  },
);

describe("JSON in a document", () => {
  test("equals the same JSON in a variable, and may contain variables", async () => {
    expect(
      await generated.read(anonymous, "query ($b: JSON) { kept(value: {a: [1, null, true], b: $b}) }", {
        b: { c: "d" },
      }),
    ).toEqual({ kept: { a: [1, null, true], b: { c: "d" } } });
  });

  test("is refused with an unquoted name in it", () => {
    expect(refusalsOf("{ kept(value: {a: [1, {b: WORD}]}) }")).toEqual([
      { message: "JSON has no value WORD: put it in quotes.", column: 27 },
    ]);
  });
});
