import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { resuming } from "../../realtime/resuming-socket.ts";
import type { Service } from "../../service/wiring/service.ts";
import { FailoverGroup } from "../failover.ts";
import { useFixture } from "../fixture.ts";
import { type Client, makeClient, subscribed } from "../realtime/service.ts";
import { serve } from "../serve.ts";
import { until } from "../until.ts";

/** More take longer, and show the same. */
const FAILOVERS = Number(process.env.FAILOVERS ?? 2);

/** The events that a subscriber received, in order: the ids of new rows, and the statuses of its channel. */
type ReceivedEvents = (number | string)[];

/** The numbers are the same in each run; the state at that moment is not. */
function makeRandom(seed = 1): () => number {
  let state = seed;
  return () => {
    state = (state * 48_271) % 2_147_483_647;
    return state / 2_147_483_647;
  };
}

const gateways: Service[] = [];
const clients: Client[] = [];

const group = useFixture(() => FailoverGroup.start());
beforeAll(async () => {
  await group.query(`
    create role anon;
    create role authenticator login noinherit;
    grant anon to authenticator;
    create table news (id int primary key);
    alter table news replica identity full;
    grant select, insert on news to anon;
    create publication supabase_realtime for table news`);
  const [url, ownerUrl] = [group.allServers("authenticator", "postgres"), group.allServers("postgres", "postgres")];
  for (let count = 0; count < 2; count++) gateways.push(await serve({ url, ownerUrl }));
});
afterAll(async () => {
  for (const client of clients) await client.realtime.disconnect();
  for (const gateway of gateways) await gateway.stop();
});

async function listen(gateway: Service, transport: typeof WebSocket): Promise<ReceivedEvents> {
  const received: ReceivedEvents = [];
  const client = makeClient(gateway.url, null, transport);
  clients.push(client);
  client
    .channel("news")
    .on("postgres_changes", { event: "INSERT", schema: "public", table: "news" }, ({ new: row }) =>
      received.push(row.id),
    )
    .subscribe((status) => received.push(status));
  await until(() => received.at(-1) === "SUBSCRIBED");
  return received;
}

/** Inserts rows, one after the other, until it is stopped. Returns those that were acknowledged. */
function startWriter(first: number) {
  const acknowledged: number[] = [];
  let isStopped = false;
  const client = makeClient(gateways[0]!.url);
  const run = async () => {
    for (let id = first; !isStopped; id++) {
      const { error } = await client.from("news").insert({ id });
      if (!error) acknowledged.push(id);
      else await sleep(20);
    }
  };
  const running = run();
  return {
    acknowledged,
    stop: () => {
      isStopped = true;
      return running;
    },
  };
}

async function rowsSince(first: number): Promise<number[]> {
  const { rows } = await group.query(`select id from news where id >= ${first} order by xmin::text::int8, id`);
  return rows.map(({ id }) => id);
}

const idsIn = (received: ReceivedEvents) => received.filter((each) => typeof each === "number");

/** Rows that are missing without the channel having ended since the row before them. */
function silentGaps(received: ReceivedEvents, rows: readonly number[]): number[] {
  const gaps: number[] = [];
  let next = 0;
  let isExcused = false;
  for (const each of received) {
    if (typeof each === "string") isExcused ||= each === "CHANNEL_ERROR";
    else {
      const at = rows.indexOf(each);
      // Rows that the new primary never had were sent before the message about the gap.
      if (at < 0) continue;
      if (at > next && !isExcused) gaps.push(...rows.slice(next, at));
      next = at + 1;
      isExcused = false;
    }
  }
  return gaps;
}

test.each([
  { syncsSlots: true, isSynchronous: true, how: "crash" },
  { syncsSlots: true, isSynchronous: false, how: "crash" },
  { syncsSlots: false, isSynchronous: true, how: "shutdown" },
] as const)(
  "clients of two gateways miss no row of a promoted standby unless they are notified: %o",
  async ({ syncsSlots, isSynchronous, how }) => {
    const first =
      ((await group.query("select coalesce(max(id), 0) + 1000 as first from news")).rows[0].first as number) | 0;
    const received: ReceivedEvents[] = [];
    for (const gateway of gateways)
      for (const transport of [resuming(WebSocket), WebSocket]) received.push(await listen(gateway, transport));
    await group.addStandby({ syncsSlots, isSynchronous });
    if (syncsSlots) await group.slotSynced();
    const writer = startWriter(first);
    await until(() => writer.acknowledged.length > 50);
    await group.failOver(how);
    const before = writer.acknowledged.length;
    await until(() => writer.acknowledged.length > before + 50);
    await writer.stop();
    // A channel that ends after a row was inserted joins again without it.
    const further = writer.acknowledged.at(-1)! + 1_000;
    let last = further - 1;
    await until(async () => {
      await group.query(`insert into news values (${++last})`);
      return received.every((each) => idsIn(each).some((id) => id >= further));
    });
    for (const each of received) await until(() => each.includes(last));

    const rows = await rowsSince(first);
    if (isSynchronous) expect(rows).toEqual(expect.arrayContaining(writer.acknowledged));
    for (const each of received) {
      const ids = idsIn(each);
      expect(silentGaps(each, rows)).toEqual([]);
      expect(ids).toEqual([...new Set(ids)]);
      if (syncsSlots && isSynchronous) expect(ids).toEqual(rows);
      if (!syncsSlots) expect(each).toContain("CHANNEL_ERROR");
    }
    for (const client of clients.splice(0)) await client.realtime.disconnect();
  },
);

