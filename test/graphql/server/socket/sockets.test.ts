import { request } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { type GraphQLService, serveGraphQL, tokenFor } from "../../../graphql.ts";
import { Wire } from "./wire.ts";

const ADDED = "subscription ($article: ID!) { onCommentAdded(articleId: $article) { id content author { name } } }";
const CREATED = "subscription { onArticleCreated { id title } }";

let graphql: GraphQLService;
const wires: Wire[] = [];
beforeAll(async () => {
  graphql = await serveGraphQL();
  await graphql.sql("insert into public.users (name, email) values ('Ann', 'ann@example.org')");
  await graphql.sql("insert into public.articles (author_id, title, content) values (1, 'First one', '')");
});
afterEach(async () => {
  for (const wire of wires.splice(0)) wire.close();
  await expect.poll(() => counts()).toEqual({ sockets: 0, operations: 0, subscriptions: 0, topics: 0 });
});
afterAll(() => graphql.stop());

function counts() {
  const { sockets, operations, subscriptions, topics } = graphql.service.graphql.state();
  return { sockets, operations, subscriptions, topics };
}

/** The two protocols are one service under different words. */
const DIALECTS = {
  "graphql-transport-ws": { start: "subscribe", data: "next", stop: "complete" },
  "graphql-ws": { start: "start", data: "data", stop: "stop" },
} as const;

type Protocol = keyof typeof DIALECTS;

async function connect(protocol: Protocol, payload: object = {}, headers: Record<string, string> = {}): Promise<Wire> {
  const wire = await Wire.open(graphql.socketUrl, protocol, headers);
  wires.push(wire);
  wire.say({ type: "connection_init", payload });
  expect(await wire.hear()).toEqual({ type: "connection_ack" });
  if (protocol === "graphql-ws") expect(await wire.hear()).toEqual({ type: "ka" });
  return wire;
}

const comment = (content: string, article = 1) =>
  graphql.sql("insert into public.comments (article_id, author_id, content) values ($1, 1, $2)", [article, content]);

