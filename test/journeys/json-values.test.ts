import { once } from "node:events";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { WebSocket } from "ws";
import { parseJsonExactly } from "../../runtime/json/json-values.ts";
import { useFixture } from "../fixture.ts";
import { serveGraphQL } from "../graphql.ts";
import { propertyRuns } from "../property-runs.ts";
import { anonKey } from "../realtime/service.ts";
import { until } from "../until.ts";

const digits = fc.stringMatching(/^[0-9]{1,25}$/);
const numbers = fc
  .tuple(
    fc.constantFrom("", "-"),
    fc.oneof(fc.constant("0"), fc.bigInt({ min: 1n, max: 10n ** 30n }).map(String)),
    fc.option(
      digits.map((fraction) => `.${fraction}`),
      { nil: "" },
    ),
    fc.option(
      fc.tuple(fc.constantFrom("e", "E+", "e-"), fc.nat(400)).map((parts) => parts.join("")),
      { nil: "" },
    ),
  )
  .map((parts) => parts.join(""));
/** jsonb holds neither U+0000 nor half a pair of surrogates. */
const strings = fc
  .oneof(
    fc.string({ unit: "grapheme" }),
    fc.string({ unit: "binary" }),
    fc.constantFrom("__proto__", "1.0", "\u2028", '\\"', "1e5"),
  )
  .filter((text) => !text.includes("\u0000") && text.isWellFormed())
  .map((text) => JSON.stringify(text));
const spaces = fc.constantFrom("", " ", "\n\t");

/** Texts of JSON, with members of one name, blanks and numbers as people and programs write them. */
const { json: texts } = fc.letrec<{ json: string; list: string; object: string }>((tie) => ({
  json: fc.oneof(
    { maxDepth: 4 },
    numbers,
    strings,
    fc.constantFrom("true", "false", "null"),
    tie("list"),
    tie("object"),
  ),
  list: fc
    .tuple(fc.array(tie("json"), { maxLength: 4 }), spaces)
    .map(([items, space]) => `[${items.join(`,${space}`)}${space}]`),
  object: fc
    .tuple(fc.array(fc.tuple(fc.oneof(strings, fc.constant('"a"')), tie("json")), { maxLength: 4 }), spaces)
    .map(([members, space]) => `{${space}${members.map(([name, value]) => `${name}:${space}${value}`).join()}}`),
}));
/** A null by itself is SQL's. */
const values = texts.filter((text) => text !== "null");

let changes: Changes;
const graphql = useFixture(() =>
  serveGraphQL({
    settings: { REST_REQUIRE_APIKEY: "false" },
    before: `
      create table public.documents (id int primary key, doc jsonb);
      grant select, insert, update on public.documents to anon;
      create function public.keep(id int, doc jsonb) returns public.documents language sql
        as 'insert into public.documents values (id, doc) returning *';
      grant execute on function public.keep to anon`,
  }),
);
beforeAll(async () => {
  changes = await listen();
});
afterAll(() => changes.socket.close());

type Changes = { readonly socket: WebSocket; readonly docs: Map<number, string> };

/** Collects the documents in row changes, by id. */
async function listen(): Promise<Changes> {
  const config = { postgres_changes: [{ event: "*", schema: "public", table: "documents" }] };
  const { socket, heard } = await join("all", config);
  const docs = new Map<number, string>();
  socket.on("message", (data) => {
    const { event, payload } = parseJsonExactly(String(data)) as { event: string; payload: Change };
    if (event === "postgres_changes") docs.set(payload.data.record.id, JSON.stringify(payload.data.record.doc));
  });
  await until(() => heard.some((text) => text.includes('"event":"system"') && text.includes('"status":"ok"')));
  return { socket, docs };
}

type Change = { readonly data: { readonly record: { readonly id: number; readonly doc: unknown } } };
type Channel = { readonly socket: WebSocket; readonly heard: readonly string[] };

/** A channel, with the texts that come on it. */
async function join(topic: string, config: object): Promise<Channel> {
  const url = graphql.service.url.replace("http", "ws");
  const socket = new WebSocket(`${url}/realtime/v1/websocket?apikey=${anonKey}&vsn=1.0.0`);
  const heard: string[] = [];
  socket.on("message", (data) => heard.push(String(data)));
  await once(socket, "open");
  const message = { topic: `realtime:${topic}`, event: "phx_join", ref: "1", join_ref: "1", payload: { config } };
  socket.send(JSON.stringify(message));
  await until(() => heard.length > 0);
  return { socket, heard };
}

type Ask = { readonly body?: string; readonly headers?: Readonly<Record<string, string>>; readonly method?: string };

async function ask(path: string, { body, headers, method = body ? "POST" : "GET" }: Ask = {}): Promise<string> {
  const answer = await fetch(`${graphql.service.url}${path}`, {
    method,
    headers: { "Content-Type": "application/json", ...headers },
    ...(body && { body }),
  });
  const text = await answer.text();
  expect(answer.ok, text).toBe(true);
  return text;
}

const bodyOf = (query: string, variables: string) => `{"query": ${JSON.stringify(query)}, "variables": ${variables}}`;
const MUTATION = "mutation ($id: ID!, $doc: JSON) { createDocument(input: {id: $id, doc: $doc}) { id } }";
const graphqlAsk = async (query: string, variables: string) => {
  const text = await ask("/graphql", { body: bodyOf(query, variables) });
  expect(text).not.toContain('"errors"');
  return text;
};

