import pg from "pg";
import { expect, test } from "vitest";
import { hideShards } from "../../../postgres/database/shard-names.ts";

const MESSAGE = 'insert into "events_202401_102040" refers to "orders_102041", "events_202401" and "102042"';

function makeError(): pg.DatabaseError {
  const error = new pg.DatabaseError(MESSAGE, 0, "error");
  return Object.assign(error, { table: "events_202401_102040", constraint: "events_in_202401" });
}

test("names lose the numbers of shards that Citus has, and keep others", async () => {
  const error = makeError();
  const asked: unknown[] = [];
  const client = {
    query: async (_: string, values: unknown[]) =>
      asked.push(...values) && { rows: [{ shard: "102040" }, { shard: "102041" }] },
  };
  await hideShards(error, (work) => work(client as never));
  expect(asked).toEqual([["102040", "102041", "202401"]]);
  expect(error.message).toBe('insert into "events_202401" refers to "orders", "events_202401" and "102042"');
  expect([error.table, error.constraint]).toEqual(["events_202401", "events_in_202401"]);
});

test("if Citus cannot be asked, names lose every number that may be one of a shard", async () => {
  const error = makeError();
  await hideShards(error, () => Promise.reject(new Error("lost")));
  expect(error.message).toBe('insert into "events_202401" refers to "orders", "events" and "102042"');
  expect(error.constraint).toBe("events_in");
});

test("without such a number, nothing is asked", async () => {
  const error = new pg.DatabaseError('relation "orders" does not exist', 0, "error");
  await hideShards(error, () => Promise.reject(new Error("asked")));
  expect(error.message).toBe('relation "orders" does not exist');
});
