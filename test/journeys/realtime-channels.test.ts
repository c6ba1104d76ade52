import { REALTIME_SUBSCRIBE_STATES, type RealtimeChannel } from "@supabase/supabase-js";
import { afterEach, describe, expect, test } from "vitest";
import type { Service } from "../../service/wiring/service.ts";
import { useFixture } from "../fixture.ts";
import { Inbox } from "../realtime/inbox.ts";
import {
  anonKey,
  type Client,
  clientOf,
  makeClient,
  openRealtimeFixture,
  SCHEMA,
  subscribed,
  token,
} from "../realtime/service.ts";
import { serve } from "../serve.ts";
import { until } from "../until.ts";

const PRIVATE = `
  create policy hear on realtime.messages for select to authenticated
    using ((select realtime.topic()) = 'room:' || (select auth.jwt() ->> 'sub')
      and (extension = 'broadcast' or (select auth.jwt() ->> 'blind') is null));
  create policy speak on realtime.messages for insert to authenticated
    with check ((select realtime.topic()) = 'room:' || (select auth.jwt() ->> 'sub') and (select auth.jwt() ->> 'mute') is null)`;

// biome-ignore lint/suspicious/noExplicitAny: what applications send each other.
type Message = { event: string; payload?: any; type: string };

/** Another process would be one: it shares nothing with the first but the database. */
const clients: Client[] = [];

const fixture = useFixture(() => openRealtimeFixture(`${SCHEMA}; ${PRIVATE}`));
const other = useFixture(() => serve(fixture.database));
afterEach(async () => {
  for (const client of clients.splice(0)) await client.realtime.disconnect();
});

const run = (statement: string) => fixture.owner.query(statement);
const at = (service: Service) => keep(makeClient(service.url));
const alice = async (service: Service, more: object = {}) =>
  keep(await clientOf(service.url, { role: "authenticated", sub: "alice", ...more }));

function keep(client: Client): Client {
  clients.push(client);
  return client;
}

async function hearing(client: Client, name: string, config: object = {}) {
  const heard = new Inbox<Message>();
  const channel = client.channel(name, { config }).on("broadcast", { event: "*" }, heard.put as never);
  await subscribed(channel);
  return { heard, channel };
}

const post = (path: string, body: object, headers: Record<string, string> = {}) =>
  fetch(`${fixture.service.url}${path}`, {
    method: "POST",
    body: JSON.stringify(body),
    headers: { apikey: anonKey, "Content-Type": "application/json", ...headers },
  });

