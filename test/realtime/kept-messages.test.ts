import { afterEach, expect, test } from "vitest";
import { connect } from "../db/callers.ts";
import { useFixture } from "../fixture.ts";
import { serve } from "../serve.ts";
import { makeSupabaseProject } from "../supabase-template.ts";
import { until } from "../until.ts";
import { Inbox } from "./inbox.ts";
import { type Client, clientOf, subscribed } from "./service.ts";

const [ALICE, BOB] = [1, 2].map((n) => `5f0c3b1e-95a8-4b53-8a5c-0f5d0e2a9b0${n}`) as [string, string];

const MIGRATION = `
  create policy hear on realtime.messages for select to authenticated using ((select realtime.topic()) like 'room:%');
  create policy speak on realtime.messages for insert to authenticated
    with check ((select realtime.topic()) = 'room:' || (select auth.uid())::text);
  create table public.orders (id int primary key, note text);
  alter table public.orders enable row level security;
  create policy all_orders on public.orders for all to authenticated using (true) with check (true);
  create function public.tell_change() returns trigger language plpgsql security definer set search_path = '' as $$
  begin
    perform realtime.broadcast_changes('room:orders', TG_OP, TG_OP, TG_TABLE_NAME, TG_TABLE_SCHEMA, NEW, OLD);
    return null;
  end $$;
  create trigger tell_change after insert on public.orders for each row execute function public.tell_change();
  create function public.say(topic text, words jsonb) returns void language sql
    as $$ select realtime.send(words, 'said', topic) $$;`;

type Message = { event: string; payload: Record<string, unknown>; meta?: { replayed?: boolean; id: string } };

const clients: Client[] = [];

const project = useFixture(
  () => makeSupabaseProject({ "migrations/20240101000000_rooms.sql": MIGRATION }),
  ({ database }) => database.drop(),
);
const service = useFixture(() => serve(project.database, { BASE_SCHEMA: "platform", ...project.settings }));
const owner = useFixture(() => connect(project.database.ownerUrl));
afterEach(async () => {
  for (const client of clients.splice(0)) await client.realtime.disconnect();
  await owner.query("delete from realtime.messages");
});

async function signedIn(sub: string): Promise<Client> {
  const client = await clientOf(service.url, { role: "authenticated", aud: "authenticated", sub });
  clients.push(client);
  return client;
}

async function hearing(client: Client, name: string, broadcast: object = {}) {
  const heard = new Inbox<Message>();
  const channel = client.channel(name, { config: { private: true, broadcast } });
  await subscribed(channel.on("broadcast", { event: "*" }, heard.put as never));
  return heard;
}

const keptMessages = async () =>
  (await owner.query("select topic, event, payload, private, extension from realtime.messages order by inserted_at"))
    .rows;

test("a message that SQL sends is delivered when the transaction commits, and kept with an id in its payload", async () => {
  const heard = await hearing(await signedIn(BOB), "room:1");
  await owner.query("begin; select realtime.send('{}', 'undone', 'room:1'); rollback");
  await owner.query(`begin; select realtime.send('{"a": 1}', 'said', 'room:1'); commit`);
  const [message] = await heard.count(1);
  expect(message).toMatchObject({ event: "said", payload: { a: 1, id: expect.stringMatching(/^[0-9a-f-]{36}$/) } });
  expect(await keptMessages()).toEqual([
    { topic: "room:1", event: "said", payload: message!.payload, private: true, extension: "broadcast" },
  ]);
  await owner.query(`select realtime.send('{"id": "mine"}', 'said', 'room:1')`);
  expect((await heard.count(2))[1]!.payload).toEqual({ id: "mine" });
  await owner.query(`begin; select realtime.send('[1]', 'said', 'room:2')`);
  expect((await owner.query("select realtime.topic()")).rows).toEqual([{ topic: "room:2" }]);
  await owner.query("rollback");
});

test("changes of rows, and rows that are inserted into realtime.messages, are delivered too", async () => {
  const client = await signedIn(BOB);
  const heard = await hearing(client, "room:orders");
  await client.from("orders").insert({ id: 1, note: "two cups" });
  const [change] = await heard.count(1);
  expect(change).toMatchObject({ event: "INSERT", payload: { record: { id: 1, note: "two cups" }, table: "orders" } });
  await owner.query(`insert into realtime.messages (topic, extension, event, payload, private)
    values ('room:orders', 'broadcast', 'by hand', '{"b": 2}', true)`);
  expect((await heard.count(2))[1]).toMatchObject({ event: "by hand", payload: { b: 2 } });
});

test("policies decide which topics a caller sends to, and a refused message is not sent", async () => {
  const [alice, bob] = [await signedIn(ALICE), await signedIn(BOB)];
  const heard = await hearing(bob, `room:${ALICE}`);
  expect((await bob.rpc("say", { topic: `room:${ALICE}`, words: { n: 1 } })).error).toBeNull();
  expect((await alice.rpc("say", { topic: `room:${ALICE}`, words: { n: 2 } })).error).toBeNull();
  expect((await heard.count(1)).map(({ payload }) => payload.n)).toEqual([2]);
  expect((await keptMessages()).map(({ payload }) => payload.n)).toEqual([2]);
});

