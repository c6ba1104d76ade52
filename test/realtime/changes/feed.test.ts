import { afterAll, beforeAll, expect, test } from "vitest";
import { RawClient } from "../raw-client.ts";
import { type Ground, openGround, token } from "../service.ts";

const ROWS = 20;

let ground: Ground;
beforeAll(async () => {
  ground = await openGround();
});
afterAll(() => ground.close());

test("a transaction of few rows that are more bytes than may wait is told to its end", async () => {
  const client = new RawClient(ground.service.url, { key: token({ role: "authenticated", sub: "ada" }) });
  await client.opened();
  await client.join("realtime:notes", { postgres_changes: [{ event: "*", schema: "public", table: "notes" }] });
  // The column is closed to the subscriber: what is long is what waits, not what is sent.
  await ground.owner.query(
    `insert into notes (id, owner, secret) select n, 'ada', repeat('x', 900000) from generate_series(1, ${ROWS}) as n`,
  );
  await client.until(({ payload }) => payload.data?.record.id === ROWS);
  const told = client.items.filter(({ event }) => event === "postgres_changes");
  expect(told.map(({ payload }) => payload.data.record.id)).toEqual(Array.from({ length: ROWS }, (_, at) => at + 1));
  await client.close();
});