const WRITERS: Readonly<Record<string, (id: number, doc: string) => Promise<unknown>>> = {
  "/rest/v1": (id, doc) => ask("/rest/v1/documents", { body: `{"id": ${id}, "doc": ${doc}}` }),
  "/rest/v1 in a list": (id, doc) => ask("/rest/v1/documents", { body: `[{"id": ${id}, "doc": ${doc}}]` }),
  "/rest/v1 by PATCH": async (id, doc) => {
    await ask("/rest/v1/documents", { body: `{"id": ${id}}` });
    await ask(`/rest/v1/documents?id=eq.${id}`, { method: "PATCH", body: `{"doc": ${doc}}` });
  },
  "/rest/v1/rpc": (id, doc) => ask("/rest/v1/rpc/keep", { body: `{"id": ${id}, "doc": ${doc}}` }),
  "a task": async (id, doc) => {
    await ask("/rest/v1/rpc/keep", { body: `{"id": ${id}, "doc": ${doc}}`, headers: { Prefer: "respond-async" } });
    await until(async () => (await ask(`/rest/v1/documents?id=eq.${id}`)) !== "[]");
  },
  "/api/v1": (id, doc) => ask("/api/v1/documents", { body: `{"id": ${id}, "doc": ${doc}}` }),
  "/graphql": (id, doc) => graphqlAsk(MUTATION, `{"id": ${id}, "doc": ${doc}}`),
  "/graphql within an input": (id, doc) =>
    graphqlAsk(
      "mutation ($input: CreateDocumentInput!) { createDocument(input: $input) { id } }",
      `{"input": {"id": ${id}, "doc": ${doc}}}`,
    ),
  "/graphql within a document": (id, doc) =>
    // The names of members can be any in JSON, and cannot in a document.
    doc.includes("{")
      ? graphqlAsk(
          "mutation ($doc: JSON) { createDocument(input: {id: ID, doc: $doc}) { id } }".replace("ID", `${id}`),
          `{"doc": ${doc}}`,
        )
      : graphqlAsk(`mutation { createDocument(input: {id: ${id}, doc: ${doc}}) { id } }`, "{}"),
};

const READERS: Readonly<Record<string, (id: number) => Promise<unknown>>> = {
  "/rest/v1": async (id) =>
    (parseJsonExactly(await ask(`/rest/v1/documents?id=eq.${id}`)) as [{ doc: unknown }])[0].doc,
  "/api/v1": async (id) => (parseJsonExactly(await ask(`/api/v1/documents/${id}`)) as { doc: unknown }).doc,
  "/graphql": async (id) => {
    const text = await graphqlAsk("query ($id: ID!) { document(id: $id) { doc } }", `{"id": ${id}}`);
    return (parseJsonExactly(text) as { data: { document: { doc: unknown } } }).data.document.doc;
  },
  "a row change": async (id) => {
    await until(() => (changes.docs.get(id) ?? "null") !== "null");
    return parseJsonExactly(changes.docs.get(id)!);
  },
};

let lastId = 0;

describe("any JSON", () => {
  test.each(Object.entries(WRITERS))(
    "that is written by %s is stored, and read by every interface, unchanged",
    async (_, write) => {
      await fc.assert(
        fc.asyncProperty(values, async (text) => {
          const id = ++lastId;
          await write(id, text);
          const read = await Promise.all(
            Object.entries(READERS).map(async ([name, reader]) => [name, await reader(id)] as const),
          );
          const [stored] = await graphql.sql(
            "select doc::text, $1::jsonb::text as meant from public.documents where id = $2",
            [text, id],
          );
          expect(stored!.doc).toBe(stored!.meant);
          for (const [name, value] of read) {
            const [result] = await graphql.sql("select $1::jsonb::text as doc", [JSON.stringify(value)]);
            expect({ name, ...result }).toEqual({ name, doc: stored!.meant });
          }
        }),
        {
          numRuns: propertyRuns(25),
          examples: [["[98765432109876543210, -0, 1.50, 1e400]"], ['{"a": 1, "a": 2.0, "__proto__": {"b": 3}}']],
        },
      );
    },
  );

  // A task is taken down first, and fails when it is done.
  test.each(Object.entries(WRITERS).filter(([name]) => name !== "a task"))(
    "with U+0000 is refused by %s, and not stored",
    async (_, write) => {
      const id = ++lastId;
      await expect(write(id, String.raw`["a\u0000b"]`)).rejects.toThrow();
      expect(await graphql.sql("select from public.documents where id = $1 and doc is not null", [id])).toEqual([]);
    },
  );

  test("is broadcast as it was sent, by HTTP in a batch and alone, and on a socket", async () => {
    const { socket, heard } = await join("room", { broadcast: { self: true } });
    const payload = '{"n":[98765432109876543210,1.50]}';
    const headers = { apikey: anonKey };
    const batch = `{"messages": [{"topic": "room", "event": "batch", "payload": ${payload}}]}`;
    await ask("/realtime/v1/api/broadcast", { body: batch, headers });
    await ask("/realtime/v1/api/broadcast/room/events/alone", { body: payload, headers });
    const said = `{"type": "broadcast", "event": "socket", "payload": ${payload}}`;
    socket.send(`{"topic": "realtime:room", "event": "broadcast", "ref": "2", "join_ref": "1", "payload": ${said}}`);
    const result = () => heard.filter((text) => text.includes('"event":"broadcast"'));
    await until(() => result().length === 3);
    expect(result().filter((text) => text.includes(payload))).toEqual(result());
    socket.close();
  });

  test("is equal in the response to a repeated request", async () => {
    const id = ++lastId;
    const headers = { "Idempotency-Key": "a-key", Prefer: "return=representation" };
    const body = `{"id": ${id}, "doc": [98765432109876543210, 1.50]}`;
    const answers = [
      await ask("/rest/v1/documents", { body, headers }),
      await ask("/rest/v1/documents", { body, headers }),
    ];
    expect(answers).toEqual(Array(2).fill(`[{"id":${id},"doc":[98765432109876543210, 1.50]}]`));
  });
});