describe("broadcast, with supabase-js", () => {
  test("reaches every client in the channel but the sender, at every gateway, in order", async () => {
    const sender = await hearing(at(fixture.service), "room");
    const near = await hearing(at(fixture.service), "room");
    const far = await hearing(at(other), "room");
    const elsewhere = await hearing(at(fixture.service), "another room");
    for (let n = 0; n < 20; n++) await sender.channel.send({ type: "broadcast", event: "count", payload: { n } });
    await elsewhere.channel.send({ type: "broadcast", event: "end", payload: {} });
    const counted = Array.from({ length: 20 }, (_, n) => expect.objectContaining({ event: "count", payload: { n } }));
    expect(await near.heard.count(20)).toEqual(counted);
    expect(await far.heard.count(20)).toEqual(counted);
    expect([sender.heard.items, elsewhere.heard.items]).toEqual([[], []]);
  });

  test("reaches the sender with self, and is acknowledged with ack", async () => {
    const { channel, heard } = await hearing(at(fixture.service), "echo", { broadcast: { self: true, ack: true } });
    expect(await channel.send({ type: "broadcast", event: "hi", payload: { a: "ä€😀" } })).toBe("ok");
    expect(await heard.count(1)).toEqual([expect.objectContaining({ event: "hi", payload: { a: "ä€😀" } })]);
  });

  test("carries binary payloads unchanged", async () => {
    const { heard } = await hearing(at(other), "bytes");
    const { channel } = await hearing(at(fixture.service), "bytes");
    await channel.send({ type: "broadcast", event: "raw", payload: new Uint8Array([0, 255, 7]).buffer as never });
    const [message] = await heard.count(1);
    expect(new Uint8Array(message!.payload)).toEqual(new Uint8Array([0, 255, 7]));
    await run(`select realtime.send_binary(decode(repeat('00ff07', 100), 'hex'), 'raw', 'bytes', false)`);
    const [, fromSql] = await heard.count(2);
    expect(new Uint8Array(fromSql!.payload)).toEqual(new Uint8Array(Array(100).fill([0, 255, 7]).flat()));
  });

  test("is sent from SQL when the transaction commits, and not when it is rolled back", async () => {
    const near = await hearing(at(fixture.service), "from sql");
    const far = await hearing(at(other), "from sql");
    await run("begin; select realtime.send('{}', 'undone', 'from sql', false); rollback");
    await run(
      "begin; select realtime.send('{\"a\": 1}', 'first', 'from sql', false), realtime.send('{}', 'second', 'from sql', false); commit",
    );
    for (const { heard } of [near, far]) {
      expect((await heard.count(2)).map(({ event, payload }) => [event, payload])).toEqual([
        ["first", { a: 1 }],
        ["second", {}],
      ]);
    }
  });

  test("is sent by HTTP, one by one and many at once", async () => {
    const { heard } = await hearing(at(other), "by http/ü");
    const unjoined = at(fixture.service).channel("by http/ü");
    expect(await unjoined.httpSend("one", { n: 1 })).toEqual({ success: true });
    const messages = [
      { topic: "by http/ü", event: "two", payload: { n: 2 } },
      { topic: "elsewhere", event: "x", payload: {} },
      { topic: "by http/ü", event: "not for the public", payload: {}, private: "true" },
      { topic: "by http/ü", event: "three", payload: {}, private: null },
    ];
    const answer = await post("/realtime/v1/api/broadcast", { messages }, { apikey: "", "x-api-key": anonKey });
    expect([answer.status, await answer.text()]).toEqual([202, ""]);
    expect((await heard.count(3)).map(({ event, payload }) => [event, payload])).toEqual([
      ["one", { n: 1 }],
      ["two", { n: 2 }],
      ["three", {}],
    ]);
  });

  test("by HTTP describes the expected body in its errors", async () => {
    for (const path of ["/broadcast", "/broadcast/x/events/y"]) {
      const { status, headers } = await fetch(`${fixture.service.url}/realtime/v1/api${path}`, { method: "OPTIONS" });
      expect([status, headers.get("allow")]).toEqual([204, "OPTIONS, POST"]);
    }
  });

  test.each([
    [401, "/broadcast", { messages: [] }, { apikey: "" }],
    [401, "/broadcast", { messages: [] }, { apikey: "a.b.c" }],
    [422, "/broadcast", { messages: [{ topic: "x", event: "y" }] }, {}],
    [422, "/broadcast", { messages: [{ topic: "x", event: "y", payload: [] }] }, {}],
    [422, "/broadcast", { messages: [{ topic: "x", event: "y", payload: {}, private: "yes" }] }, {}],
    [422, "/broadcast", { messages: [{ topic: "x", event: "y", payload: {}, private: { toString: 1 } }] }, {}],
    [422, "/broadcast", [], {}],
    [415, "/broadcast/x/events/y", {}, { "Content-Type": "text/plain" }],
    [403, "/broadcast/x/events/y?private=true", {}, {}],
    [422, "/broadcast/x/events/y?private=yes", {}, {}],
    [404, "/broadcast/x", {}, {}],
  ])("is refused with %i at %s of %j", async (status, path, body, headers) => {
    expect((await post(`/realtime/v1/api${path}`, body, headers)).status).toBe(status);
  });

  test("is refused with too many values, or too many levels", async () => {
    const nested = (levels: number): unknown => JSON.parse("[".repeat(levels) + "]".repeat(levels));
    const statusOf = async (path: string, payload: object) => {
      const body = path === "/broadcast" ? { messages: [{ topic: "x", event: "y", payload }] } : payload;
      return (await post(`/realtime/v1/api${path}`, body)).status;
    };
    for (const path of ["/broadcast", "/broadcast/x/events/y"]) {
      expect(await statusOf(path, { a: nested(1_001) })).toBe(422);
      expect(await statusOf(path, { a: nested(900) })).toBe(202);
    }
    expect(await statusOf("/broadcast", { a: new Array(100_000).fill(0) })).toBe(422);
    expect(await statusOf("/broadcast", { a: new Array(90_000).fill(0) })).toBe(202);
  });
});

