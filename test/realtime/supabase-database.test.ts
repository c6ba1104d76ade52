import { readFileSync } from "node:fs";
import { join } from "node:path";
import jwt from "jsonwebtoken";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { withClient } from "../../postgres/client/with-client.ts";
import type { Service } from "../../service/wiring/service.ts";
import { cloneDatabase, type TestDatabase } from "../database.ts";
import { REPOSITORY } from "../repository.ts";
import { SECRET } from "../secret.ts";
import { serve } from "../serve.ts";
import { Inbox } from "./inbox.ts";
import { anonKey, type Client, clientOf, makeClient, subscribed } from "./service.ts";
import { SUPABASE_REALTIME } from "./supabase-schema.ts";

const [ALICE, BOB, CAROL] = [1, 2, 3].map((n) => `5f0c3b1e-95a8-4b53-8a5c-0f5d0e2a9b0${n}`) as [string, string, string];

/** The forms of Supabase's documentation. */
const POLICIES = `
  create table public.rooms_users (user_id uuid not null, room_topic text not null, may_speak boolean not null);
  alter table public.rooms_users enable row level security;
  create policy own on public.rooms_users for select to authenticated using ((select auth.uid()) = user_id);
  grant select on public.rooms_users to authenticated;
  insert into public.rooms_users values ('${ALICE}', 'room-1', true), ('${BOB}', 'room-1', false);
  create policy "authenticated can receive broadcast" on realtime.messages for select to authenticated
    using (exists (select user_id from public.rooms_users
        where user_id = (select auth.uid()) and room_topic = (select realtime.topic()) and realtime.messages.extension in ('broadcast')));
  create policy "authenticated can listen to presence in topic" on realtime.messages for select to authenticated
    using (exists (select user_id from public.rooms_users
        where user_id = (select auth.uid()) and room_topic = (select realtime.topic()) and realtime.messages.extension in ('presence')));
  create policy "authenticated can send broadcast on topic" on realtime.messages for insert to authenticated
    with check (exists (select user_id from public.rooms_users
        where user_id = (select auth.uid()) and room_topic = (select realtime.topic()) and may_speak)
      and realtime.messages.extension = 'broadcast');
  create policy "authenticated can track presence on topic" on realtime.messages for insert to authenticated
    with check (extension = 'presence' and (select realtime.topic()) = 'room-1')`;

const databases: TestDatabase[] = [];
const services: Service[] = [];
const clients: Client[] = [];

async function serveDatabase(schema: string): Promise<Service> {
  const database = await cloneDatabase("empty");
  databases.push(database);
  await withClient(database.ownerUrl, (client) => client.query(schema));
  const service = await serve(database);
  services.push(service);
  return service;
}

afterEach(async () => {
  for (const client of clients.splice(0)) await client.realtime.disconnect();
});
afterAll(async () => {
  for (const service of services) await service.stop();
  for (const database of databases) await database.drop();
});

async function userOf(service: Service, sub: string): Promise<Client> {
  const client = await clientOf(service.url, { role: "authenticated", aud: "authenticated", sub });
  clients.push(client);
  return client;
}

const joinRoom = (client: Client, name = "room-1") =>
  subscribed(client.channel(name, { config: { private: true, broadcast: { ack: true } } }));

describe("private channels on a database of Supabase without our migrations", () => {
  let service: Service;
  beforeAll(async () => {
    service = await serveDatabase(`${SUPABASE_REALTIME}${POLICIES}`);
  });

  test("are joined by those whom a select policy permits, and refused to others", async () => {
    await expect(joinRoom(await userOf(service, ALICE))).resolves.toBeDefined();
    await expect(joinRoom(await userOf(service, ALICE), "room-2")).rejects.toThrow(/Unauthorized: .*room-2/);
    await expect(joinRoom(await userOf(service, CAROL))).rejects.toThrow(/Unauthorized: .*room-1/);
    const anonymous = makeClient(service.url);
    clients.push(anonymous);
    await expect(joinRoom(anonymous)).rejects.toThrow(/Unauthorized: .*room-1/);
  });

  test("deliver broadcasts of those whom an insert policy permits", async () => {
    const bob = await userOf(service, BOB);
    const received = new Inbox<{ event: string }>();
    const room = bob
      .channel("room-1", { config: { private: true, broadcast: { ack: true } } })
      .on("broadcast", { event: "*" }, received.put as never);
    await subscribed(room);
    const speaker = await joinRoom(await userOf(service, ALICE));
    expect(await room.send({ type: "broadcast", event: "refused", payload: {} })).toBe("error");
    expect(await speaker.send({ type: "broadcast", event: "permitted", payload: {} })).toBe("ok");
    expect((await received.count(1)).map(({ event }) => event)).toEqual(["permitted"]);
  });

  test("show the presences of all members", async () => {
    const [alice, bob] = [await joinRoom(await userOf(service, ALICE)), await userOf(service, BOB)];
    const joined = new Inbox<{ newPresences: object[] }>();
    const room = bob
      .channel("room-1", { config: { private: true } })
      .on("presence", { event: "join" }, joined.put as never);
    await subscribed(room);
    expect(await alice.track({ name: "Alice" })).toBe("ok");
    const [{ newPresences }] = (await joined.count(1)) as [{ newPresences: object[] }];
    expect(newPresences).toMatchObject([{ name: "Alice" }]);
  });

  test("are open to service_role by HTTP, and closed to a user whom no policy permits", async () => {
    const post = (claims: object, topic: string) =>
      fetch(`${service.url}/realtime/v1/api/broadcast/${topic}/events/greeting?private=true`, {
        method: "POST",
        body: "{}",
        headers: {
          apikey: anonKey,
          Authorization: `Bearer ${jwt.sign(claims, SECRET)}`,
          "Content-Type": "application/json",
        },
      });
    expect((await post({ role: "service_role" }, "any")).status).toBe(202);
    expect((await post({ role: "authenticated", sub: ALICE }, "room-1")).status).toBe(202);
    expect((await post({ role: "authenticated", sub: BOB }, "room-1")).status).toBe(403);
  });

  test("write nothing", async () => {
    await joinRoom(await userOf(service, ALICE));
    const rows = await withClient(databases[0]!.ownerUrl, (client) => client.query("select from realtime.messages"));
    expect(rows.rowCount).toBe(0);
  });
});

test("a database with the table of the documentation has private channels", async () => {
  const page = readFileSync(join(REPOSITORY, "docs/existing-database.md"), "utf8");
  const [, sql] = /## Private channels.*?```sql\n(.*?)```/s.exec(page)!;
  const service = await serveDatabase(`create publication supabase_realtime; ${sql}
    create policy receive on realtime.messages for select to anon using (realtime.topic() = 'lobby');
    create policy send on realtime.messages for insert to anon with check (extension = 'broadcast')`);
  const client = makeClient(service.url);
  clients.push(client);
  await expect(joinRoom(client, "elsewhere")).rejects.toThrow(/Unauthorized/);
  const lobby = await joinRoom(client, "lobby");
  expect(await lobby.send({ type: "broadcast", event: "hello", payload: {} })).toBe("ok");
  expect(await lobby.track({})).toBe("error");
});

test("a database without realtime.messages refuses private channels with the reason, and serves public ones", async () => {
  const service = await serveDatabase("create publication supabase_realtime");
  const client = await userOf(service, ALICE);
  await expect(joinRoom(client)).rejects.toThrow(
    "Private channels need the table realtime.messages, which does not exist",
  );
  await expect(subscribed(client.channel("public"))).resolves.toBeDefined();
});
