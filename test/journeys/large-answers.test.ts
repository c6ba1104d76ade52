import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { json } from "node:stream/consumers";
import { describe, expect, test } from "vitest";
import { useDatabase } from "../database.ts";
import { useFixture } from "../fixture.ts";
import { Wire } from "../graphql/server/socket/wire.ts";
import { tokenOf } from "../rest-gateway/table/client.ts";
import { serveApart } from "../rest-gateway/table/serving-process.ts";

/** Each level asks for all articles of the author of each article above it. They are few and long: the length decides, and many rows cost Postgres time. */
const SCHEMA = `
  insert into public.users (name, email) values ('Ann', 'ann@example.org');
  insert into public.articles (title, content, status, author_id)
    select 'Article ' || n, repeat('x', 1500), 'PUBLISHED', 1 from generate_series(1, 32) n;
  create function public.long_word(size int) returns text stable language sql as $$ select repeat('x', size) $$;
  grant execute on function public.long_word to anon;
  create table public.long_rows as select n, repeat('x', 100000) as text from generate_series(1, 500) n;
  grant select on public.long_rows to anon;
  create table public.echoes as select n, repeat('x', 230) as text from generate_series(1, 600) n;
  comment on table public.echoes is '@list';
  grant select on public.echoes to anon, authenticated;
`;

const database = useDatabase({ sql: SCHEMA });
// Answers that are refused for their length take longer than callers have, and others wait for their connections.
const serving = useFixture(() =>
  serveApart(database, {
    GRAPHQL_STATEMENT_TIMEOUT_SECONDS: "0",
    DB_STATEMENT_TIMEOUT_SECONDS: "0",
    DB_ANON_STATEMENT_TIMEOUT_SECONDS: "0",
    DB_ACQUIRE_TIMEOUT_SECONDS: "600",
  }),
);

function nested(levels: number, fields: string): string {
  const inner = levels === 1 ? fields : `author { ${nested(levels - 1, fields)} }`;
  return `articles(limit: 1000) { ${inner} }`;
}

/** `articles(author:users(articles(id,content)))` */
function embedded(levels: number): string {
  return levels === 1 ? "articles(id,content)" : `articles(author:users(${embedded(levels - 1)}))`;
}

async function askGraphQL(query: string, headers: Readonly<Record<string, string>> = {}) {
  const response = await fetch(`${serving.url}/graphql`, {
    method: "POST",
    headers: { "Content-Type": "application/json", ...headers },
    body: JSON.stringify({ query }),
  });
  return (await response.json()) as { data: unknown; errors?: { extensions: { code: string } }[] };
}

/** 3 MB, of 138 kB in the database: one is within the bound of an anonymous caller, many together are not. */
const ECHOES = echoes(20);

function echoes(aliases: number): string {
  return `{ echoes(limit: 600) { ${Array.from({ length: aliases }, (_, index) => `alias${index}: text`).join(" ")} } }`;
}

async function startOf(query: string, headers: Readonly<Record<string, string>> = {}): Promise<IncomingMessage> {
  const started = request(`${serving.url}/graphql`, {
    method: "POST",
    headers: { "Content-Type": "application/json", ...headers },
    agent: false,
  });
  started.end(JSON.stringify({ query }));
  const [response] = await once(started, "response");
  return response;
}

async function outcomeOf(query: string, started = startOf(query)) {
  const response = await started;
  const { errors } = (await json(response)) as { errors?: { extensions: { code: string } }[] };
  return { code: errors?.[0]?.extensions.code ?? null, retryAfter: response.headers["retry-after"] };
}

async function askTable(path: string) {
  const response = await fetch(`${serving.url}/rest/v1/${path}`, { headers: { apikey: tokenOf({ role: "anon" }) } });
  return { status: response.status, text: await response.text() };
}

const MOST_MIB = 800;

