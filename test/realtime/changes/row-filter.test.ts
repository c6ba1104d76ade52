import fc from "fast-check";
import { expect, test } from "vitest";
import type { DataType } from "../../../catalog/data-types.ts";
import { numberComparator } from "../../../realtime/changes/row-filter.ts";
import { useClient, useDatabase } from "../../database.ts";

const typeOf = (name: string, schema = "pg_catalog") => ({ schema, name }) as DataType;

const database = useDatabase({ template: "empty" });
const client = useClient(database.ownerUrl);

const digits = (most: number) => fc.string({ unit: fc.constantFrom(..."0123456789"), minLength: 1, maxLength: most });
const decimal = fc
  .tuple(fc.constantFrom("", "-"), digits(30), fc.option(digits(20)))
  .map(([minus, whole, fraction]) => `${minus}${whole}${fraction === null ? "" : `.${fraction}`}`);
const NUMBERS = {
  int8: fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }).map(String),
  numeric: fc.oneof(decimal, fc.constantFrom("NaN", "Infinity", "-Infinity", "0", "-0.0", "1.0", "1")),
  float4: fc.oneof(fc.float().map(String), fc.constantFrom("NaN", "Infinity", "-Infinity")),
  float8: fc.oneof(fc.double().map(String), fc.constantFrom("NaN", "-0")),
};

test.each(Object.entries(NUMBERS))("%s are ordered as Postgres orders them", async (name, number) => {
  const compare = numberComparator(typeOf(name))!;
  const pair = fc.oneof(
    fc.tuple(number, number),
    number.map((same) => [same, same] as const),
  );
  const pairs = fc.sample(pair, 1_000);
  const { rows } = await client.query(
    `select one::text, other::text, (one > other)::int - (one < other)::int as expected
    from unnest($1::${name}[], $2::${name}[]) as pair (one, other)`,
    [pairs.map(([one]) => one), pairs.map(([, other]) => other)],
  );
  for (const { one, other, expected } of rows) {
    expect([one, other, Math.sign(compare(one, other)) + 0]).toEqual([one, other, expected]);
  }
});

test("other types than numbers, and user-defined types, have no such order", () => {
  expect([typeOf("text"), typeOf("date"), typeOf("numeric", "public")].map(numberComparator)).toEqual([
    null,
    null,
    null,
  ]);
});