describe.each(["graphql-transport-ws", "graphql-ws"] as const)("a socket with %s", (protocol) => {
  const { start, data, stop } = DIALECTS[protocol];

  test("answers queries and mutations, and completes each", async () => {
    const wire = await connect(protocol);
    wire.say({
      type: start,
      id: "a",
      payload: { query: "query ($id: ID!) { user(id: $id) { name } }", variables: { id: 1 } },
    });
    expect(await wire.hear()).toEqual({ type: data, id: "a", payload: { data: { user: { name: "Ann" } } } });
    expect(await wire.hear()).toEqual({ type: "complete", id: "a" });
    const email = `${protocol}@example.org`;
    const query = `mutation { createUser(input: {name: "Bob", email: "${email}"}) { email } }`;
    wire.say({ type: start, id: "a", payload: { query } });
    expect(await wire.hear()).toEqual({ type: data, id: "a", payload: { data: { createUser: { email } } } });
    expect(await wire.hear()).toEqual({ type: "complete", id: "a" });
  });

  test("sends events from the start of a subscription to its end", async () => {
    const wire = await connect(protocol);
    wire.say({ type: start, id: "s", payload: { query: ADDED, variables: { article: 1 } } });
    await expect.poll(() => counts()).toMatchObject({ operations: 1, subscriptions: 1, topics: 1 });
    await comment("one");
    expect(await wire.hear()).toMatchObject({
      type: data,
      id: "s",
      payload: { data: { onCommentAdded: { content: "one", author: { name: "Ann" } } } },
    });
    wire.say({ type: stop, id: "s" });
    await expect.poll(() => counts()).toMatchObject({ operations: 0, subscriptions: 0, topics: 0 });
    await comment("two");
    wire.say({ type: start, id: "q", payload: { query: "{ __typename }" } });
    expect(await wire.hear()).toMatchObject({ id: "q" });
  });

  test("separates several subscriptions", async () => {
    const wire = await connect(protocol);
    wire.say({ type: start, id: "c1", payload: { query: ADDED, variables: { article: 1 } } });
    wire.say({ type: start, id: "c2", payload: { query: ADDED, variables: { article: 2 } } });
    wire.say({ type: start, id: "n", payload: { query: CREATED } });
    await expect.poll(() => counts()).toMatchObject({ subscriptions: 3, topics: 3 });
    await graphql.sql("insert into public.articles (author_id, title, content) values (1, 'Second one', '')");
    expect(await wire.hear()).toMatchObject({
      id: "n",
      payload: { data: { onArticleCreated: { title: "Second one" } } },
    });
    await comment("here");
    expect(await wire.hear()).toMatchObject({ id: "c1" });
    expect(wire.unheard).toEqual([]);
  });

  test("ends subscriptions to a column that was dropped, and keeps the others", async () => {
    await graphql.sql(`
      create table public.renamed (id int primary key, word text);
      create trigger event after insert on public.renamed for each row execute function content_service.tg__event();
      comment on table public.renamed is '@subscription onRenamed on:insert';
      grant select on public.renamed to anon`);
    const isServed = async () => (await graphql.ask("{ renameds { totalCount } }")).data;
    await expect.poll(isServed, { timeout: 30_000 }).toBeTruthy();
    const wire = await connect(protocol);
    wire.say({ type: start, id: "word", payload: { query: "subscription { onRenamed { id word } }" } });
    wire.say({ type: start, id: "id", payload: { query: "subscription { onRenamed { id } }" } });
    await expect.poll(() => counts()).toMatchObject({ subscriptions: 2 });

    await graphql.sql("alter table public.renamed rename word to name; insert into public.renamed values (1)");
    const heard = [await wire.hear(), await wire.hear(), await wire.hear()];
    const of = (wanted: string) => heard.filter(({ id }) => id === wanted);
    expect(of("id")).toMatchObject([{ type: data, payload: { data: { onRenamed: { id: "1" } } } }]);
    expect(of("word")).toMatchObject([
      { type: data, payload: { errors: [{ extensions: { code: "SERVICE_UNAVAILABLE" } }] } },
      { type: "complete" },
    ]);
    await graphql.sql("drop table public.renamed");
  });

  test("continues if the value of one row names an unknown object", async () => {
    await graphql.sql(`
      create table public.named (id int primary key, word text);
      create trigger event after insert on public.named for each row execute function content_service.tg__event();
      create function public.named_relation(named public.named) returns text stable language sql as 'select named.word::regclass::text';
      comment on table public.named is '@subscription onNamed on:insert';
      grant execute on function public.named_relation to anon;
      grant select on public.named to anon`);
    const isServed = async () => (await graphql.ask("{ nameds { edges { node { relation } } } }")).data;
    await expect.poll(isServed, { timeout: 30_000 }).toBeTruthy();
    const wire = await connect(protocol);
    wire.say({ type: start, id: "n", payload: { query: "subscription { onNamed { id relation } }" } });
    await expect.poll(() => counts()).toMatchObject({ subscriptions: 1 });

    await graphql.sql("insert into public.named values (1, 'no_such_table'), (2, 'pg_class')");
    const heard = [await wire.hear(), await wire.hear()];
    expect(heard).toMatchObject([
      { type: data, payload: { data: { onNamed: null }, errors: [{ extensions: { code: "INTERNAL_ERROR" } }] } },
      { type: data, payload: { data: { onNamed: { id: "2", relation: "pg_class" } } } },
    ]);
    await graphql.sql("drop table public.named cascade");
  });

  test("refuses an operation that does not match the schema, and stays open", async () => {
    const wire = await connect(protocol);
    wire.say({ type: start, id: "bad", payload: { query: "{ nothing }" } });
    const refused = await wire.hear();
    expect(refused).toMatchObject({ type: "error", id: "bad" });
    expect([refused.payload].flat()[0]).toMatchObject({ extensions: { code: "GRAPHQL_VALIDATION_FAILED" } });
    wire.say({ type: start, id: "bad", payload: { query: "{ __typename }" } });
    expect(await wire.hear()).toMatchObject({ type: data, id: "bad" });
  });

  test("sends the code of a field's error", async () => {
    const wire = await connect(protocol);
    wire.say({ type: start, id: "m", payload: { query: "{ me { id } }" } });
    expect(await wire.hear()).toMatchObject({
      type: data,
      payload: { data: null, errors: [{ path: ["me"], extensions: { code: "AUTH_REQUIRED" } }] },
    });
  });

  test.each([
    ["the first message", (token: string) => [{ Authorization: `Bearer ${token}` }, {}]],
    ["the first message, in small letters", (token: string) => [{ authorization: `bearer ${token}` }, {}]],
    ["the first message's headers", (token: string) => [{ headers: { Authorization: `Bearer ${token}` } }, {}]],
    ["the first message, as an API key", (token: string) => [{ "X-API-Key": token }, {}]],
    ["the request for the socket", (token: string) => [{}, { Authorization: `Bearer ${token}` }]],
  ])("accepts the token from %s", async (_, where) => {
    const [payload, headers] = where(tokenFor(1)) as [object, Record<string, string>];
    const wire = await connect(protocol, payload, headers);
    wire.say({ type: start, id: "m", payload: { query: "{ me { name } }" } });
    expect(await wire.hear()).toMatchObject({ payload: { data: { me: { name: "Ann" } } } });
  });

  test("is anonymous with an invalid token, and reports an expired one", async () => {
    for (const [token, code] of [
      ["nonsense", "AUTH_REQUIRED"],
      [tokenFor(1, { exp: 1 }), "AUTH_EXPIRED"],
    ]) {
      const wire = await connect(protocol, { Authorization: `Bearer ${token}` });
      wire.say({ type: start, id: "m", payload: { query: "{ me { name } }" } });
      expect(await wire.hear()).toMatchObject({ payload: { errors: [{ extensions: { code } }] } });
    }
  });

  test("is anonymous if its first message has no token, at any depth of nesting", async () => {
    const wire = await Wire.open(graphql.socketUrl, protocol);
    wires.push(wire);
    wire.say(`{"type":"connection_init","payload":${'{"headers":'.repeat(5_000)}1${"}".repeat(5_000)}}`);
    expect(await wire.hear()).toEqual({ type: "connection_ack" });
  });

  test("is closed when its token expires, and all its operations end", async () => {
    // Clocks may differ by 30 seconds.
    const exp = Math.floor(Date.now() / 1000) - 29;
    const wire = await connect(protocol, { Authorization: `Bearer ${tokenFor(1, { exp })}` });
    wire.say({ type: start, id: "s", payload: { query: CREATED } });
    await expect.poll(() => counts()).toMatchObject({ subscriptions: 1 });
    expect(await wire.closed()).toEqual({ code: 4403, reason: "Token expired" });
    await expect.poll(() => counts()).toMatchObject({ sockets: 0, subscriptions: 0 });
  });

  test("that disconnects frees all its resources", async () => {
    const wire = await connect(protocol);
    for (const id of ["a", "b", "c"]) wire.say({ type: start, id, payload: { query: CREATED } });
    await expect.poll(() => counts()).toEqual({ sockets: 1, operations: 3, subscriptions: 3, topics: 1 });
    wire.socket.terminate();
    await expect.poll(() => counts()).toEqual({ sockets: 0, operations: 0, subscriptions: 0, topics: 0 });
  });

  test("has a limited number of operations", async () => {
    const wire = await connect(protocol);
    for (let index = 0; index < 101; index++) wire.say({ type: start, id: `s${index}`, payload: { query: CREATED } });
    const refused = await wire.hear();
    expect(refused).toMatchObject({ type: "error", id: "s100" });
    expect([refused.payload].flat()[0]).toMatchObject({ extensions: { code: "RATE_LIMITED" } });
    await expect.poll(() => counts()).toMatchObject({ operations: 100, subscriptions: 100 });
    wire.say({ type: stop, id: "s7" });
    await expect.poll(() => counts()).toMatchObject({ operations: 99 });
    wire.say({ type: start, id: "again", payload: { query: "{ __typename }" } });
    expect(await wire.hear()).toMatchObject({ type: data, id: "again" });
  });

  test("must begin with one connection_init message, and valid message types", async () => {
    const early = await Wire.open(graphql.socketUrl, protocol);
    early.say({ type: start, id: "a", payload: { query: "{ __typename }" } });
    expect(await early.closed()).toMatchObject({ code: 4401 });

    const twice = await connect(protocol);
    twice.say({ type: "connection_init" });
    expect(await twice.closed()).toMatchObject({ code: 4429 });
    const atOnce = await Wire.open(graphql.socketUrl, protocol);
    for (let index = 0; index < 2; index++) atOnce.say({ type: "connection_init" });
    expect(await atOnce.closed()).toMatchObject({ code: 4429 });

    for (const message of ["{", "[]", "null", '{"type":"sing"}', '{"id":"1"}']) {
      const odd = await connect(protocol);
      odd.say(message);
      expect(await odd.closed()).toMatchObject({ code: 4400 });
    }
  });

  test("that sends too much at once is closed", async () => {
    const wire = await connect(protocol);
    wire.say({ type: start, id: "a", payload: { query: `{ __typename } #${"x".repeat(1024 * 1024)}` } });
    expect(await wire.closed()).toMatchObject({ code: 1009 });
  });
});

