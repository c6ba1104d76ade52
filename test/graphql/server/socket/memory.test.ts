import type { Socket } from "node:net";
import { afterEach, describe, expect, test } from "vitest";
import { useFixture } from "../../../fixture.ts";
import { serveGraphQL } from "../../../graphql.ts";
import { until } from "../../../until.ts";
import { Wire } from "./wire.ts";

const KIB = 1024;
/** One socket may keep 128 KiB and documents of 256 KiB; all together 1 MiB, and documents of half of that. */
const SETTINGS = { WEBSOCKET_MAX_BYTES: String(128 * KIB), WEBSOCKET_MAX_TOTAL_BYTES: String(1024 * KIB) };
const CREATED = "subscription { onArticleCreated { id } }";

const wires: Wire[] = [];
const graphql = useFixture(() => serveGraphQL({ settings: SETTINGS }));
afterEach(async () => {
  for (const wire of wires.splice(0)) wire.socket.terminate();
  await until(() => graphql.service.graphql.state().sockets === 0);
});

const DIALECTS = { "graphql-transport-ws": "subscribe", "graphql-ws": "start" } as const;
type Protocol = keyof typeof DIALECTS;

async function connect(protocol: Protocol = "graphql-transport-ws"): Promise<Wire> {
  const wire = await Wire.open(graphql.socketUrl, protocol);
  wires.push(wire);
  wire.say({ type: "connection_init" });
  expect(await wire.hear()).toEqual({ type: "connection_ack" });
  if (protocol === "graphql-ws") expect(await wire.hear()).toEqual({ type: "ka" });
  return wire;
}

const operations = () => graphql.service.graphql.state().operations;
const variables = (kibibytes: number) => ({ unused: "x".repeat((kibibytes * KIB) / 2) });
/** A subscription of its own, with so many fields. */
const documentOf = (name: string, fields: number) =>
  `subscription { onArticleCreated { ${Array.from({ length: fields }, (_, nth) => `${name}${nth}: title`).join(" ")} } }`;

/** Returns the message and the code of a refusal, in either protocol. */
async function refusal(wire: Wire): Promise<{ message: string; code: string }> {
  const { type, payload } = await wire.hear();
  expect(type).toBe("error");
  const [{ message, extensions }] = [payload].flat();
  return { message, code: extensions.code };
}

describe.each(["graphql-transport-ws", "graphql-ws"] as const)("a socket with %s keeps", (protocol) => {
  const type = DIALECTS[protocol];

  test("a limited amount of its operations, and has room again when they end", async () => {
    const wire = await connect(protocol);
    wire.say({ type, id: "a", payload: { query: CREATED, variables: variables(80) } });
    await until(() => operations() === 1);
    wire.say({ type, id: "b", payload: { query: CREATED, variables: variables(80) } });
    const { message, code } = await refusal(wire);
    expect([code, message]).toEqual(["RATE_LIMITED", expect.stringContaining("can take about 131072 bytes")]);
    wire.say({ type: protocol === "graphql-ws" ? "stop" : "complete", id: "a" });
    await until(() => operations() === 0);
    wire.say({ type, id: "b", payload: { query: CREATED, variables: variables(80) } });
    await until(() => operations() === 1);
    expect(wire.unheard).toEqual([]);
  });

  test("a limited amount of their documents, of which one that runs twice counts once", async () => {
    const wire = await connect(protocol);
    const query = documentOf("a", 10);
    for (const id of ["a", "b", "c", "d", "e", "f"]) wire.say({ type, id, payload: { query } });
    await until(() => operations() === 6);
    for (const name of ["g", "h", "i"]) wire.say({ type, id: name, payload: { query: documentOf(name, 20) } });
    const { message, code } = await refusal(wire);
    expect([code, message]).toEqual(["RATE_LIMITED", expect.stringContaining("can take about 262144 bytes")]);
  });

  test("nothing of operations that are ended and whose ids are used again at once", async () => {
    const wire = await connect(protocol);
    const end = { type: protocol === "graphql-ws" ? "stop" : "complete", id: "a" };
    for (let nth = 0; nth < 10; nth++) {
      wire.say({ type, id: "a", payload: { query: CREATED, variables: variables(12) } });
      wire.say(end);
    }
    wire.say({ type, id: "b", payload: { query: "{ __typename }" } });
    while ((await wire.hear()).id !== "b");
    const other = await connect(protocol);
    wire.socket.terminate();
    await until(() => graphql.service.graphql.state().sockets === 1);
    const greedy = await Promise.all(Array.from({ length: 7 }, () => connect(protocol)));
    for (const each of [other, ...greedy])
      each.say({ type, id: "a", payload: { query: CREATED, variables: variables(110) } });
    await until(() => operations() === 8);
    expect([other, ...greedy].flatMap(({ unheard }) => unheard)).toEqual([]);
  });

  test("also short parameters", async () => {
    const wire = await Wire.open(graphql.socketUrl, protocol);
    wires.push(wire);
    wire.say({ type: "connection_init", payload: { long: "x".repeat(64 * KIB) } });
    expect((await wire.closed()).code).toBe(4400);
    const other = await Wire.open(graphql.socketUrl, protocol);
    wires.push(other);
    other.say({ type: "connection_init", payload: { many: Array(10_000).fill({}) } });
    expect((await other.closed()).code).toBe(4400);
  });
});

