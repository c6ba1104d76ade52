import { once } from "node:events";
import { describe, expect, test } from "vitest";
import { ChangeFeed } from "../../../realtime/changes/feed.ts";
import { useFixture } from "../../fixture.ts";
import { until } from "../../until.ts";
import { type Message, RawClient } from "../raw-client.ts";
import { openRealtimeFixture, token } from "../service.ts";
import { Listener, StreamByHand, servicesWith } from "./stream-by-hand.ts";

const ROWS = 20;

const fixture = useFixture(openRealtimeFixture);

test("a transaction of few rows that exceed the queue's bytes is delivered completely", async () => {
  const client = new RawClient(fixture.service.url, { key: token({ role: "authenticated", sub: "ada" }) });
  await client.opened();
  await client.join("realtime:notes", { postgres_changes: [{ event: "*", schema: "public", table: "notes" }] });
  // The role may not read the column: the queue is large, the messages are not.
  await fixture.owner.query(
    `insert into notes (id, owner, secret) select n, 'ada', repeat('x', 900000) from generate_series(1, ${ROWS}) as n`,
  );
  await client.until(({ payload }) => payload.data?.record.id === ROWS);
  const result = client.items.filter(({ event }) => event === "postgres_changes");
  expect(result.map(({ payload }) => payload.data.record.id)).toEqual(Array.from({ length: ROWS }, (_, at) => at + 1));
  await client.close();
});

test.each([
  { what: "sends much to few channels", rows: 400, bytes: 20_000, channels: 1 },
  { what: "concerns many channels of one socket", rows: 500, bytes: 10, channels: 60 },
])("a transaction that $what disconnects no client that reads", async ({ rows, bytes, channels }) => {
  const client = await new RawClient(fixture.service.url).opened();
  const topics = Array.from({ length: channels }, (_, at) => `realtime:${at}`);
  const config = { postgres_changes: [{ event: "INSERT", schema: "public", table: "news" }] };
  await Promise.all(topics.map((topic) => client.join(topic, config)));
  const closed = once(client.socket, "close").then(([code]) => code);
  await fixture.owner.query(
    `insert into news (id, title) select n, repeat('x', ${bytes}) from generate_series(1, ${rows}) as n`,
  );
  const isLast = ({ topic, payload }: Message) => topic === topics.at(-1) && payload.data?.record.id === rows;
  expect(await Promise.race([client.until(isLast), closed])).toMatchObject({ event: "postgres_changes" });
  expect(client.items.filter(({ event }) => event === "postgres_changes")).toHaveLength(rows * channels);
  await client.close();
  await fixture.owner.query("delete from news");
});

test.each([
  { what: "is the only one", joins: 1 },
  { what: "waits behind others", joins: 2 },
])(
  "a client that joins while the stream is away, and $what, is rejected when the stream is refused",
  async ({ joins }) => {
    const stream = new StreamByHand();
    const services = await servicesWith(stream, fixture);
    const feed = new ChangeFeed({ ...services, since: null });
    const joining: Promise<unknown>[] = [];
    for (let nth = 0; nth < joins; nth++) {
      joining.push(feed.subscribe(new Listener()).catch((error: unknown) => error));
      await until(() => stream.underway.length === 1);
    }
    stream.refuse("there is no publication");
    for (const refusal of await Promise.all(joining)) {
      expect(refusal).toMatchObject({ kind: "unavailable", message: "there is no publication" });
    }
    expect(feed.isEmpty).toBe(true);
    feed.close();
    await services.catalog.close();
  },
);

test("changes in delivery at a gap do not affect later changes, whose positions start again", async () => {
  const stream = new StreamByHand();
  const hanging = Promise.withResolvers<void>();
  const request: ReadonlySet<number>[] = [];
  const awaitVisible = (xids: ReadonlySet<number>) => (request.push(xids) === 1 ? hanging.promise : Promise.resolve());
  const services = await servicesWith(stream, { owner: fixture.owner, awaitVisible });
  const feed = new ChangeFeed({ ...services, since: null });
  const subscribe = async (listener: Listener) => {
    const subscribed = feed.subscribe(listener);
    await until(() => stream.underway.length === 1);
    stream.arrive();
    return { subscribed };
  };
  const before = new Listener();
  await (await subscribe(before)).subscribed;
  stream.insert(1_000n, "41");
  await until(() => request.length === 1);
  stream.gap(500n);
  expect(before.lost).toBe("a gap");
  feed.remove(before);
  const behind = new Listener();
  const { subscribed } = await subscribe(behind);
  hanging.resolve();
  await subscribed;
  stream.insert(700n, "42");
  await until(() => feed.isIdle);
  behind.outbox.flush();
  expect(behind.sent.join()).toContain('"record":{"id":42}');
  feed.close();
  await services.catalog.close();
});