describe("graphql-transport-ws", () => {
  test("answers a ping", async () => {
    const wire = await connect("graphql-transport-ws");
    wire.say({ type: "ping", payload: { n: 1 } });
    expect(await wire.hear()).toEqual({ type: "pong", payload: { n: 1 } });
  });

  test("closes a socket that uses an id twice", async () => {
    const wire = await connect("graphql-transport-ws");
    for (let index = 0; index < 2; index++) wire.say({ type: "subscribe", id: "s", payload: { query: CREATED } });
    expect(await wire.closed()).toMatchObject({ code: 4409 });
  });
});

describe("graphql-ws, the older protocol", () => {
  test("replaces an operation with the same id", async () => {
    const wire = await connect("graphql-ws");
    wire.say({ type: "start", id: "s", payload: { query: CREATED } });
    await expect.poll(() => counts()).toMatchObject({ subscriptions: 1 });
    wire.say({ type: "start", id: "s", payload: { query: ADDED, variables: { article: 1 } } });
    await sleep(50);
    await expect.poll(() => counts()).toMatchObject({ subscriptions: 1, operations: 1 });
    await comment("anew");
    expect(await wire.hear()).toMatchObject({ id: "s", payload: { data: { onCommentAdded: { content: "anew" } } } });
  });

  test("accepts fields beside the payload of connection_init, as its own client sends", async () => {
    const wire = await Wire.open(graphql.socketUrl, "graphql-ws");
    wires.push(wire);
    wire.say({ type: "connection_init", payload: { Authorization: `Bearer ${tokenFor(1)}` } });
    wire.say({ type: "start", id: "m", payload: { query: "{ me { name } }" } });
    wire.say({ type: "start", id: "s", payload: { query: CREATED } });
    wire.say({ type: "stop", id: "s" });
    expect(await wire.hear()).toEqual({ type: "connection_ack" });
    expect(await wire.hear()).toEqual({ type: "ka" });
    expect(await wire.hear()).toEqual({ type: "data", id: "m", payload: { data: { me: { name: "Ann" } } } });
    expect(await wire.hear()).toEqual({ type: "complete", id: "m" });
    expect(counts()).toMatchObject({ operations: 0, subscriptions: 0 });
  });

  test("closes on connection_terminate", async () => {
    const wire = await connect("graphql-ws");
    wire.say({ type: "connection_terminate" });
    expect(await wire.closed()).toMatchObject({ code: 1000 });
  });
});

