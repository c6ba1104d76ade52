import { once } from "node:events";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Message, RawClient } from "../raw-client.ts";
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

test.each([
  { what: "few channels are told much of", rows: 400, bytes: 20_000, channels: 1 },
  { what: "many channels of one socket are told of", rows: 500, bytes: 10, channels: 60 },
])("a transaction that $what throws nobody out who reads", async ({ rows, bytes, channels }) => {
  const client = await new RawClient(ground.service.url).opened();
  const topics = Array.from({ length: channels }, (_, at) => `realtime:${at}`);
  const config = { postgres_changes: [{ event: "INSERT", schema: "public", table: "news" }] };
  await Promise.all(topics.map((topic) => client.join(topic, config)));
  const closed = once(client.socket, "close").then(([code]) => code);
  await ground.owner.query(
    `insert into news (id, title) select n, repeat('x', ${bytes}) from generate_series(1, ${rows}) as n`,
  );
  const isLast = ({ topic, payload }: Message) => topic === topics.at(-1) && payload.data?.record.id === rows;
  expect(await Promise.race([client.until(isLast), closed])).toMatchObject({ event: "postgres_changes" });
  expect(client.items.filter(({ event }) => event === "postgres_changes")).toHaveLength(rows * channels);
  await client.close();
  await ground.owner.query("delete from news");
});