describe("the memory of all sockets", () => {
  test("is bounded, and small requests are never refused", async () => {
    const greedy = await Promise.all(Array.from({ length: 10 }, () => connect()));
    for (const wire of greedy)
      wire.say({ type: "subscribe", id: "a", payload: { query: CREATED, variables: variables(110) } });
    const refused = await Promise.any(greedy.map(refusal));
    expect(refused.code).toBe("SERVICE_UNAVAILABLE");
    const modest = await connect();
    modest.say({ type: "subscribe", id: "a", payload: { query: "{ __typename }", variables: variables(10) } });
    expect(await modest.hear()).toMatchObject({ type: "next" });
  });

  test("counts unfinished messages, whose sockets are closed", async () => {
    const anonymousClients = await Promise.all(Array.from({ length: 20 }, () => connect()));
    const head = Buffer.alloc(14);
    head[0] = 0x81;
    head[1] = 0xff;
    head.writeUInt32BE(1024 * KIB, 6);
    for (const { socket } of anonymousClients) {
      const { _socket: wire } = socket as unknown as { _socket: Socket };
      wire.on("error", () => {});
      wire.write(head);
      wire.write(Buffer.alloc(60 * KIB));
    }
    expect([1006, 1013]).toContain((await Promise.race(anonymousClients.map((wire) => wire.closed()))).code);
    await connect();
  });

  test("counts unread responses, whose sockets are closed", async () => {
    await graphql.sql("insert into public.users (name, email) values ('Ann', 'ann@example.org')");
    await graphql.sql(
      "insert into public.articles (author_id, title, content, status) select 1, 'A long one', repeat('x', 50000), 'PUBLISHED' from generate_series(1, 10)",
    );
    const wire = await connect();
    wire.socket.pause();
    // A client that does not read answers no ping, and would be disconnected for that.
    const pongs = setInterval(() => wire.socket.pong(), 1_000);
    const query = "{ articles(first: 10) { edges { node { content } } } }";
    for (let nth = 0; nth < 60; nth++) wire.say({ type: "subscribe", id: String(nth), payload: { query } });
    await until(() => graphql.service.graphql.state().sockets === 0);
    clearInterval(pongs);
    const reads = await connect();
    reads.say({ type: "subscribe", id: "a", payload: { query: "{ __typename }" } });
    expect(await reads.hear()).toMatchObject({ type: "next" });
  });
});