describe("an upgrade request", () => {
  /** Resolves with the status of an upgrade request: 101 if it succeeds. */
  function ask(path: string, headers: Readonly<Record<string, string>>): Promise<number> {
    return new Promise((resolve, reject) => {
      const sent = request(`${graphql.service.url}${path}`, {
        headers: {
          Connection: "Upgrade",
          Upgrade: "websocket",
          "Sec-WebSocket-Version": "13",
          "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
          "Sec-WebSocket-Protocol": "graphql-transport-ws",
          ...headers,
        },
      });
      sent.on("response", (response) => resolve(response.resume().statusCode!));
      sent.on("upgrade", (_response, socket) => {
        socket.destroy();
        resolve(101);
      });
      sent.on("error", reject);
      sent.end();
    });
  }

  test("to another path is 404", async () => {
    expect(await ask("/graphql/x", {})).toBe(404);
    expect(await ask("/health", {})).toBe(404);
  });

  test("for another protocol than WebSocket is answered as an ordinary request", async () => {
    expect(await ask("/health", { Connection: "Upgrade, HTTP2-Settings", Upgrade: "h2c" })).toBe(200);
  });

  test("without a supported subprotocol is refused with the reason", async () => {
    const wire = await Wire.open(graphql.socketUrl, []);
    expect(await wire.closed()).toMatchObject({ code: 4406 });
  });

  test("from a page is refused unless CORS allows its origin", async () => {
    expect(await ask("/graphql", { Origin: "https://anywhere.example" })).toBe(101);
    const named = await serveGraphQL({
      database: graphql.database,
      settings: { CORS_ORIGINS: "https://app.example.org" },
    });
    const other = graphql;
    graphql = named;
    try {
      expect(await ask("/graphql", { Origin: "https://evil.example" })).toBe(403);
      expect(await ask("/graphql", { Origin: "null" })).toBe(403);
      expect(await ask("/graphql", { Origin: "https://app.example.org" })).toBe(101);
      expect(await ask("/graphql", { Origin: named.service.url })).toBe(101);
      expect(await ask("/graphql", {})).toBe(101);
    } finally {
      graphql = other;
      await named.stop();
    }
  });
});

