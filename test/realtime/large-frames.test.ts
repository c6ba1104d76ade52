import { afterEach, describe, expect, test } from "vitest";
import { useFixture } from "../fixture.ts";
import { RawClient } from "./raw-client.ts";
import { openRealtimeFixture } from "./service.ts";

const LONG_KEY = "k".repeat(70 * 1024);
const LONG_TEXT = "t".repeat(200_000);

const clients: RawClient[] = [];

const fixture = useFixture(openRealtimeFixture);
afterEach(() => Promise.all(clients.splice(0).map((client) => client.close())));

async function open(version: "1.0.0" | "2.0.0" = "2.0.0"): Promise<RawClient> {
  const client = new RawClient(fixture.service.url, { version });
  clients.push(client);
  return client.opened();
}

describe.each(["1.0.0", "2.0.0"] as const)("in version %s", (version) => {
  test.each([
    ["a join", "phx_join", { config: { presence: { key: LONG_KEY } } }],
    ["a token", "access_token", { access_token: LONG_KEY }],
  ])("%s that is too long is rejected before it is parsed", async (_what, event, payload) => {
    const client = await open(version);
    const { payload: result } = await client.reply(client.say("realtime:x", event, payload));
    expect(result.response.reason).toBe(`PayloadTooLarge: A ${event} message may have at most 65536 bytes`);
    // Invalid JSON is rejected for its length only if it was not parsed.
    const text = JSON.stringify(
      version === "2.0.0"
        ? [null, "r", "realtime:x", event, {}]
        : { topic: "realtime:x", event, payload: {}, ref: "r" },
    );
    client.socket.send(text.replace("{}", `{"no JSON" "${LONG_KEY}"}`));
    expect((await client.reply("r")).payload.response.reason).toContain("PayloadTooLarge");
  });

  test("a long message with very many values is rejected, and one with few is sent on", async () => {
    const [says, hears] = [await open(version), await open(version)];
    for (const client of [says, hears]) await client.join("realtime:x", { broadcast: { ack: true } });
    const many = says.say("realtime:x", "broadcast", {
      type: "broadcast",
      event: "e",
      payload: { n: Array(100_001).fill(0) },
    });
    expect((await says.reply(many)).payload.response.reason).toContain("may have at most 100000 values");
    const few = says.say("realtime:x", "broadcast", { type: "broadcast", event: "e", payload: { text: LONG_TEXT } });
    expect((await says.reply(few)).payload.status).toBe("ok");
    if (version === "1.0.0") {
      const { payload } = await hears.until(({ event }) => event === "broadcast");
      expect(payload.payload.text).toBe(LONG_TEXT);
    } else {
      const [frame] = await hears.binary.count(1);
      expect(frame!.length).toBeGreaterThan(LONG_TEXT.length);
    }
  });

  test("messages arrive in the order in which they were sent, however long each is", async () => {
    const [says, hears] = [await open(version), await open("1.0.0")];
    for (const client of [says, hears]) await client.join("realtime:x");
    for (let n = 0; n < 20; n++) {
      const payload = { n, ...(n % 3 === 0 && { text: LONG_TEXT }) };
      says.say("realtime:x", "broadcast", { type: "broadcast", event: "e", payload });
    }
    const last = await hears.until(({ event, payload }) => event === "broadcast" && payload.payload.n === 19);
    expect(last).toBeDefined();
    const order = hears.items.filter(({ event }) => event === "broadcast").map(({ payload }) => payload.payload.n);
    expect(order).toEqual(Array.from({ length: 20 }, (_, n) => n));
  });
});

test.each([
  ["short", "t"],
  ["long", LONG_TEXT],
])(
  "a %s binary broadcast is passed on where its payload is JSON, and passed over where it is not",
  async (_length, text) => {
    const [says, hears] = [await open(), await open("1.0.0")];
    for (const client of [says, hears]) await client.join("realtime:x");
    const push = (payload: string) => {
      const [topic, event] = ["realtime:x", "e"];
      const head = Buffer.from([3, 0, 0, topic.length, event.length, 0, 1]);
      says.socket.send(Buffer.concat([head, Buffer.from(topic + event + payload)]));
    };
    push(`{"text":"${text}"`);
    push(`{"text":"${text}"}`);
    const { payload } = await hears.until(({ event }) => event === "broadcast");
    expect(payload.payload.text).toBe(text);
    expect(hears.items.filter(({ event }) => event === "broadcast")).toHaveLength(1);
  },
);