test("broadcasts reach the clients of another gateway after a failover", async () => {
  const [one, other] = gateways.map(({ url }) => makeClient(url)) as [Client, Client];
  clients.push(one, other);
  const texts: string[] = [];
  await subscribed(
    other.channel("room").on("broadcast", { event: "hello" }, ({ payload }) => texts.push(payload.text)),
  );
  const speaker = await subscribed(one.channel("room"));
  const say = async (text: string) => {
    await speaker.send({ type: "broadcast", event: "hello", payload: { text } });
    return texts.includes(text);
  };
  await until(() => say("before"));
  await group.addStandby({ syncsSlots: true });
  await group.slotSynced();
  await group.failOver("crash");
  await expect.poll(() => say("after")).toBe(true);
});

type WrittenRow = { readonly sentAt: number; ackedAt: number };
/** The events from a SUBSCRIBED to the next error of the channel. */
type Segment = { readonly from: number; readonly ids: Set<number>; isOver: boolean };

async function listenInSegments(gateway: Service, transport: typeof WebSocket): Promise<Segment[]> {
  const segments: Segment[] = [];
  const client = makeClient(gateway.url, null, transport);
  clients.push(client);
  client
    .channel("news")
    .on("postgres_changes", { event: "INSERT", schema: "public", table: "news" }, ({ new: row }) =>
      segments.at(-1)!.ids.add(row.id),
    )
    .subscribe((status) => {
      if (status !== "SUBSCRIBED") segments.at(-1)!.isOver = true;
      else if (segments.at(-1)?.isOver !== false)
        segments.push({ from: performance.now(), ids: new Set(), isOver: false });
    });
  await until(() => segments.length > 0);
  return segments;
}

/** Rows that were sent to nobody though the channel had joined before they were, and has received a later row or has not ended. */
function findSilentGaps(segments: readonly Segment[], rows: ReadonlyMap<number, WrittenRow>): number[] {
  const received = new Set(segments.flatMap(({ ids }) => [...ids]));
  const missing = [...rows].filter(([id]) => !received.has(id));
  return missing
    .filter(([, { sentAt, ackedAt }]) =>
      segments.some(({ from, ids, isOver }) => {
        const lastSentAt = Math.max(...[...ids].map((id) => rows.get(id)?.sentAt ?? 0));
        return sentAt > from && (!isOver || ackedAt < lastSentAt);
      }),
    )
    .map(([id]) => id);
}

test(`in ${FAILOVERS} failovers at random moments under concurrent writes, no client misses a row silently`, async () => {
  const random = makeRandom();
  const [gateway, other] = gateways as [Service, Service];
  const transports = [resuming(WebSocket), WebSocket];
  const received = await Promise.all(
    [gateway, other].flatMap((each) => transports.map((it) => listenInSegments(each, it))),
  );
  let next = 1_000_000;
  const rows = new Map<number, WrittenRow>();
  const write = async (gatewayUrl: string, isStopped: () => boolean) => {
    const client = makeClient(gatewayUrl);
    while (!isStopped()) {
      const id = next++;
      const sentAt = performance.now();
      const { error } = await client.from("news").insert({ id });
      if (error) await sleep(20);
      else rows.set(id, { sentAt, ackedAt: performance.now() });
    }
  };
  let notified = 0;
  let unsynced = 0;
  for (let round = 0; round < FAILOVERS; round++) {
    const syncsSlots = random() < 0.8;
    if (!syncsSlots) unsynced++;
    await group.addStandby({ syncsSlots, isSynchronous: true });
    if (syncsSlots) await group.slotSynced();
    let isStopped = false;
    const writers = [gateway, other].flatMap(({ url }) => Array.from({ length: 4 }, () => write(url, () => isStopped)));
    const enough = rows.size + 20 + 300 * random();
    await until(() => rows.size > enough);
    await group.failOver(random() < 0.7 ? "crash" : "shutdown");
    const after = rows.size;
    await until(() => rows.size > after + 50);
    isStopped = true;
    await Promise.all(writers);
    for (const segments of received) await until(() => !segments.at(-1)!.isOver);
  }
  const last = next++;
  for (const segments of received) {
    await until(async () => {
      if (!segments.at(-1)!.isOver && segments.at(-1)!.ids.has(last)) return true;
      await group.query(`delete from news where id = ${last}; insert into news values (${last})`);
      return false;
    });
    expect(findSilentGaps(segments, rows)).toEqual([]);
    notified += segments.length - 1;
  }
  // The control: a row that a client lacks is found.
  rows.set(last, { sentAt: performance.now(), ackedAt: performance.now() });
  const damaged = received[0]!.map((segment) => ({
    ...segment,
    ids: new Set([...segment.ids].filter((each) => each !== last)),
  }));
  expect(findSilentGaps(damaged, rows)).toEqual([last]);
  const present = await rowsSince(1_000_000);
  expect(present).toEqual(expect.arrayContaining([...rows.keys()]));
  console.log(
    `${rows.size} rows, ${FAILOVERS} failovers, ${unsynced} of them without a copy of the slot, ${received.length} clients: ${notified} gaps, each notified; 0 silent`,
  );
});
