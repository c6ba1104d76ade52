import { beforeAll, describe, expect, test } from "vitest";
import type { Database } from "../../../postgres/database/database.ts";
import { ResponseBudget } from "../../../postgres/database/response-budget.ts";
import { useFixture } from "../../fixture.ts";
import { until } from "../../until.ts";
import { anon, open, PID, sql } from "./open.ts";

const MOST = 1_000_000;
const SCHEMA = `
  create table log (line text);
  grant all on log to anon;
  create function write(size int) returns text language sql
    as $$ insert into log values ('written'); select repeat('x', size) $$;
`;

let database: Database;
// Each pool has one connection, so that every test meets the session that the others have left.
const opened = useFixture(() => open(SCHEMA, { poolSize: 1, maxAnswerBytes: MOST }));
beforeAll(async () => {
  database = opened.database;
});

const TOO_LARGE = { kind: "invalid", code: "ANSWER_TOO_LARGE" };
const cell = (size: number) => sql("select repeat('x', $1::int)", String(size));
const rows = (count: number) => sql("select repeat('x', 1000) from generate_series(1, $1::int)", String(count));
const read = (statement: ReturnType<typeof sql>, options = {}) =>
  database.run(anon, statement, { readOnly: true, ...options });
const pid = async () => (await read(PID, { pool: "slow" })).rows[0]![0];
const written = async () => (await opened.owner.query("select from log")).rowCount;

describe("the response to a read", () => {
  test("may have the maximum size, in one value or in many rows", async () => {
    expect((await read(cell(MOST - 100))).rows[0]![0]).toHaveLength(MOST - 100);
    expect((await read(rows(900))).rows).toHaveLength(900);
  });

  test.each([
    ["one value", cell(MOST + 1)],
    ["one value of twenty times the limit", cell(20 * MOST)],
    ["many rows", rows(1100)],
  ])("is refused if it is larger by %s, and its connection stays usable", async (_what, statement) => {
    const before = await pid();
    await expect(read(statement)).rejects.toMatchObject(TOO_LARGE);
    await expect(read(statement, { largeValues: "buffer" })).rejects.toMatchObject(TOO_LARGE);
    await expect(database.run(anon, statement, { rollback: true })).rejects.toMatchObject(TOO_LARGE);
    expect(await pid()).toBe(before);
    expect((await read(rows(900))).rows).toHaveLength(900);
  });

  test("that would continue for long is cancelled", async () => {
    const endless = sql("select repeat('x', 1000), generate_series(1, 1000000000)");
    await expect(read(endless)).rejects.toMatchObject(TOO_LARGE);
  });

  test("that is refused does not affect requests on the same connection", async () => {
    const ask = () =>
      Array.from({ length: 12 }, (_, index) =>
        index % 3 === 1 ? read(cell(20 * MOST), { pool: "read" }) : read(PID, { pool: "read" }),
      );
    let request: ReturnType<typeof ask> = [];
    // All reads must be on one connection, so that answers stand before and after the dropped one. A read that is not known to be fast
    // goes elsewhere, and on a busy machine that is known for a moment only.
    await until(async () => {
      await read(PID);
      request = ask();
      const areTogether = database.state().pools.read.inFlight > 1;
      if (!areTogether) await Promise.allSettled(request);
      return areTogether;
    });
    for (const [index, result] of (await Promise.allSettled(request)).entries()) {
      if (index % 3 === 1) expect(result).toMatchObject({ status: "rejected", reason: TOO_LARGE });
      else expect(result).toMatchObject({ status: "fulfilled", value: { rows: [[expect.stringMatching(/^\d+$/)]] } });
    }
  });

  test("is not charged for the pre-request's response", async () => {
    expect((await read(PID, { before: cell(20 * MOST) })).rows).toHaveLength(1);
  });

  test("may have a lower limit, which several statements share", async () => {
    const budget = new ResponseBudget(10_000);
    await read(rows(6), { budget });
    await expect(read(rows(6), { budget })).rejects.toMatchObject(TOO_LARGE);
    await read(rows(3), { budget });
    budget.giveAllBack();
    await read(rows(9), { budget });
  });

  test("waits when others use too much memory, unless it is small", async () => {
    const together = new ResponseBudget(1_000_000);
    const first = new ResponseBudget(1_000_000, together);
    const second = new ResponseBudget(1_000_000, together);
    await read(cell(900_000), { budget: first });
    await read(cell(100_000), { budget: second });
    const refused = { kind: "unavailable", retryAfterSeconds: 1 };
    await expect(read(cell(300_000), { budget: second })).rejects.toMatchObject(refused);
    first.giveAllBack();
    await read(cell(300_000), { budget: second });
  });
});

describe("the memory budget", () => {
  test("is released, after any number of requests", async () => {
    for (let index = 0; index < 30; index++) {
      await read(cell(900_000));
      await expect(read(cell(2 * MOST))).rejects.toMatchObject(TOO_LARGE);
      await database.transaction(anon, (query) => query(cell(900_000)));
    }
  });
});

describe("the response to a write", () => {
  test("is returned with any size: it has been committed", async () => {
    const before = (await written())!;
    const { rows } = await database.run(anon, sql("select write(2000000)"));
    expect(rows[0]![0]).toHaveLength(2_000_000);
    expect(await written()).toBe(before + 1);
  });

  test("is dropped if a budget is set, with an error that reports the change as made", async () => {
    const before = (await written())!;
    const request = database.run(anon, sql("select write(2000000)"), { budget: new ResponseBudget(MOST) });
    await expect(request).rejects.toMatchObject({ ...TOO_LARGE, message: expect.stringContaining("was made") });
    expect(await written()).toBe(before + 1);
    const failing = sql("select repeat('x', 2000000), 1 / (n - 2) from generate_series(1, 2) n");
    const failed = database.run(anon, failing, { budget: new ResponseBudget(MOST) });
    await expect(failed).rejects.toMatchObject({ code: "22012" });
  });

  test("is refused in a transaction, which is rolled back", async () => {
    const before = await written();
    const work = database.transaction(anon, (query) => query(sql("select write(2000000)")));
    await expect(work).rejects.toMatchObject(TOO_LARGE);
    const later = database.transaction(anon, async (query) => {
      await query(sql("select write(10)"));
      await query(sql("select write(2000000)"));
    });
    await expect(later).rejects.toMatchObject(TOO_LARGE);
    expect(await written()).toBe(before);
    expect((await database.run(anon, sql("select 'well'"))).rows).toEqual([["well"]]);
  });
});

describe("a stream", () => {
  const take = async (statement: ReturnType<typeof sql>) => {
    let bytes = 0;
    for await (const { data } of database.stream(anon, statement, { separator: "" })) bytes += data.length;
    return bytes;
  };

  test("has any number of rows, and none that is too large", async () => {
    expect(await take(rows(5000))).toBe(5_000_000);
    await expect(take(cell(2 * MOST))).rejects.toMatchObject(TOO_LARGE);
    expect(await take(rows(10))).toBe(10_000);
  });
});