describe("presence, with supabase-js", () => {
  async function watching(client: Client, name: string, key: string) {
    const changes = new Inbox<string>();
    const channel = client.channel(name, { config: { presence: { key } } });
    const state = new Inbox<object>();
    channel
      .on("presence", { event: "join" }, ({ key: who }) => changes.put(`${who} came`))
      .on("presence", { event: "leave" }, ({ key: who }) => changes.put(`${who} left`))
      .on("presence", { event: "sync" }, () => state.put(namesIn(channel)));
    await subscribed(channel);
    return { channel, changes, state };
  }

  const namesIn = (channel: RealtimeChannel) =>
    Object.fromEntries(
      Object.entries(channel.presenceState<{ name: string }>()).map(([key, metas]) => [
        key,
        metas.map(({ name }) => name),
      ]),
    );
  const equals = (expected: object) => (state: object) => JSON.stringify(state) === JSON.stringify(expected);

  test("has the clients that are present, at every gateway, and those that join and leave", async () => {
    const first = await watching(at(fixture.service), "hall", "first");
    await first.channel.track({ name: "One" });
    const second = await watching(at(other), "hall", "second");
    await second.state.until(equals({ first: ["One"] }));
    await second.channel.track({ name: "Two" });
    await first.state.until(equals({ first: ["One"], second: ["Two"] }));
    await first.channel.track({ name: "Uno" });
    await second.state.until(equals({ first: ["Uno"], second: ["Two"] }));
    await first.channel.untrack();
    await second.state.until(equals({ second: ["Two"] }));
    expect(first.changes.items.slice(0, 2)).toEqual(["first came", "second came"]);
  });

  test("of a lost connection is removed", async () => {
    const stays = await watching(at(fixture.service), "lobby", "stays");
    const goes = await watching(at(other), "lobby", "goes");
    await goes.channel.track({ name: "G" });
    await stays.changes.until((change) => change === "goes came");
    await goes.channel.unsubscribe();
    await stays.changes.until((change) => change === "goes left");
  });

  test("has two clients of one key as two entries of that key", async () => {
    const one = await watching(at(fixture.service), "twins", "twin");
    const two = await watching(at(fixture.service), "twins", "twin");
    await one.channel.track({ name: "A" });
    await two.channel.track({ name: "B" });
    await one.state.until(equals({ twin: ["A", "B"] }));
    await one.channel.untrack();
    await two.state.until(equals({ twin: ["B"] }));
  });

  test("of a gateway that stops is removed", async () => {
    const stays = await watching(at(fixture.service), "dock", "stays");
    const third = await serve(fixture.database);
    const goes = await watching(at(third), "dock", "goes");
    await goes.channel.track({ name: "G" });
    await stays.changes.until((change) => change === "goes came");
    await clients.pop()!.realtime.disconnect();
    await third.stop();
    await stays.changes.until((change) => change === "goes left");
  });
});

