import { once } from "node:events";
import { afterEach, expect, test } from "vitest";
import { useFixture } from "../../fixture.ts";
import { RawClient } from "../raw-client.ts";
import { openRealtimeFixture, token } from "../service.ts";

const SETTINGS = {
  REALTIME_MAX_BINDINGS: "2",
  REALTIME_MAX_JOINS_PER_SECOND: "2",
  REALTIME_MAX_MESSAGES_PER_SECOND: "20",
  REALTIME_MAX_BYTES_PER_SECOND: "100000",
  REALTIME_MAX_PRESENCES_PER_SECOND: "1",
};
/** This is beyond the limit, however slow the machine is. */
const MANY = 100;
const NEWS = { event: "*", schema: "public", table: "news" };

const clients: RawClient[] = [];

const fixture = useFixture(() => openRealtimeFixture(undefined, SETTINGS));
afterEach(() => Promise.all(clients.splice(0).map((client) => client.close())));

async function open(): Promise<RawClient> {
  const client = new RawClient(fixture.service.url);
  clients.push(client);
  return client.opened();
}

/** Returns why the channel was closed. */
async function ending(client: RawClient): Promise<string> {
  const system = await client.until(({ event, payload }) => event === "system" && payload.status === "error");
  await client.until(({ event }) => event === "phx_close");
  return system.payload.message;
}

test("a channel has at most the permitted number of bindings", async () => {
  const client = await open();
  expect((await client.join("realtime:x", { postgres_changes: [NEWS, NEWS] })).payload.status).toBe("ok");
  const { payload } = await client.join("realtime:x", { postgres_changes: [NEWS, NEWS, NEWS] });
  expect(payload.response.reason).toMatch(/^InvalidJoinPayload: .* 2 /);
});

test("a client that joins too often is rejected, and one that sends too many tokens loses the channel", async () => {
  const client = await open();
  const refs = Array.from({ length: MANY }, () => client.say("realtime:x", "phx_join", {}));
  const replies = await Promise.all(refs.map((ref) => client.reply(ref)));
  expect(replies.slice(0, 10).map(({ payload }) => payload.status)).toEqual(Array(10).fill("ok"));
  const reasons = replies.flatMap(({ payload }) => payload.response.reason ?? []);
  expect([...new Set(reasons)]).toEqual(["ClientJoinRateLimitReached: Too many joins per second"]);

  const other = await open();
  await other.join("realtime:x");
  for (let shown = 0; shown < MANY; shown++)
    other.say("realtime:x", "access_token", { access_token: token({ role: "anon", shown }) });
  expect(await ending(other)).toBe("Too many joins per second");
});

test("a client that sends too many messages loses the channel, and others do not", async () => {
  const before = fixture.service.realtime.statistics();
  const [floods, hears] = [await open(), await open()];
  for (const client of [floods, hears]) await client.join("realtime:x");
  for (let said = 0; said < 10 * MANY; said++)
    floods.say("realtime:x", "broadcast", { type: "broadcast", event: "hi", payload: { said } });
  expect(await ending(floods)).toBe("Too many messages per second");
  // One of the first hundred was the join.
  await hears.binary.count(99);
  expect((await hears.reply(hears.say("phoenix", "heartbeat", {}))).payload.status).toBe("ok");
  const { limited, messagesIn } = fixture.service.realtime.statistics();
  expect(limited).toBeGreaterThan(before.limited);
  expect(messagesIn - before.messagesIn).toBeGreaterThanOrEqual(101);
});

test("a client that tracks too often loses the channel, and with it the presence", async () => {
  const [tracks, sees] = [await open(), await open()];
  for (const client of [tracks, sees]) await client.join("realtime:x", { presence: { enabled: true, key: "alice" } });
  for (let tracked = 0; tracked < MANY; tracked++)
    tracks.say("realtime:x", "presence", { type: "presence", event: "track", payload: { tracked } });
  expect(await ending(tracks)).toBe("Client presence rate limit exceeded");
  const left = await sees.until(
    ({ event, payload }) => event === "presence_diff" && !payload.joins.alice && payload.leaves.alice,
  );
  expect(left.payload.leaves.alice.metas[0].tracked).toBeGreaterThanOrEqual(4);
});

test("bytes above the limit are read later, and none is lost", async () => {
  const [says, hears] = [await open(), await open()];
  for (const client of [says, hears]) await client.join("realtime:x");
  const startedAt = performance.now();
  // Nine seconds' amount, of which five are a permitted burst.
  for (let said = 0; said < 9; said++)
    says.say("realtime:x", "broadcast", {
      type: "broadcast",
      event: "hi",
      payload: { said, text: "x".repeat(100_000) },
    });
  const result = await hears.binary.count(9);
  expect(result.map((frame) => /"said":(\d)/.exec(frame.toString())![1])).toEqual([..."012345678"]);
  expect(performance.now() - startedAt).toBeGreaterThan(1_500);
});

test.each(["phx_join", "access_token", "presence"])("%s messages of more than 256 kB are rejected", async (event) => {
  const client = await open();
  if (event !== "phx_join") await client.join("realtime:x");
  const payload = {
    config: {},
    access_token: "",
    type: "presence",
    event: "track",
    payload: { x: "x".repeat(300_000) },
  };
  const reply = await client.reply(client.say("realtime:x", event, payload));
  expect(reply.payload).toMatchObject({
    status: "error",
    response: { reason: expect.stringMatching(/^PayloadTooLarge: /) },
  });
});

test("a presence that is too deep to be sent is rejected, and does not affect other members", async () => {
  const [tracks, comes] = [await open(), await open()];
  await tracks.join("realtime:x");
  const deep = `${"[".repeat(100_000)}${"]".repeat(100_000)}`;
  tracks.socket.send(
    `["1","9","realtime:x","presence",{"type":"presence","event":"track","payload":{"deep":${deep}}}]`,
  );
  expect((await tracks.reply("9")).payload).toMatchObject({
    status: "error",
    response: { reason: expect.stringMatching(/^PayloadTooDeep: /) },
  });
  expect((await comes.join("realtime:x", { presence: { enabled: true } })).payload.status).toBe("ok");
  expect((await comes.until(({ event }) => event === "presence_state")).payload).toEqual({});
});

test("a text broadcast that is too deep is rejected, and the socket stays open", async () => {
  const client = await open();
  await client.join("realtime:x");
  const deep = `${"[".repeat(100_000)}${"]".repeat(100_000)}`;
  client.socket.send(`["1","9","realtime:x","broadcast",{"type":"broadcast","event":"hi","payload":{"deep":${deep}}}]`);
  expect((await client.reply("9")).payload.response.reason).toMatch(/^PayloadTooDeep: /);
  expect((await client.reply(client.say("phoenix", "heartbeat", {}))).payload.status).toBe("ok");
});

test("a topic has at most a thousand characters", async () => {
  const client = await open();
  expect((await client.join(`realtime:${"x".repeat(1_000)}`)).payload.status).toBe("ok");
  const { payload } = await client.join(`realtime:${"x".repeat(1_001)}`);
  expect(payload.response.reason).toMatch(/^InvalidTopicName: /);
});

test("a frame of more than 5 MB closes the socket", async () => {
  const client = await open();
  const closed = once(client.socket, "close");
  client.socket.send(Buffer.alloc(5 * 2 ** 20 + 1));
  expect((await closed)[0]).toBe(1009);
  clients.splice(0);
});
