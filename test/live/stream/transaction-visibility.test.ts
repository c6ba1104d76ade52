import pg from "pg";
import { expect, test } from "vitest";
import { isTransactionVisible, makeAwaitVisible } from "../../../live/stream/transaction-visibility.ts";
import { cloneDatabase } from "../../database.ts";

test.each([
  [5, "3:8:", true],
  [5, "3:8:4,5", false],
  [8, "3:8:", false],
  [9, "3:8:", false],
  [4_294_967_290, "4294967280:4294967300:", true],
  [3, "4294967280:4294967300:", true],
  [4, "4294967280:4294967300:", false],
  [7, "8589934590:8589934600:8589934599", false],
  [6, "8589934590:8589934600:8589934599", true],
])("transaction %i in the snapshot %s: %s", (xid, snapshot, expected) =>
  expect(isTransactionVisible(xid, snapshot)).toBe(expected),
);

test("waiting for a transaction ends when it is visible to others", async () => {
  const database = await cloneDatabase("empty");
  const [writer, reader] = [0, 1].map(() => new pg.Client({ connectionString: database.ownerUrl }));
  await Promise.all([writer!.connect(), reader!.connect()]);
  await writer!.query("begin");
  const { rows } = await writer!.query("select pg_current_xact_id()::text as xid");
  let isSeen = false;
  let timeline: number | null = 1;
  const awaitVisible = makeAwaitVisible(
    (work) => work(reader!),
    () => timeline,
  );
  const seen = awaitVisible(new Set([Number(rows[0].xid)])).then(() => {
    isSeen = true;
  });
  await reader!.query("select pg_sleep(0.05)");
  expect(isSeen).toBe(false);
  // The stream has not changed to the timeline of this server yet.
  timeline = 2;
  await writer!.query("commit");
  await reader!.query("select pg_sleep(0.05)");
  expect(isSeen).toBe(false);
  timeline = 1;
  await seen;
  await Promise.all([writer!.end(), reader!.end()]);
  await database.drop();
});