test("policies for joins show no row that is kept", async () => {
  await owner.query("create policy hear_all on realtime.messages for select to authenticated using (true)");
  await owner.query(`select realtime.send('{"secret": 1}', 'said', 'room:1')`);
  await owner.query("begin; set local role authenticated");
  expect((await owner.query("select * from realtime.messages")).rows).toEqual([]);
  await owner.query("rollback");
  expect(await keptMessages()).toHaveLength(1);
  const heard = await hearing(await signedIn(BOB), "anywhere");
  await owner.query(`select realtime.send('{"n": 1}', 'said', 'anywhere')`);
  expect(await heard.count(1)).toHaveLength(1);
  await owner.query("drop policy hear_all on realtime.messages");
});

test("messages are deleted 72 hours after they were sent, when others are", async () => {
  await owner.query(`
    insert into realtime.messages (topic, extension, event, payload, private, inserted_at)
    select 'room:1', 'broadcast', 'said', pg_catalog.jsonb_build_object('hours', hours), true, now() - make_interval(hours => hours)
    from unnest(array[73, 71]) as hours`);
  await owner.query("select realtime.send('{}', 'said', 'room:1')");
  expect((await keptMessages()).map(({ payload }) => payload.hours)).toEqual([71, undefined]);
});

test("a private channel replays the newest messages of its topic since a time, in their order", async () => {
  for (let n = 1; n <= 27; n++) await owner.query(`select realtime.send('{"n": ${n}}', 'said', 'room:1')`);
  await owner.query(
    `select realtime.send('{"n": 0}', 'said', 'room:2'), realtime.send('{"n": 0}', 'said', 'room:1', false)`,
  );
  const client = await signedIn(BOB);
  const numbers = (messages: readonly Message[]) => messages.map(({ payload }) => payload.n);
  const replayed = async (replay: object, count: number) => {
    const heard = await hearing(client, "room:1", { replay });
    await heard.count(count);
    // A message that is sent after the replay is the next one.
    await owner.query("select realtime.send('{\"n\": \"last\"}', 'said', 'room:1')");
    const messages = await heard.count(count + 1);
    await owner.query("delete from realtime.messages where payload ->> 'n' = 'last'");
    await client.removeAllChannels();
    return messages;
  };
  const all = await replayed({ since: 0 }, 25);
  expect(numbers(all)).toEqual([...Array.from({ length: 25 }, (_, index) => index + 3), "last"]);
  expect(all.map(({ meta }) => meta?.replayed)).toEqual([...Array(25).fill(true), undefined]);
  expect(all[0]!.meta!.id).toBe(all[0]!.payload.id);
  expect(numbers(await replayed({ since: 0, limit: 2 }, 2))).toEqual([26, 27, "last"]);
  const { rows } = await owner.query(
    "select floor(extract(epoch from inserted_at) * 1000)::float8 as ms from realtime.messages where payload ->> 'n' = '25' and private",
  );
  await owner.query(
    "update realtime.messages set inserted_at = inserted_at + interval '1 second' where payload ->> 'n' in ('26', '27')",
  );
  expect(numbers(await replayed({ since: rows[0].ms + 1 }, 2))).toEqual([26, 27, "last"]);
});

test("a replay of large messages disconnects nobody who reads, and leaves out the oldest beyond 4 MiB", async () => {
  await owner.query(
    "select realtime.send(jsonb_build_object('n', n, 'text', repeat('x', 200000)), 'said', 'room:1') from generate_series(1, 25) as n",
  );
  await owner.query("update realtime.messages set inserted_at = now() + (payload ->> 'n')::int * interval '1 ms'");
  const client = await signedIn(BOB);
  const heard = await hearing(client, "room:1", { replay: { since: 0 } });
  const replayed = () => heard.items.flatMap(({ payload, meta }) => (meta?.replayed ? [payload.n] : []));
  await until(() => replayed().includes(25) || !client.realtime.isConnected());
  expect(replayed()).toEqual(Array.from({ length: 20 }, (_, index) => index + 6));
  expect(client.realtime.isConnected()).toBe(true);
});

test("a replay of a public channel, or with values that are none, is refused", async () => {
  const client = await signedIn(BOB);
  const join = (replay: unknown) =>
    subscribed(client.channel("room:1", { config: { private: true, broadcast: { replay } } } as never));
  await expect(join({ since: "yesterday" })).rejects.toThrow("UnableToReplayMessages: Replay params are not valid");
  await client.removeAllChannels();
  await expect(join({ since: 0, limit: 1.5 })).rejects.toThrow("UnableToReplayMessages: Replay params are not valid");
  await client.removeAllChannels();
  const channel = client.channel("room:1", { config: { private: true, broadcast: { replay: { since: 0 } } } });
  // The client itself refuses to ask for it.
  channel.private = false;
  channel.params.config.private = false;
  await expect(subscribed(channel)).rejects.toThrow(
    "UnableToReplayMessages: Replay is not allowed for public channels",
  );
});
