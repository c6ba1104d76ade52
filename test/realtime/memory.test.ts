import { once } from "node:events";
import type { Socket } from "node:net";
import { Duplex } from "node:stream";
import { afterEach, describe, expect, test } from "vitest";
import { useFixture } from "../fixture.ts";
import { until } from "../until.ts";
import { outboxTo } from "./outbox-to.ts";
import { RawClient } from "./raw-client.ts";
import { openRealtimeFixture, token } from "./service.ts";

const KIB = 1024;
/** One socket may keep 64 KiB, 8 KiB of them presences; all together 1 MiB. */
const SETTINGS = { WEBSOCKET_MAX_BYTES: String(64 * KIB), WEBSOCKET_MAX_TOTAL_BYTES: String(1024 * KIB) };
const OWN = /^MemoryLimitReached: A connection can use about \d+ bytes/;
const SHARED = /^MemoryLimitReached: The server is short of memory/;

const clients: RawClient[] = [];

const fixture = useFixture(() => openRealtimeFixture(undefined, SETTINGS));
afterEach(async () => {
  await Promise.all(clients.splice(0).map((client) => client.close()));
  await until(() => fixture.service.realtime.statistics().sockets === 0);
});

async function open(): Promise<RawClient> {
  const client = new RawClient(fixture.service.url);
  clients.push(client);
  return client.opened();
}

/** Joins with bindings of tables that do not exist, in a request of that size. */
function joinWith(client: RawClient, topic: string, kibibytes: number) {
  const table = "x".repeat((kibibytes * KIB) / 2);
  return client.join(topic, { postgres_changes: [{ event: "*", schema: "public", table }] });
}

function track(client: RawClient, topic: string, payload: object): string {
  return client.say(topic, "presence", { type: "presence", event: "track", payload });
}

/** Writes bytes directly, without the WebSocket's framing. */
function wireOf({ socket }: RawClient): Socket {
  return (socket as unknown as { _socket: Socket })._socket;
}

/** The start of a masked text frame of so many bytes. */
function frameHead(bytes: number): Buffer {
  const head = Buffer.alloc(14);
  head[0] = 0x81;
  head[1] = 0xff;
  head.writeUInt32BE(bytes, 6);
  return head;
}

describe("the memory of a socket", () => {
  test("is limited for its joins, and leaving a channel frees it", async () => {
    const client = await open();
    expect((await joinWith(client, "realtime:a", 30)).payload.status).toBe("ok");
    expect((await joinWith(client, "realtime:b", 40)).payload.response.reason).toMatch(OWN);
    // Joining the same channel again replaces it.
    expect((await joinWith(client, "realtime:a", 40)).payload.status).toBe("ok");
    await client.reply(client.say("realtime:a", "phx_leave", {}));
    expect((await joinWith(client, "realtime:b", 40)).payload.status).toBe("ok");
  });

  test("is limited for filters by their parsed size", async () => {
    const client = await open();
    const asking = (values: number) => ({
      postgres_changes: [{ event: "*", schema: "public", table: "news", filter: `id=in.(${Array(values).fill(1)})` }],
    });
    expect((await client.join("realtime:a", asking(10))).payload.status).toBe("ok");
    const several = { postgres_changes: [1, 2, 3].flatMap(() => asking(100).postgres_changes) };
    expect((await client.join("realtime:b", several)).payload.response.reason).toMatch(OWN);
  });

  test("is limited for tokens, and a channel that sends a longer one is closed", async () => {
    const client = await open();
    await client.join("realtime:a", {}, { access_token: token({ role: "anon", size: "small" }) });
    const long = token({ role: "anon", size: "x".repeat(12 * KIB) });
    client.say("realtime:a", "access_token", { access_token: long });
    const result = await client.until(({ event, payload }) => event === "system" && payload.status === "error");
    expect(`MemoryLimitReached: ${result.payload.message}`).toMatch(OWN);
    expect((await client.join("realtime:a", {}, { access_token: long })).payload.response.reason).toMatch(OWN);
  });

  test("is freed when a join is rejected for another reason, and when the socket is closed", async () => {
    for (let nth = 0; nth < 5; nth++) {
      const client = await open();
      for (let time = 0; time < 3; time++) {
        const { payload } = await client.join("realtime:a", { private: true, resume: "x".repeat(20 * KIB) });
        expect(payload.response.reason).toMatch(/^Unauthorized: /);
      }
      expect((await joinWith(client, "realtime:a", 60)).payload.status).toBe("ok");
      await client.close();
    }
  });

  test("is limited for presences, and a rejected one leaves the others unchanged", async () => {
    const client = await open();
    await client.join("realtime:a", { presence: { enabled: true, key: "me" } });
    expect((await client.reply(track(client, "realtime:a", { text: "x".repeat(3 * KIB) }))).payload.status).toBe("ok");
    const refused = await client.reply(track(client, "realtime:a", { text: "x".repeat(5 * KIB) }));
    expect(refused.payload.response.reason).toMatch(OWN);
    const other = await open();
    await other.join("realtime:a", { presence: { enabled: true } });
    const state = await other.until(({ event }) => event === "presence_state");
    expect(state.payload.me.metas[0].text).toHaveLength(3 * KIB);
    await client.reply(client.say("realtime:a", "presence", { type: "presence", event: "untrack" }));
    expect((await client.reply(track(client, "realtime:a", { text: "x".repeat(3 * KIB) }))).payload.status).toBe("ok");
  });

  test("a presence key has at most a thousand characters", async () => {
    const client = await open();
    const joined = (length: number) => client.join("realtime:a", { presence: { key: "k".repeat(length) } });
    expect((await joined(1_000)).payload.status).toBe("ok");
    expect((await joined(1_001)).payload.response.reason).toBe(
      "InvalidPresenceKey: A presence key has at most 1000 characters",
    );
  });
});

