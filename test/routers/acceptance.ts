import { ApolloClient, gql, HttpLink, InMemoryCache } from "@apollo/client";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { COMPARED_AREAS, type ComparedArea, PLAIN_TABLE_AREAS } from "../compare/areas.ts";
import { compareResponses } from "../compare/compare-responses.ts";
import type { ComparedService, DatabaseName } from "../compare/compared-databases.ts";
import { openComparedService } from "../compare/open-compared-service.ts";
import { urlOf, useClient, useDatabase } from "../database.ts";
import { SEED } from "../db/callers.ts";
import { useFixture } from "../fixture.ts";
import { atMost, propertyRuns } from "../property-runs.ts";
import { makeClient, subscribed, token } from "../realtime/service.ts";
import { useService } from "../serve.ts";
import { until } from "../until.ts";
import { type PostgresSocketAddress, type Router, socketAddressOf } from "./router.ts";
import { useRouter } from "./through-router.ts";

const PASSWORD = "Tangerine-Boat-7";

type TestedRouter = {
  readonly start: (postgres: PostgresSocketAddress) => Promise<Router>;
  /** The number of sessions that requests share, if the router limits them. */
  readonly sessions?: number;
};

/** Tests the requests of clients of all interfaces through a router, beside the same ones without it. */
export function testThrough(name: string, { start, sessions }: TestedRouter): void {
  describe(`through ${name}`, () => {
    const clusterUrl = urlOf("postgres", "postgres");
    const router = useFixture(() => start(socketAddressOf(clusterUrl)));
    let restore: () => void;
    beforeAll(() => {
      restore = useRouter(router, clusterUrl);
    });
    afterAll(() => restore?.());

    describe("clients", () => testClients(sessions));
    describe("requests", () =>
      testRequests(async (name) => {
        restore();
        const service = await openComparedService(name);
        restore = useRouter(router, urlOf("postgres", "postgres"));
        return service;
      }));
  });
}

