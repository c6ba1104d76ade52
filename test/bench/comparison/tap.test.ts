import pg from "pg";
import { expect, test } from "vitest";
import { openTap } from "../../../bench/comparison/tap.ts";
import { cloneDatabase } from "../../database.ts";

test("the tap records each statement with its values, prepared or not, and changes nothing", async () => {
  const database = await cloneDatabase("empty");
  const tap = await openTap(database.url);
  const client = new pg.Client({ connectionString: tap.url });
  await client.connect();
  const long = "ü".repeat(100_000);
  const named = { name: "named", text: "select $1::text as said, $2::int as n" };
  await client.query({ ...named, values: [long, 1] });
  const { rows } = await client.query({ ...named, values: ["second", null] });
  expect(rows).toEqual([{ said: "second", n: null }]);
  expect(tap.take()).toEqual([
    { text: named.text, values: [long, "1"] },
    { text: named.text, values: ["second", null] },
  ]);
  expect(tap.take()).toEqual([]);
  await client.end();
  await tap[Symbol.asyncDispose]();
  await database.drop();
});