describe("stopping", () => {
  test.each(["graphql-transport-ws", "graphql-ws"] as const)(
    "does not wait for operations that were cancelled before they began (%s)",
    async (protocol) => {
      const stopping = await serveGraphQL({ database: graphql.database });
      const wire = await Wire.open(stopping.socketUrl, protocol);
      wire.say({ type: "connection_init" });
      await wire.hear();
      const { start, stop } = DIALECTS[protocol];
      wire.say({ type: start, id: "q", payload: { query: "{ __typename }" } });
      wire.say({ type: stop, id: "q" });
      await sleep(100);
      const startedAt = performance.now();
      await stopping.stop();
      expect(await wire.closed()).toMatchObject({ code: 1001 });
      expect(performance.now() - startedAt).toBeLessThan(5_000);
    },
  );

  test("closes sockets with 1001, after their operations have finished", async () => {
    const stopping = await serveGraphQL({ database: graphql.database });
    await graphql.sql(`
      create or replace function public.slowly() returns text language plpgsql volatile as $$
      begin perform pg_sleep(0.7); return 'done'; end $$;
      grant execute on function public.slowly() to anon`);
    await expect
      .poll(async () => (await stopping.ask("mutation { slowly }")).data, { timeout: 5_000 })
      .toEqual({ slowly: "done" });

    const busy = await Wire.open(stopping.socketUrl, "graphql-transport-ws");
    const idle = await Wire.open(stopping.socketUrl, "graphql-transport-ws");
    for (const wire of [busy, idle]) {
      wire.say({ type: "connection_init" });
      await wire.hear();
      wire.say({ type: "subscribe", id: "s", payload: { query: CREATED } });
    }
    busy.say({ type: "subscribe", id: "m", payload: { query: "mutation { slowly }" } });
    await expect.poll(() => stopping.service.graphql.state().operations).toBe(3);
    const stopped = stopping.stop();
    expect(await idle.closed()).toEqual({ code: 1001, reason: "Going away" });
    expect(await busy.hear()).toEqual({ type: "next", id: "m", payload: { data: { slowly: "done" } } });
    expect(await busy.closed()).toEqual({ code: 1001, reason: "Going away" });
    await stopped;
  });
});