test("changes that a promoted standby never had are discarded if they were not delivered, and otherwise reported", async () => {
  const stream = new StreamByHand();
  const request: PromiseWithResolvers<void>[] = [];
  const awaitVisible = () => {
    request.push(Promise.withResolvers());
    return request.at(-1)!.promise;
  };
  const services = await servicesWith(stream, { owner: fixture.owner, awaitVisible });
  const feed = new ChangeFeed({ ...services, since: null });
  const listener = new Listener();
  const subscribed = feed.subscribe(listener);
  await until(() => stream.underway.length === 1);
  stream.arrive();
  await subscribed;
  stream.insert(1_000n, "41");
  await until(() => request.length === 1);
  stream.insert(2_000n, "42");
  stream.insert(3_000n, "43");
  stream.rewind(2_000n);
  request[0]!.resolve();
  await until(() => feed.isIdle);
  stream.insert(2_500n, "44");
  await until(() => request.length === 2);
  request[1]!.resolve();
  await until(() => feed.isIdle);
  listener.outbox.flush();
  expect(listener.lost).toBe(null);
  expect(listener.sent.join().match(/"record":\{"id":\d+/g)).toEqual(['"record":{"id":41', '"record":{"id":44']);
  expect(feed.deliveredTo.commitLsn).toBe(2_500n);

  stream.rewind(2_500n);
  expect(listener.lost).toBe("a rewind");
  feed.close();
  await services.catalog.close();
});

test("the stream is asked only for tables of present subscribers, at a cost that does not depend on their bindings", async () => {
  const stream = new StreamByHand();
  const services = await servicesWith(stream, fixture);
  const feed = new ChangeFeed({ ...services, since: null });
  let reads = 0;
  const listener = new Listener();
  const counted = new Proxy(listener, {
    get: (target, name) => {
      if (name === "bindings") reads++;
      return Reflect.get(target, name);
    },
  });
  const isWanted = () => stream.wants({ schema: "public", name: "news" });
  expect(isWanted()).toBe(false);
  feed.addFromReplay(counted);
  const before = reads;
  expect([isWanted(), stream.wants({ schema: "public", name: "notes" }), reads]).toEqual([true, false, before]);
  feed.remove(counted);
  feed.remove(counted);
  expect(isWanted()).toBe(false);
  feed.close();
  await services.catalog.close();
});

describe("a change that is checked while the schema changes", () => {
  async function deliver(change: (check: number, stream: StreamByHand) => Promise<void>) {
    const stream = new StreamByHand();
    let checks = 0;
    const awaitVisible = () => change(++checks, stream);
    const services = await servicesWith(stream, { owner: fixture.owner, awaitVisible });
    const feed = new ChangeFeed({ ...services, since: null });
    const listener = new Listener();
    const subscribed = feed.subscribe(listener);
    await until(() => stream.underway.length === 1);
    stream.arrive();
    await subscribed;
    stream.insert(1_000n, "41");
    await until(() => feed.isIdle);
    listener.outbox.flush();
    feed.close();
    await services.catalog.close();
    return { checks, sent: listener.sent.join() };
  }

  test("is delivered, though changes of other tables never end", async () => {
    const { checks, sent } = await deliver(async (_check, stream) => stream.changeSchema());
    expect(checks).toBe(1);
    expect(sent).toContain('"record":{"id":41}');
  });

  test("is checked together with those on the other side of a change of the schema, if they wait", async () => {
    const { checks, sent } = await deliver(async (check, stream) => {
      if (check > 1) return;
      for (const id of [42n, 43n, 44n]) {
        stream.changeSchema();
        stream.insert(1_000n * id, String(id));
      }
    });
    expect(checks).toBe(2);
    expect(sent.match(/"record":\{"id":\d+/g)).toEqual([41, 42, 43, 44].map((id) => `"record":{"id":${id}`));
  });

  test.each([
    ["gets a column", true, "alter table news add column late integer", "alter table news drop column late"],
    [
      "gets a policy",
      true,
      "alter table news enable row level security; create policy late on news for select using (id > 0)",
      "drop policy late on news; alter table news disable row level security",
    ],
    ["is revoked", false, "revoke select on news from anon", "grant select on news to anon"],
  ])("is checked again if its table %s", async (_what, isSent, alter, restore) => {
    const { checks, sent } = await deliver(async (check, stream) => {
      if (check > 1) return;
      await fixture.owner.query(alter);
      stream.changeSchema();
    });
    await fixture.owner.query(restore);
    expect([checks, sent.includes('"record":{"id":41}')]).toEqual([2, isSent]);
  });
});
