import { expect, test, vi } from "vitest";
import { readByCursor } from "../../../../cluster/archive/content/read-rows.ts";
import { useClient, useDatabase } from "../../../database.ts";

const database = useDatabase({ template: "empty" });
const client = useClient(database.ownerUrl);

/** Reads the rows, and returns their lengths and the numbers of rows that were fetched at once. */
async function read(query: string) {
  const queries = vi.spyOn(client, "query");
  await client.query("begin");
  const lengths: number[] = [];
  for await (const row of readByCursor(client, query)) lengths.push(row.length);
  await client.query("commit");
  const counts = queries.mock.calls.flatMap(([text]) => {
    const count = /^fetch (\d+)/.exec(text as unknown as string)?.[1];
    return count === undefined ? [] : [Number(count)];
  });
  queries.mockRestore();
  return { lengths, counts };
}

test("large rows are fetched a few at once, or one by one, so that memory does not depend on their number", async () => {
  const { lengths, counts } = await read("select repeat('x', 1000000) as row from generate_series(1, 30)");
  expect(lengths).toEqual(Array.from({ length: 30 }, () => 1_000_000));
  expect(Math.max(...counts)).toBeLessThanOrEqual(4);
  const larger = await read("select repeat('x', 5000000) as row from generate_series(1, 3)");
  expect(larger).toEqual({ lengths: [5_000_000, 5_000_000, 5_000_000], counts: [1, 1, 1, 1] });
});

test("small rows are fetched two hundred at once, after a few steps", async () => {
  const { lengths, counts } = await read("select n::text as row from generate_series(1, 1000) as n");
  expect(lengths).toHaveLength(1_000);
  expect(counts.slice(0, 4)).toEqual([1, 2, 4, 8]);
  expect(Math.max(...counts)).toBe(200);
});

test("no rows, and a number of rows that ends with a fetch, end", async () => {
  expect((await read("select '' as row where false")).lengths).toEqual([]);
  expect((await read("select '' as row from generate_series(1, 3)")).lengths).toEqual([0, 0, 0]);
});
