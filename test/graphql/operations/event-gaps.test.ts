import pg from "pg";
import { beforeAll, describe, expect, test } from "vitest";
import { EventGapDetector, type IssuedNumbers, makeReadIssuedNumbers } from "../../../graphql/operations/events.ts";
import { cloneDatabase, useClient, useDatabase } from "../../database.ts";

/** Makes a count for which Postgres returns the given answers. */
function counted(...answers: (IssuedNumbers | null | Error | Promise<IssuedNumbers>)[]) {
  return new EventGapDetector(async () => {
    const answer = answers.shift()!;
    if (answer instanceof Error) throw answer;
    return answer;
  });
}
const settled = (last: number, timeline = 1): IssuedNumbers => ({ last, isSettled: true, timeline });

describe("the count of events", () => {
  test("reports no gap when all issued numbers were received, in any order", async () => {
    const count = counted(settled(7), settled(10), settled(10));
    expect(count.isUncertain).toBe(true);
    expect(await count.mayHaveMissed()).toBe(true);
    expect(count.isUncertain).toBe(false);
    for (const number of [9, 8, 10]) count.record(number);
    expect(await count.mayHaveMissed()).toBe(false);
    expect(await count.mayHaveMissed()).toBe(false);
  });

  test("reports a missing number, and restarts", async () => {
    const count = counted(settled(7), settled(9), settled(10));
    await count.mayHaveMissed();
    count.record(9);
    expect(await count.mayHaveMissed()).toBe(true);
    count.record(10);
    expect(await count.mayHaveMissed()).toBe(false);
  });

  test("reports a gap at a standby that was promoted, which may have issued the numbers again", async () => {
    const count = counted(settled(7), settled(9, 2), settled(9, 2));
    await count.mayHaveMissed();
    for (const number of [8, 9]) count.record(number);
    expect(await count.mayHaveMissed()).toBe(true);
    expect(await count.mayHaveMissed()).toBe(false);
  });

  test("is not final during a transaction that may have taken a number", async () => {
    const count = counted({ ...settled(7), isSettled: false }, settled(7), settled(7));
    await count.mayHaveMissed();
    expect(count.isUncertain).toBe(true);
    expect(await count.mayHaveMissed()).toBe(true);
    expect(await count.mayHaveMissed()).toBe(false);
  });

  test("counts numbers that arrive during the query", async () => {
    const request = Promise.withResolvers<IssuedNumbers>();
    const count = counted(settled(7), request.promise, settled(10));
    await count.mayHaveMissed();
    const answer = count.mayHaveMissed();
    for (const number of [8, 9, 10]) count.record(number);
    request.resolve(settled(9));
    expect(await answer).toBe(false);
    expect(await count.mayHaveMissed()).toBe(false);
  });

  test("throws when Postgres does not answer, and recovers", async () => {
    const count = counted(settled(7), new Error("away"), settled(7), settled(7));
    await count.mayHaveMissed();
    expect(await count.mayHaveMissed()).toBe(true);
    expect(count.isUncertain).toBe(true);
    await count.mayHaveMissed();
    expect(await count.mayHaveMissed()).toBe(false);
  });

  test.each([
    ["events are not numbered here", (_count: EventGapDetector) => {}, null],
    ["an event came without a number", (count: EventGapDetector) => count.record(undefined), settled(7)],
  ])("always reports a gap if %s", async (_, happen, answer) => {
    const count = counted(answer, answer);
    happen(count);
    expect(await count.mayHaveMissed()).toBe(true);
    expect(await count.mayHaveMissed()).toBe(true);
    expect(count.isUncertain).toBe(false);
  });
});

describe("Postgres", () => {
  const database = useDatabase({ sql: "insert into public.users (name, email) values ('Ann', 'ann@example.org')" });
  const client = useClient(database.ownerUrl);
  beforeAll(() => client.query("select content_service.await_events(3600)"));
  const ask = () => makeReadIssuedNumbers((work) => work(client))();
  const write = (by: pg.Client) =>
    by.query("insert into public.articles (author_id, title, content) values (1, 'First one', '')");

  test("returns the last issued number, and whether a transaction with a number is running", async () => {
    expect(await ask()).toEqual(settled(1));
    await write(client);
    expect(await ask()).toEqual(settled(2));
    const other = new pg.Client({ connectionString: database.ownerUrl });
    await other.connect();
    try {
      await other.query("begin; update public.users set name = 'Anna'");
      expect(await ask()).toEqual(settled(2));
      await write(other);
      expect(await ask()).toEqual({ last: 3, isSettled: false, timeline: 1 });
      await other.query("rollback");
      expect(await ask()).toEqual(settled(3));
    } finally {
      await other.end();
    }
  });

  test("returns null if events are not numbered", async () => {
    const empty = await cloneDatabase("empty");
    const other = new pg.Client({ connectionString: empty.ownerUrl });
    await other.connect();
    expect(await makeReadIssuedNumbers((work) => work(other))()).toBeNull();
    await other.end();
    await empty.drop();
  });
});