function testClients(limit: number | undefined): void {
  const database = useDatabase({
    sql: `${SEED};
      create function public.add(a int, b int) returns int immutable language sql return a + b;
      grant execute on function public.add to anon;
      create table public.long_rows as select n, repeat('x', 100000) as text from generate_series(1, 150) n;
      grant select on public.long_rows to anon`,
  });
  const owner = useClient(database.ownerUrl);
  const service = useService({ database });

  const post = (path: string, body: unknown, headers: Record<string, string> = {}) =>
    fetch(`${service.url}${path}`, {
      method: "POST",
      headers: { "Content-Type": "application/json", ...headers },
      body: JSON.stringify(body),
    });

  test.skipIf(limit === undefined)("requests share the sessions of the router", async () => {
    await Promise.all(Array.from({ length: 200 }, () => fetch(`${service.url}/api/v1/articles`)));
    const { rows } = await owner.query<{ sessions: number }>(
      "select count(*)::int as sessions from pg_stat_activity where usename = 'authenticator' and datname = current_database()",
    );
    expect(rows[0]!.sessions).toBeGreaterThan(0);
    expect(rows[0]!.sessions).toBeLessThanOrEqual(limit!);
  });

  test("supabase-js reads, embeds, writes, calls, and sees changes, each caller as itself", async () => {
    const anon = makeClient(service.url);
    const alice = makeClient(service.url, async () => token({ role: "authenticated", sub: "1" }));
    const bob = makeClient(service.url, async () => token({ role: "authenticated", sub: "2" }));
    const { data: articles } = await anon.from("articles").select("title, author:users(name)").order("id");
    expect(articles).toEqual([
      { title: "Alice writes", author: { name: "Alice" } },
      { title: "Bob writes", author: { name: "Bob" } },
    ]);
    const heard: string[] = [];
    const channel = anon
      .channel("articles")
      .on("postgres_changes", { event: "*", schema: "public", table: "articles" }, ({ eventType }) =>
        heard.push(eventType),
      );
    await subscribed(channel);
    const { data: written, error } = await alice
      .from("articles")
      .insert({ title: "Through the pooler", content: "And back." })
      .select("id, author_id")
      .single();
    expect(error).toBeNull();
    expect(written).toMatchObject({ author_id: 1 });
    const { data: foreign } = await bob
      .from("articles")
      .update({ title: "Bob was here" })
      .eq("id", written!.id)
      .select();
    expect(foreign).toEqual([]);
    expect((await alice.from("articles").delete().eq("id", written!.id)).error).toBeNull();
    expect((await anon.rpc("add", { a: 20, b: 22 })).data).toBe(42);
    await until(() => heard.length === 2);
    expect(heard).toEqual(["INSERT", "DELETE"]);
    await anon.removeAllChannels();
  });

  test("hundreds of concurrent callers never get each other's identity", async () => {
    await Promise.all(
      Array.from({ length: 400 }, async (_, n) => {
        const sub = String((n % 2) + 1);
        const answer = await fetch(`${service.url}/rest/v1/articles?select=author_id&author_id=eq.${sub}`, {
          method: "PATCH",
          headers: {
            apikey: token({ role: "authenticated", sub }),
            "Content-Type": "application/json",
            Prefer: "return=representation",
          },
          body: JSON.stringify({ content: `Written by ${sub}.` }),
        });
        expect(await answer.json()).toEqual([{ author_id: Number(sub) }]);
      }),
    );
    const { rows } = await owner.query("select distinct author_id, content from public.articles order by 1");
    expect(rows).toEqual([
      { author_id: "1", content: "Written by 1." },
      { author_id: "2", content: "Written by 2." },
    ]);
  });

  test("Apollo queries and mutates", async () => {
    const headers = { authorization: `Bearer ${token({ role: "authenticated", sub: "1" })}` };
    const client = new ApolloClient({
      link: new HttpLink({ uri: `${service.url}/graphql`, headers }),
      cache: new InMemoryCache(),
    });
    const { data } = await client.query<{
      articles: { totalCount: number; edges: { node: { author: { name: string } } }[] };
    }>({
      query: gql`{ articles(first: 5) { totalCount edges { node { id title author { id name } } } } }`,
    });
    expect(data!.articles).toMatchObject({ totalCount: 2 });
    const changed = await client.mutate<{ createArticle: { success: boolean } }>({
      mutation: gql`mutation { createArticle(input: { title: "From Apollo", content: "It works." }) { success } }`,
    });
    expect(changed.data!.createArticle.success).toBe(true);
  });

  test("sign-in, token refresh and the resource interface work", async () => {
    const registered = await post("/auth/register", { email: "dora@example.org", password: PASSWORD, name: "Dora" });
    expect(registered.status).toBe(201);
    const { accessToken, refreshToken } = (await registered.json()) as Record<string, string>;
    expect((await post("/auth/refresh", { refreshToken })).status).toBe(200);
    expect((await post("/auth/refresh", { refreshToken })).status).toBe(401);
    const authorization = { Authorization: `Bearer ${accessToken}` };
    expect((await post("/api/v1/articles", { title: "By Dora", content: "As usual." }, authorization)).status).toBe(
      201,
    );
    const once = {
      ...authorization,
      apikey: token({ role: "anon" }),
      Prefer: "return=representation",
      "Idempotency-Key": "one",
    };
    const written = () => post("/rest/v1/articles", { title: "By Dora", content: "Once." }, once);
    const [first, again] = [await written(), await written()];
    expect([first.status, again.status]).toEqual([201, 201]);
    expect(await again.json()).toEqual(await first.json());
    expect((await post("/users", { name: "Eve" })).status).toBe(400);
  });

  test("a large response is streamed, and a disconnecting client cancels it", async () => {
    const headers = { apikey: token({ role: "anon" }) };
    const whole = await fetch(`${service.url}/rest/v1/long_rows?select=text`, { headers });
    expect((await whole.text()).length).toBeGreaterThan(15_000_000);
    const leaves = new AbortController();
    const left = await fetch(`${service.url}/rest/v1/long_rows?select=text`, { headers, signal: leaves.signal });
    leaves.abort();
    await expect(left.text()).rejects.toThrow();
    expect((await fetch(`${service.url}/rest/v1/articles?limit=1`, { headers })).status).toBe(200);
  });

  test("a changed schema is served with newly prepared statements", async () => {
    const boats = () => fetch(`${service.url}/api/v1/boats`);
    await owner.query("create table public.boats (id int primary key); grant select on public.boats to anon");
    await until(async () => (await boats()).status === 200);
    await owner.query("alter table public.boats add name text");
    await owner.query("insert into public.boats values (1, 'Argo')");
    await until(async () => (await (await boats()).text()).includes("Argo"));
  });
}

/** The number of requests of an area: the areas of tables are many, and all are sent through each router. */
const MOST = propertyRuns(1_000);
const MOST_OF_TABLES = Math.round(MOST ** 3 / 1_000 ** 2);
const CONTENT_AREAS = COMPARED_AREAS.filter(({ database }) => database === "content");
// The plans that Postgres makes depend on the earlier statements of its session.
const TABLE_AREAS = PLAIN_TABLE_AREAS.filter(({ name }) => name !== "table-execution-plans");

/** It tells operators of the router. */
const NAMES_ROUTER = /^\/admin\/v1\/doctor\b/;

type OpenService = (name: DatabaseName) => Promise<ComparedService>;

function testRequests(openDirectly: OpenService): void {
  test.each([
    { subject: "tables", areas: TABLE_AREAS, most: MOST_OF_TABLES },
    ...CONTENT_AREAS.map((area) => ({ subject: `the ${area.name} interface`, areas: [area], most: MOST })),
  ])("to $subject are answered as without it", async ({ areas, most }) => {
    const [{ database }] = areas as [ComparedArea];
    const direct = await openDirectly(database);
    const routed = await openComparedService(database);
    const differences: string[] = [];
    let count = 0;
    for (const { requests } of areas) {
      const sent = atMost(most, await requests(direct.url)).filter(({ path }) => !NAMES_ROUTER.test(path));
      differences.push(...(await compareResponses(direct, routed, sent)));
      count += sent.length;
    }
    await routed.close();
    await direct.close();
    expect(differences).toEqual([]);
    expect(count).toBeGreaterThan(100);
  });
}
