import { expect, test } from "vitest";
import { useFixture } from "../fixture.ts";
import { until } from "../until.ts";
import { RawClient } from "./raw-client.ts";
import { openRealtimeFixture } from "./service.ts";

// The service has no slot that keeps the last two minutes for subscribers who come back.
const fixture = useFixture(() => openRealtimeFixture(undefined, { REALTIME_SLOT: "never" }));

const CHANGES = [{ event: "*", schema: "public", table: "news" }];

async function subscribe(): Promise<RawClient> {
  const client = await new RawClient(fixture.service.url).opened();
  await client.join("realtime:news", { postgres_changes: CHANGES });
  await client.until(({ event, payload }) => event === "system" && payload.status === "ok");
  return client;
}

test("a replication slot does not grow while clients read none of the changes that they subscribed to", async () => {
  const clients = await Promise.all(Array.from({ length: 3 }, subscribe));
  for (const { socket } of clients) socket.pause();
  const retained = async () => {
    const { rows } = await fixture.owner.query(`
      select count(*)::int as slots, coalesce(max(pg_wal_lsn_diff(pg_current_wal_lsn(), confirmed_flush_lsn)), 0)::int as bytes
      from pg_replication_slots where database = current_database() and active`);
    return rows[0] as { slots: number; bytes: number };
  };
  const start = (await fixture.owner.query("select pg_current_wal_lsn() as lsn")).rows[0].lsn;
  for (let batch = 0; batch < 5; batch++) {
    await fixture.owner.query(
      `insert into public.news (id, title)
        select $1 * 100 + n, (select string_agg(md5(random()::text || n || m), '') from generate_series(1, 1500) m)
        from generate_series(1, 100) n`,
      [batch],
    );
  }
  const { rows } = await fixture.owner.query("select pg_wal_lsn_diff(pg_current_wal_lsn(), $1)::int as written", [
    start,
  ]);
  expect(rows[0].written).toBeGreaterThan(15_000_000);
  await until(async () => (await retained()).bytes < 1_000_000);
  expect((await retained()).slots).toBeGreaterThan(0);
  for (const { socket } of clients) socket.terminate();
});

test("a client that is disconnected because it does not read leaves no presence", async () => {
  const [client, witness] = [new RawClient(fixture.service.url), new RawClient(fixture.service.url)];
  await Promise.all([client.opened(), witness.opened()]);
  const rooms = Array.from({ length: 12 }, (_, number) => `realtime:room${number}`);
  for (const each of [client, witness]) await each.join("realtime:echo", { broadcast: { self: true } });
  for (const room of rooms) {
    await client.join(room);
    await witness.join(room, { presence: { enabled: true } });
  }
  const isOverwhelmed = () => fixture.service.realtime.statistics().overwhelmed > 0;
  client.socket.pause();
  // One of the presences comes when too much is unread for the state that precedes it.
  for (const room of rooms) {
    const payload = { room, text: "x".repeat(2_400_000) };
    client.say("realtime:echo", "broadcast", { type: "broadcast", event: "large", payload });
    await witness.binary.until((frame) => frame.includes(`"room":"${room}"`));
    client.say(room, "presence", { type: "presence", event: "track", payload: { name: "ghost" } });
    const isTracked = () => witness.items.some(({ topic, event }) => topic === room && event === "presence_diff");
    await until(() => isTracked() || isOverwhelmed());
    if (isOverwhelmed()) break;
  }
  expect(isOverwhelmed()).toBe(true);
  client.socket.terminate();
  await until(() => fixture.service.realtime.statistics().sockets === 1);
  for (const room of rooms) {
    await witness.join(room, { presence: { enabled: true } });
    const states = () => witness.items.filter(({ topic, event }) => topic === room && event === "presence_state");
    await until(() => states().length === 2);
    expect(states()[1]!.payload).toEqual({});
  }
  await witness.close();
});