describe("a response that could exhaust the service's memory", () => {
  test("is refused with a code in GraphQL, for nested lists, ten times at once", async () => {
    const query = `{ user(id: 1) { ${nested(3, "id title content")} } }`;
    const answers = await Promise.all(Array.from({ length: 10 }, () => askGraphQL(query)));
    for (const { errors } of answers) expect(errors).toMatchObject([{ extensions: { code: "ANSWER_TOO_LARGE" } }]);
    expect((await askGraphQL(`{ user(id: 1) { ${nested(2, "id")} } }`)).errors).toBeUndefined();
    expect(await serving.peak()).toBeLessThan(MOST_MIB);
  });

  test("is refused with a code in GraphQL, for many lists in one operation", async () => {
    const lists = Array.from(
      { length: 24 },
      (_, index) => `list${index}: user(id: 1) { ${nested(2, `id list${index}: content`)} }`,
    );
    const { errors } = await askGraphQL(`{ ${lists.join(" ")} }`);
    const extensions = expect.objectContaining({ code: "ANSWER_TOO_LARGE" });
    expect(errors).toContainEqual(expect.objectContaining({ extensions }));
    expect(await serving.peak()).toBeLessThan(MOST_MIB);
  });

  test("is refused with a code in GraphQL, for many aliases of a field", async () => {
    const aliases = Array.from({ length: 500 }, (_, index) => `alias${index}: id`).join(" ");
    const { errors } = await askGraphQL(`{ user(id: 1) { ${nested(3, aliases)} } }`);
    expect(errors).toMatchObject([{ extensions: { code: "ANSWER_TOO_LARGE" } }]);
    expect((await askGraphQL(`{ user(id: 1) { ${nested(1, aliases)} } }`)).errors).toBeUndefined();
    expect(await serving.peak()).toBeLessThan(MOST_MIB);
  });

  test("is refused with a code and a time in GraphQL, for many concurrent responses that aliases make large", async () => {
    // Each is larger than the kernel's buffers and none is read before all have begun, so that the service holds them together.
    const author = { Authorization: `Bearer ${tokenOf({ role: "authenticated", sub: "1" })}` };
    const responses = await Promise.all(Array.from({ length: 40 }, () => startOf(echoes(36), author)));
    const outcomes = await Promise.all(responses.map((response) => outcomeOf(ECHOES, Promise.resolve(response))));
    const refused = outcomes.filter(({ code }) => code !== null);
    expect(outcomes.length - refused.length).toBeGreaterThan(0);
    expect(refused.length).toBeGreaterThan(0);
    for (const { code, retryAfter } of refused) expect([code, retryAfter]).toEqual(["SERVICE_UNAVAILABLE", "1"]);
    expect(await serving.peak()).toBeLessThan(MOST_MIB);
    await expect.poll(async () => (await outcomeOf(ECHOES)).code).toBeNull();
  });

  test("is refused with a code in GraphQL, for many such responses at once on one socket", async () => {
    const wire = await Wire.open(`${serving.url.replace(/^http/, "ws")}/graphql`, "graphql-transport-ws");
    wire.say({ type: "connection_init" });
    await wire.hear();
    const many = Array.from({ length: 40 }, (_, index) => String(index));
    for (const id of many) wire.say({ type: "subscribe", id, payload: { query: ECHOES } });
    const codes = new Map<string, string | null>();
    while (codes.size < many.length) {
      const { id, payload } = await wire.hear();
      if (payload) codes.set(id, payload.errors?.[0].extensions.code ?? null);
    }
    wire.close();
    // The number of refused ones depends on how many are in memory at the same time.
    expect([...new Set(codes.values())].filter((code) => code !== "SERVICE_UNAVAILABLE")).toEqual([null]);
    expect(await serving.peak()).toBeLessThan(MOST_MIB);
    await expect.poll(async () => (await outcomeOf(ECHOES)).code).toBeNull();
  });

  test("is refused with a code in GraphQL, for the selection of a mutation", async () => {
    const author = { Authorization: `Bearer ${tokenOf({ role: "authenticated", sub: "1" })}` };
    const query = `mutation { publishArticle(id: 1) { author { ${nested(3, "id title content")} } } }`;
    const { errors } = await askGraphQL(query, author);
    expect(errors).toMatchObject([{ extensions: { code: "ANSWER_TOO_LARGE" } }]);
    expect(await serving.peak()).toBeLessThan(MOST_MIB);
  });

  test("is refused with a code in the table interface, for nested embeddings", async () => {
    const { status, text } = await askTable(`users?select=${embedded(3)}`);
    expect(status).toBe(400);
    expect(JSON.parse(text)).toMatchObject({ code: "ANSWER_TOO_LARGE", hint: expect.any(String) });
    expect(await serving.peak()).toBeLessThan(MOST_MIB);
  });

  test("is refused with a code in the table interface, for one long value", async () => {
    expect((await askTable("rpc/long_word?size=30000000")).text).toHaveLength(30_000_002);
    const { status, text } = await askTable("rpc/long_word?size=40000000");
    expect(status).toBe(400);
    expect(JSON.parse(text)).toMatchObject({ code: "ANSWER_TOO_LARGE" });
  });
});

describe("a table with long rows", () => {
  test("is streamed completely, although it would exceed the memory", async () => {
    const { status, text } = await askTable("long_rows");
    expect(status).toBe(200);
    expect(JSON.parse(text)).toHaveLength(500);
    expect(text.length).toBeGreaterThan(50_000_000);
  });
});