describe("the memory of all sockets", () => {
  test("is limited, and a client that uses little is not rejected", async () => {
    const keepers = await Promise.all(Array.from({ length: 20 }, open));
    const replies = await Promise.all(keepers.map((keeper) => joinWith(keeper, "realtime:a", 56)));
    const reasons = replies.flatMap(({ payload }) => payload.response.reason ?? []);
    expect(reasons.length).toBeGreaterThan(0);
    expect(reasons.length).toBeLessThan(5);
    for (const reason of reasons) expect(reason).toMatch(SHARED);
    const modest = await open();
    expect((await joinWith(modest, "realtime:a", 10)).payload.status).toBe("ok");
    expect((await joinWith(modest, "realtime:b", 40)).payload.response.reason).toMatch(SHARED);
    await keepers[0]!.close();
    await until(async () => (await joinWith(modest, "realtime:b", 40)).payload.status === "ok");
  });

  test("has a limit for incomplete messages, whose sockets are closed, and messages of others arrive", async () => {
    const anonymousClients = await Promise.all(Array.from({ length: 20 }, open));
    const endings = anonymousClients.map(({ socket }) => once(socket, "close").then(([code]) => code as number));
    for (const anonymous of anonymousClients) {
      const wire = wireOf(anonymous);
      wire.on("error", () => {});
      wire.write(frameHead(1024 * KIB));
      wire.write(Buffer.alloc(60 * KIB));
    }
    // Half a mebibyte may be incomplete.
    expect([1006, 1013]).toContain(await Promise.race(endings));
    const honest = await open();
    expect((await joinWith(honest, "realtime:a", 10)).payload.status).toBe("ok");
    for (const { socket } of anonymousClients) socket.terminate();
  });

  test("does not count pings and pongs between complete messages", async () => {
    const client = await open();
    for (let nth = 0; nth < 3_000; nth++) {
      client.socket.ping("x".repeat(100));
      await once(client.socket, "pong");
    }
    expect((await joinWith(client, "realtime:a", 10)).payload.status).toBe("ok");
  });
});

/** A client that reads nothing until `resume`. */
function stalledSocket() {
  const waiting: (() => void)[] = [];
  const socket = new Duplex({
    highWaterMark: 0,
    read() {},
    write: (_chunk, _encoding, done) => void waiting.push(done),
    writev: (_chunks, done) => void waiting.push(done),
  });
  const takeOn = () => {
    for (const done of waiting.splice(0)) done();
  };
  return { socket, takeOn };
}

describe("unread frames", () => {
  test("count until they are read, and close the socket when there are too many", async () => {
    const { socket, takeOn } = stalledSocket();
    const { outbox, unsent, ended } = outboxTo(socket, { most: 1_000 });
    const sendOne = (bytes: number) => {
      outbox.send(Buffer.alloc(bytes));
      outbox.flush();
    };
    sendOne(400);
    sendOne(500);
    expect([unsent.held, ended.shortages]).toEqual([900, 0]);
    takeOn();
    await until(() => socket.writableLength === 500);
    sendOne(200);
    expect([unsent.held, ended.shortages]).toEqual([700, 0]);
    sendOne(400);
    expect(ended).toEqual({ overflows: 0, shortages: 1 });
    socket.destroy();
    await once(socket, "close");
    expect(unsent.held).toBe(0);
  });

  test("no longer count when all were read", async () => {
    const { socket, takeOn } = stalledSocket();
    const { outbox, unsent } = outboxTo(socket);
    for (let nth = 0; nth < 3; nth++) outbox.send(Buffer.alloc(100));
    outbox.flush();
    expect(unsent.held).toBe(300);
    takeOn();
    await until(() => unsent.held === 0);
  });
});
