import { describe, expect, test } from "vitest";
import { toPgText } from "../../../graphql/compile/text-values.ts";
import { useClient, useDatabase } from "../../database.ts";

describe("a value as text", () => {
  test.each([
    [null, null],
    [undefined, null],
    ["a", "a"],
    ["", ""],
    [1.5, "1.5"],
    [-0, "0"],
    [9_007_199_254_740_993n, "9007199254740993"],
    [true, "true"],
    [false, "false"],
    [Buffer.from([0, 255]), "\\x00ff"],
    [new Date(0), "1970-01-01T00:00:00.000Z"],
    [{ a: [1, "b"] }, '{"a":[1,"b"]}'],
    [[], "{}"],
    [[1, "b", null, true], '{"1","b",NULL,"true"}'],
    [['a "quoted" \\ word', "{}", "NULL"], '{"a \\"quoted\\" \\\\ word","{}","NULL"}'],
    [[[1], [2]], '{{"1"},{"2"}}'],
    [[{ a: 1 }], '{"{\\"a\\":1}"}'],
  ])("%o is %o", (value, text) => {
    expect(toPgText(value)).toBe(text);
  });
});

describe("Postgres", () => {
  const database = useDatabase({ template: "empty" });
  const client = useClient(database.ownerUrl);

  test.each([
    ["text[]", ["a,b", 'c"d', "e\\f", null, "", "NULL", "{}"]],
    ["integer[]", [1, 2, null]],
    [
      "text[]",
      [
        ["a", "b"],
        ["c", null],
      ],
    ],
    ["bytea", Buffer.from([0, 1, 254])],
    ["jsonb", { a: 'quote " and \\' }],
    ["boolean", true],
    ["boolean[]", [true, false]],
  ])("reads back %s %o as it was", async (type, value) => {
    const { rows } = await client.query(`select $1::${type} as value`, [toPgText(value)]);
    expect(rows[0].value).toEqual(value);
  });
});