describe("private channels, with supabase-js", () => {
  test("are open to clients whom the policies admit", async () => {
    await expect(hearing(await alice(fixture.service), "room:bob", { private: true })).rejects.toThrow(
      "Unauthorized: You do not have permissions to read from this Channel topic: room:bob",
    );
    await expect(hearing(at(fixture.service), "room:alice", { private: true })).rejects.toThrow("Unauthorized");
    // The control: the very same room opens for whom it is.
    await hearing(await alice(fixture.service), "room:alice", { private: true });
  });

  test("are separate from public ones with the same name, from SQL and HTTP too", async () => {
    const inside = await hearing(await alice(other), "room:alice", { private: true });
    const outside = await hearing(at(fixture.service), "room:alice");
    const speaker = await hearing(await alice(fixture.service), "room:alice", { private: true });
    await speaker.channel.send({ type: "broadcast", event: "said", payload: {} });
    await inside.heard.count(1);
    await run("select realtime.send('{}', 'sent', 'room:alice')");
    await run(
      `select realtime.broadcast_changes('room:alice', 'changed', 'UPDATE', 't', 's', row(1)::record, row(2)::record)`,
    );
    await inside.heard.count(3);
    await outside.channel.send({ type: "broadcast", event: "outside", payload: {} });
    await run("select realtime.send('{}', 'public', 'room:alice', false)");
    expect((await outside.heard.count(1)).map(({ event }) => event)).toEqual(["public"]);
    expect(inside.heard.items.map(({ event }) => event)).toEqual(["said", "sent", "changed"]);
    expect(inside.heard.items[2]!.payload).toMatchObject({ operation: "UPDATE", table: "t", schema: "s" });
  });

  test("many messages by HTTP use one policy check for each channel", async () => {
    // A sequence goes on though the attempt is undone.
    await run(`create sequence public.asked; grant usage on public.asked to anon;
      create policy say on realtime.messages for insert to anon
        with check (nextval('public.asked') > 0 and realtime.topic() <> 'closed')`);
    const topics = [...Array.from({ length: 50 }, () => "open"), ...Array.from({ length: 50 }, () => "closed")];
    const messages = topics.map((topic) => ({ topic, event: "x", payload: {}, private: true }));
    const { status } = await post("/realtime/v1/api/broadcast", { messages });
    const { rows } = await fixture.owner.query("select last_value::int4 as asked from public.asked");
    expect([status, rows[0].asked]).toEqual([202, 2]);
    await run("drop policy say on realtime.messages; drop sequence public.asked");
  });

  test("a client that may only receive cannot send", async () => {
    const listener = await hearing(await alice(fixture.service), "room:alice", { private: true });
    const muted = await hearing(await alice(fixture.service, { mute: true }), "room:alice", {
      private: true,
      broadcast: { ack: true },
    });
    const speaker = await hearing(await alice(fixture.service), "room:alice", { private: true });
    await expect(muted.channel.send({ type: "broadcast", event: "unheard", payload: {} })).resolves.toBe("error");
    await expect(muted.channel.track({})).resolves.toBe("error");
    await speaker.channel.send({ type: "broadcast", event: "heard", payload: {} });
    expect((await listener.heard.count(1)).map(({ event }) => event)).toEqual(["heard"]);
    expect((await muted.heard.count(1)).map(({ event }) => event)).toEqual(["heard"]);
  });
});

