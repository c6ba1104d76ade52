import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { resuming } from "../../realtime/resuming-socket.ts";
import type { Service } from "../../service.ts";
import { FailoverGroup } from "../failover.ts";
import { type Client, makeClient } from "../realtime/service.ts";
import { serve } from "../serve.ts";
import { until } from "../until.ts";

/** What an application is told, in its order: the ids of new rows, and what becomes of its channel. */
type Told = (number | string)[];

let group: FailoverGroup;
const gateways: Service[] = [];
const clients: Client[] = [];

beforeAll(async () => {
  group = await FailoverGroup.start();
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
  await group.stop();
});

async function listen(gateway: Service, transport: typeof WebSocket): Promise<Told> {
  const told: Told = [];
  const client = makeClient(gateway.url, null, transport);
  clients.push(client);
  client
    .channel("news")
    .on("postgres_changes", { event: "INSERT", schema: "public", table: "news" }, ({ new: row }) => told.push(row.id))
    .subscribe((status) => told.push(status));
  await until(() => told.at(-1) === "SUBSCRIBED");
  return told;
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

const idsIn = (told: Told) => told.filter((each) => typeof each === "number");

/** Rows that are missing without the channel having ended since the row before them. */
function silentGaps(told: Told, rows: readonly number[]): number[] {
  const gaps: number[] = [];
  let next = 0;
  let isExcused = false;
  for (const each of told) {
    if (typeof each === "string") isExcused ||= each === "CHANNEL_ERROR";
    else {
      const at = rows.indexOf(each);
      // What the new primary never had was sent before the gap was told.
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
    const told: Told[] = [];
    for (const gateway of gateways)
      for (const transport of [resuming(WebSocket), WebSocket]) told.push(await listen(gateway, transport));
    await group.addStandby({ syncsSlots, isSynchronous });
    if (syncsSlots) await group.slotSynced();
    const writer = startWriter(first);
    await until(() => writer.acknowledged.length > 50);
    await group.failOver(how);
    const before = writer.acknowledged.length;
    await until(() => writer.acknowledged.length > before + 50);
    await writer.stop();
    // They may be joining again.
    for (const each of told) await until(() => each.findLast((item) => typeof item === "string") === "SUBSCRIBED");
    const last = writer.acknowledged.at(-1)! + 1_000;
    await group.query(`insert into news values (${last})`);
    for (const each of told) await until(() => each.includes(last));

    const rows = await rowsSince(first);
    if (isSynchronous) expect(rows).toEqual(expect.arrayContaining(writer.acknowledged));
    for (const each of told) {
      const ids = idsIn(each);
      expect(silentGaps(each, rows)).toEqual([]);
      expect(ids).toEqual([...new Set(ids)]);
      if (syncsSlots && isSynchronous) expect(ids).toEqual(rows);
      if (!syncsSlots) expect(each.filter((item) => item === "CHANNEL_ERROR")).toHaveLength(1);
    }
    for (const client of clients.splice(0)) await client.realtime.disconnect();
  },
);
