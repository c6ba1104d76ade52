import { expect, test } from "vitest";
import { type GatewayMessage, GatewayRelay } from "../../realtime/relay.ts";
import { connectWorkers } from "../peer-workers.ts";
import { until } from "../until.ts";

const log = { warn: () => {}, error: () => {} };

/** Returns two gateways, connected by a stream whose delay the test controls. */
function connected() {
  const heard: [GatewayMessage, string | null][] = [];
  const sent: string[] = [];
  const flushes: (() => void)[] = [];
  const emit = async (_prefix: string, content: Uint8Array) => {
    sent.push(Buffer.from(content).toString());
    await new Promise<void>((resolve) => flushes.push(resolve));
  };
  const changes = {
    emit,
    state: () => ({ status: "streaming", reason: null, position: null, history: null }) as const,
  };
  const one = new GatewayRelay({ changes, receive: () => {}, log });
  const other = new GatewayRelay({ changes, receive: (said, from) => void heard.push([said, from]), log });
  const pass = () => {
    flushes.shift()!();
    other.receive({ prefix: "realtime", content: Buffer.from(sent.at(-1)!), transaction: null, lsn: 0n, index: 0 });
  };
  return { one, other, heard, sent, pass };
}

test("messages sent during a transmission go with the next one, in order", async () => {
  const { one, heard, sent, pass } = connected();
  const said = ["a", "b", "c"].map((kind) => one.send({ kind }));
  await Promise.resolve();
  said.push(one.send({ kind: "d" }));
  pass();
  await said[0];
  expect(sent).toHaveLength(2);
  pass();
  await Promise.all(said);
  expect(heard.map(([{ kind }, from]) => [kind, from === one.gateway])).toEqual(
    ["a", "b", "c", "d"].map((kind) => [kind, true]),
  );
});

test("the relay reports when more is queued than can be sent", async () => {
  const { one, pass } = connected();
  const first = one.send({ kind: "x" });
  await Promise.resolve();
  const later = Array.from({ length: 500 }, () => one.send({ kind: "x" }));
  expect(one.isCongested).toBe(true);
  pass();
  await first;
  expect(one.isCongested).toBe(false);
  pass();
  await Promise.all(later);
});

test("few messages are too many, too, when they are long", async () => {
  const { one, pass } = connected();
  const first = one.send({ kind: "x" });
  await Promise.resolve();
  const later = Array.from({ length: 9 }, () => one.send({ kind: "x".repeat(2 ** 20) }));
  expect(one.isCongested).toBe(true);
  pass();
  await first;
  pass();
  await Promise.all(later);
});

test("a gateway receives neither its own messages nor invalid ones", () => {
  const { one, other, heard } = connected();
  const hear = (prefix: string, text: string) =>
    other.receive({ prefix, content: Buffer.from(text), transaction: null, lsn: 0n, index: 0 });
  for (const text of ["", "x", "[]", "{}", '{"said":[1,{}]}']) hear("realtime", text);
  hear("realtime", JSON.stringify({ gateway: other.gateway, said: [{ kind: "own" }] }));
  hear("elsewhere", JSON.stringify({ gateway: one.gateway, said: [{ kind: "foreign" }] }));
  hear("realtime", JSON.stringify({ said: [{ kind: "from SQL" }] }));
  expect(heard).toEqual([[{ kind: "from SQL" }, null]]);
});

test("messages of one batch are handled one after another", async () => {
  const heard: string[] = [];
  const { promise, resolve } = Promise.withResolvers<void>();
  const hear = ({ kind }: GatewayMessage) => {
    heard.push(kind);
    return kind === "long" ? promise : undefined;
  };
  const changes = {
    emit: async () => {},
    state: () => ({ status: "streaming", reason: null, position: null, history: null }) as const,
  };
  const content = Buffer.from(JSON.stringify({ said: ["short", "long", "last"].map((kind) => ({ kind })) }));
  const done = new GatewayRelay({ changes, receive: hear, log }).receive({
    prefix: "realtime",
    content,
    transaction: null,
    lsn: 0n,
    index: 0,
  });
  expect(heard).toEqual(["short", "long"]);
  resolve();
  await done;
  expect(heard).toEqual(["short", "long", "last"]);
});

test("the workers of a service send messages to each other if the stream is refused", async () => {
  const workers = connectWorkers();
  const changes = {
    emit: () => Promise.reject(new Error("The stream is refused.")),
    state: () => ({ status: "refused", reason: "wal_level", position: null, history: null }) as const,
  };
  const heard: [unknown, string | null][] = [];
  const receive = ({ kind }: GatewayMessage, from: string | null) => void heard.push([kind, from]);
  const one = new GatewayRelay({ changes, receive: () => {}, peers: workers.join(), log });
  new GatewayRelay({ changes, receive, peers: workers.join(), log });
  await Promise.all(["a", "b"].map((kind) => one.send({ kind })));
  await until(() => heard.length === 2);
  expect(heard).toEqual([
    ["a", one.gateway],
    ["b", one.gateway],
  ]);
});