describe("tokens, with supabase-js", () => {
  const becomes = (channel: RealtimeChannel, wanted: REALTIME_SUBSCRIBE_STATES) =>
    new Promise<void>((resolve) => channel.subscribe((status) => status === wanted && resolve()));

  test("a new token changes the visible rows, and no change is missed in between", async () => {
    let claims = { role: "authenticated", sub: "alice" };
    const client = keep(makeClient(fixture.service.url, async () => token(claims)));
    await client.realtime.setAuth();
    const result = new Inbox<{ new: { owner: string } }>();
    const channel = client
      .channel("notes")
      .on("postgres_changes", { event: "INSERT", schema: "public", table: "notes" }, result.put as never);
    await subscribed(channel);
    await run("insert into notes (owner) values ('alice'), ('bob')");
    await result.count(1);
    claims = { role: "authenticated", sub: "bob" };
    await client.realtime.setAuth();
    // Each insert has one row for either token, so a missed change would end the wait for the next row.
    let inserts = 1;
    await until(async () => {
      await run("insert into notes (owner) values ('alice'), ('bob')");
      const rows = await result.count(++inserts);
      return rows.at(-1)!.new.owner === "bob";
    });
    const owners = result.items.map((payload) => payload.new.owner);
    expect(owners).toEqual([...Array.from({ length: inserts - 1 }, () => "alice"), "bob"]);
  });

  test("an expired token ends the channel, with the reason", async () => {
    const client = await alice(fixture.service, { exp: Math.floor(Date.now() / 1000) - 28 });
    const system = new Inbox<{ message: string }>();
    const channel = client.channel("short").on("system", {}, system.put);
    await becomes(channel, REALTIME_SUBSCRIBE_STATES.CLOSED);
    expect(system.items.at(-1)!.message).toMatch(/^Token has expired \d+ seconds ago$/);
  });

  test("a token with fewer privileges ends the channel, and one with more does not", async () => {
    let claims = { role: "authenticated", sub: "alice", blind: true as boolean | undefined };
    const client = keep(makeClient(fixture.service.url, async () => token(claims)));
    await client.realtime.setAuth();
    const system = new Inbox<{ message: string }>();
    const state = new Inbox<object>();
    const channel = client
      .channel("room:alice", { config: { private: true } })
      .on("system", {}, system.put)
      .on("presence", { event: "sync" }, () => state.put(channel.presenceState()));
    const closed = becomes(channel, REALTIME_SUBSCRIBE_STATES.CLOSED);
    await subscribedAlready(channel);
    claims = { ...claims, blind: undefined };
    await client.realtime.setAuth();
    expect((await state.count(1))[0]).toEqual({});
    claims = { ...claims, blind: true };
    await client.realtime.setAuth();
    await closed;
    expect(system.items.map(({ message }) => message)).toEqual([
      "You no longer have permission to read from this Channel topic: room:alice",
    ]);
  });

  test("an invalid token is refused, with the reason", async () => {
    const refusals: [string, RegExp][] = [
      [`${token({ role: "authenticated" })}x`, /^JwtSignatureError: Failed to validate JWT signature$/],
      ["not-a-token.at-all", /^MalformedJWT: The token provided is not a valid JWT$/],
      [token({ role: "authenticated", exp: 1_000 }), /^InvalidJWTToken: Token has expired \d+ seconds ago$/],
    ];
    for (const [shown, reason] of refusals) {
      const client = keep(makeClient(fixture.service.url, async () => shown));
      await client.realtime.setAuth();
      await expect(subscribed(client.channel("refused"))).rejects.toThrow(reason);
    }
  });

  test("a disabled user is disconnected within five seconds", async () => {
    const registered = await fetch(`${fixture.service.url}/auth/register`, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ email: "eve@example.org", password: "Correct-Horse-9", name: "Eve" }),
    });
    const body = (await registered.json()) as { user: { id: number }; access_token?: string; accessToken?: string };
    const shown = (body.access_token ?? body.accessToken)!;
    const client = keep(makeClient(fixture.service.url, async () => shown));
    await client.realtime.setAuth();
    const channel = client.channel("eve");
    const closed = becomes(channel, REALTIME_SUBSCRIBE_STATES.CLOSED);
    await subscribedAlready(channel);
    const startedAt = performance.now();
    await run(`select auth.disable_account(${body.user.id}, null)`);
    await closed;
    expect(performance.now() - startedAt).toBeLessThan(6_000);
  });

  const subscribedAlready = async (channel: RealtimeChannel) => {
    await until(() => channel.state === "joined");
  };

  test("requires an API key for a socket", async () => {
    for (const query of ["", "?apikey=", "?apikey=a.b.c", `?apikey=${token({ role: "anon", exp: 1_000 })}`]) {
      const answer = await fetch(`${fixture.service.url}/realtime/v1/websocket${query}`, {
        headers: { Connection: "Upgrade", Upgrade: "websocket" },
      }).catch(() => null);
      expect(answer?.status ?? 401).toBe(401);
    }
  });
});

describe("a connection, with supabase-js", () => {
  test("that is lost is restored, with all its channels", async () => {
    const sockets: WebSocket[] = [];
    class Watched extends WebSocket {
      constructor(address: string | URL) {
        super(address);
        sockets.push(this);
      }
    }
    const client = keep(makeClient(fixture.service.url, null, Watched as typeof WebSocket));
    const statuses = new Inbox<string>();
    const result = new Inbox<object>();
    client
      .channel("back")
      .on("postgres_changes", { event: "INSERT", schema: "public", table: "news" }, result.put)
      .subscribe((status) => statuses.put(status));
    await statuses.count(1);
    sockets[0]!.close();
    await statuses.until((status) => status === REALTIME_SUBSCRIBE_STATES.CHANNEL_ERROR);
    while (statuses.items.filter((status) => status === "SUBSCRIBED").length < 2)
      await statuses.count(statuses.items.length + 1);
    await run("insert into news (id) values (1)");
    expect(await result.count(1)).toHaveLength(1);
    await run("delete from news");
  });

  test("leaves no resources behind", async () => {
    const client = at(other);
    await hearing(client, "one");
    await hearing(client, "two");
    expect(other.realtime.statistics()).toMatchObject({ sockets: 1, channels: 2 });
    await client.realtime.disconnect();
    await until(() => other.realtime.statistics().sockets === 0);
    expect(other.realtime.statistics()).toMatchObject({ sockets: 0, channels: 0 });
  });
});
