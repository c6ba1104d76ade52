import { createClient, type SupabaseClient } from "@supabase/supabase-js";
import jwt from "jsonwebtoken";
import pg from "pg";
import { beforeAll, describe, expect, test } from "vitest";
import { type TestDatabase, useDatabase } from "../database.ts";
import { SEED } from "../db/callers.ts";
import { useFixture } from "../fixture.ts";
import { openFixture } from "../rest-gateway/table/differential/fixture.ts";
import { SECRET } from "../secret.ts";
import { serve, useService } from "../serve.ts";
import { until } from "../until.ts";

/** The client that an application declares, with the version of the server and without types of its tables. */
// biome-ignore lint/suspicious/noExplicitAny: the client calls rows of unknown tables any.
type Client = SupabaseClient<any, any, any, any, { PostgrestVersion: "14" }>;

const key = (role: string) => jwt.sign({ role }, SECRET);

/** Makes a client like an application, with the deployment's key and the token of the signed-in user. */
function connect(url: string, { role = "anon", sub = null as string | null, schema = "public" } = {}): Client {
  const token = sub === null ? null : jwt.sign({ role: "authenticated", sub }, SECRET);
  return createClient(url, key(role), {
    auth: { persistSession: false, autoRefreshToken: false, detectSessionInUrl: false },
    db: { schema },
    ...(token !== null && { accessToken: async () => token }),
  }) as Client;
}

describe("supabase-js on the content service", () => {
  let anon: Client;
  let alice: Client;
  let bob: Client;
  let server: Client;

  const database = useDatabase({ sql: SEED });
  const service = useService({
    database,
    settings: { PGRST_DB_PLAN_ENABLED: "true", PGRST_DB_TX_END: "commit-allow-override" },
  });
  beforeAll(async () => {
    anon = connect(service.url);
    alice = connect(service.url, { sub: "1" });
    bob = connect(service.url, { sub: "2" });
    server = connect(service.url, { role: "service_role" });
  });

  test("an anonymous client reads articles with their authors and comments", async () => {
    const { data, error } = await anon
      .from("articles")
      .select("title, author:users(name), comments(content, author:users(name))")
      .order("id")
      .order("id", { referencedTable: "comments" });
    expect(error).toBeNull();
    expect(data).toEqual([
      {
        title: "Alice writes",
        author: { name: "Alice" },
        comments: [
          { content: "My own.", author: { name: "Alice" } },
          { content: "Nice.", author: { name: "Bob" } },
        ],
      },
      { title: "Bob writes", author: { name: "Bob" }, comments: [] },
    ]);
  });

  test("a key is required, and a wrong one is refused", async () => {
    const bare = await fetch(`${service.url}/rest/v1/articles`);
    expect(bare.status).toBe(401);
    const anonymous = createClient(service.url, jwt.sign({ role: "anon" }, "signed by nobody that the service knows"));
    const { error, status } = await anonymous.from("articles").select();
    expect(status).toBe(401);
    expect(error).toMatchObject({ code: expect.stringMatching(/^PGRST30/) });
  });

  test("a signed-in user writes in her own name only", async () => {
    const written = await alice.from("articles").insert({ title: "Of spring", content: "Green." }).select().single();
    expect(written).toMatchObject({
      error: null,
      status: 201,
      data: { title: "Of spring", author_id: 1, status: "DRAFT" },
    });

    const changed = await alice
      .from("articles")
      .update({ title: "Of autumn" })
      .eq("id", written.data.id)
      .select("title");
    expect(changed.data).toEqual([{ title: "Of autumn" }]);
    const others = await bob.from("articles").update({ title: "Of winter" }).eq("id", written.data.id).select();
    expect(others).toMatchObject({ error: null, data: [] });
    // The row does exist, so the empty list above means something.
    expect((await bob.from("articles").select("title").eq("id", written.data.id)).data).toEqual([
      { title: "Of autumn" },
    ]);

    expect((await bob.from("articles").delete().eq("id", written.data.id).select()).data).toEqual([]);
    expect((await alice.from("articles").delete().eq("id", written.data.id)).status).toBe(204);
  });

  test("an article is written with its comments in one request", async () => {
    const nested = (rows: object) =>
      alice.from("articles").insert(rows).setHeader("Prefer", "nested=insert").select("title, comments(content)");
    const article = { title: "Of summer", content: "Warm.", status: "PUBLISHED" };
    const written = await nested({ ...article, comments: [{ content: "First." }, { content: "Second." }] });
    expect(written).toMatchObject({
      error: null,
      status: 201,
      data: [{ title: "Of summer", comments: [{ content: "First." }, { content: "Second." }] }],
    });
    const list = await nested([
      { ...article, comments: [{ content: "Third." }] },
      { ...article, comments: [] },
    ]);
    expect(list).toMatchObject({ error: null, data: [{ comments: [{ content: "Third." }] }, { comments: [] }] });
    const refused = await nested([{ ...article, comments: [{ content: "a" }, { content: "b", author_id: 2 }] }]);
    expect(refused.error).toMatchObject({ code: "PGRST102", details: { path: "0/comments/1" } });
  });

  test("read-only columns are refused", async () => {
    const { error, status } = await alice.from("articles").insert({ title: "Forged", content: "x", author_id: 2 });
    expect(status).toBe(403);
    expect(error).toMatchObject({ code: "42501" });
  });

  test("anonymous clients write no articles: 401, so that they sign in", async () => {
    const { error, status } = await anon.from("articles").insert({ title: "Of spring", content: "Green." });
    expect(status).toBe(401);
    expect(error).toMatchObject({ code: "42501" });
  });

  test("the anon key reads nothing of /users that the policies protect", async () => {
    const { data } = await anon.from("users").update({ age: 5 }).eq("id", 1).select();
    expect(data).toEqual([]);
    const { error } = await anon.from("users").insert({ name: "Eve", email: "eve@example.org" });
    expect(error).toMatchObject({ code: "42501" });
    expect((await alice.from("users").update({ age: 30 }).eq("id", 1).select("age").single()).data).toEqual({
      age: 30,
    });
  });

  test("the service_role key bypasses every policy", async () => {
    const { data, error } = await server
      .from("articles")
      .update({ summary: "s" })
      .eq("id", 2)
      .select("summary")
      .single();
    expect({ data, error }).toEqual({ data: { summary: "s" }, error: null });
  });

  test("protected columns stay protected, in every kind of query", async () => {
    for (const table of ["mfa_factors", "auth.users", "pg_authid"]) {
      expect((await server.from(table).select()).error).toMatchObject({ code: "PGRST205" });
    }
    expect((await anon.schema("auth").from("users").select()).error).toMatchObject({ code: "PGRST106" });
  });

  test("violated constraints are returned in Postgres's words", async () => {
    expect((await alice.from("articles").insert({ title: "Abc", content: "x" })).error).toMatchObject({
      code: "23514",
    });
    expect((await alice.from("comments").insert({ article_id: 999, content: "x" })).error).toMatchObject({
      code: "23503",
    });
    const twice = await server.from("users").insert({ name: "A", email: "alice@example.org" });
    expect(twice).toMatchObject({ status: 409, error: { code: "23505" } });
    expect((await anon.from("articles").select().eq("id", "one")).error).toMatchObject({ code: "22P02" });
    expect((await anon.from("articles").select().eq("id", 99).single()).error).toMatchObject({ code: "PGRST116" });
  });

  test("updates and deletes without a filter are refused", async () => {
    expect(await alice.from("articles").update({ title: "All of them" })).toMatchObject({
      status: 400,
      error: { code: "21000" },
    });
    expect(await alice.from("articles").delete()).toMatchObject({ status: 400, error: { code: "21000" } });
  });

  test("functions are called by name, and their rows are filtered like a table's", async () => {
    const found = await anon.rpc("search", { keyword: "summer" }).select("title").eq("author_id", 2);
    expect(found).toMatchObject({ error: null, data: [{ title: "Bob writes" }] });
    expect((await alice.rpc("me").select("name").single()).data).toEqual({ name: "Alice" });
    expect((await alice.rpc("update_article", { id: 2, title: "Not mine" })).error).toMatchObject({ code: "NOPER" });
  });
});

describe("supabase-js with the tables of the fixture", () => {
  let fixture: Client;

  const database = useFixture(openFixture);
  const service = useFixture(() =>
    serve(database, {
      PGRST_DB_SCHEMAS: "api,other",
      PGRST_DB_EXTRA_SEARCH_PATH: "public,tools",
      PGRST_DB_AGGREGATES_ENABLED: "true",
      PGRST_DB_PLAN_ENABLED: "true",
      PGRST_DB_TX_END: "commit-allow-override",
    }),
  );
  beforeAll(async () => {
    fixture = connect(service.url, { schema: "api" });
  });

  /** The ids of the rows, as the shortest proof that a filter chose the right ones. */
  async function ids(query: PromiseLike<{ data: unknown; error: unknown }>): Promise<number[]> {
    const { data, error } = await query;
    if (error !== null) throw error;
    return (data as { id: number }[]).map(({ id }) => id);
  }
  const works = () => fixture.from("works").select("id").order("id");
  const types = () => fixture.from("types").select("id").order("id");

  describe("filters", () => {
    const filters: [name: string, query: () => PromiseLike<{ data: unknown; error: unknown }>, ids: number[]][] = [
      ["eq", () => works().eq("title", "Fragment"), [7]],
      ["neq", () => works().neq("artist_id", 1), [3, 4, 5, 6]],
      ["gt", () => works().gt("year", 1889), [1]],
      ["gte", () => works().gte("year", 1889), [1, 3]],
      ["lt", () => works().lt("year", 1831), [5]],
      ["lte", () => works().lte("year", 1831), [5, 6]],
      ["like", () => works().like("title", "%Night%"), [3, 5]],
      ["ilike", () => works().ilike("title", "%night%"), [3, 5]],
      ["likeAllOf", () => works().likeAllOf("title", ["The%", "%Night%"]), [3, 5]],
      ["likeAnyOf", () => works().likeAnyOf("title", ["Water%", "%Wave"]), [1, 6]],
      ["ilikeAllOf", () => works().ilikeAllOf("title", ["the%", "%WATCH"]), [5]],
      ["ilikeAnyOf", () => works().ilikeAnyOf("title", ["water%", "%WAVE"]), [1, 6]],
      ["regexMatch", () => works().regexMatch("title", "^The .* Night$"), [3]],
      ["regexIMatch", () => works().regexIMatch("title", "^the .* night$"), [3]],
      ["is null", () => works().is("year", null), [7]],
      ["is true", () => works().is("on_show", true), [1, 2, 3, 5, 6]],
      ["is false", () => works().is("on_show", false), [4, 7]],
      ["isDistinct", () => works().isDistinct("mood", "happy"), [1, 2, 5, 6, 7]],
      ["in", () => works().in("title", ["Impression, Sunrise", "Fragment", 'say "hi"']), [2, 7]],
      ["in nothing", () => works().in("id", []), []],
      ["notIn", () => works().notIn("id", [1, 2, 3]), [4, 5, 6, 7]],
      ["contains, a list", () => works().contains("tags", ["water", "flowers"]), [1]],
      ["contains, a document", () => works().contains("details", { media: ["oil"] }), [1, 3]],
      ["contains, a range", () => types().contains("span", "[2,3]"), [1]],
      ["containedBy, a list", () => works().containedBy("tags", ["water", "morning"]), [2, 6, 7]],
      [
        "containedBy, a document",
        () => works().containedBy("details", { copies: 100, media: ["ink", "paper", "glue"] }),
        [4, 6],
      ],
      ["overlaps, a list", () => works().overlaps("tags", ["night", "morning"]), [2, 3, 5]],
      ["overlaps, a range", () => types().overlaps("span", "[4,6)"), [1, 3]],
      ["rangeGt", () => types().rangeGt("span", "[1,4]"), [3]],
      ["rangeGte", () => types().rangeGte("span", "[5,10)"), [3]],
      ["rangeLt", () => types().rangeLt("span", "[7,9)"), [1]],
      ["rangeLte", () => types().rangeLte("span", "[1,4]"), [1]],
      ["rangeAdjacent", () => types().rangeAdjacent("span", "[10,12)"), [3]],
      ["match", () => works().match({ artist_id: 2, on_show: true }), [3]],
      ["not", () => works().not("mood", "is", null), [1, 2, 3, 4, 6]],
      ["not in", () => works().not("id", "in", "(1,2,3,4)"), [5, 6, 7]],
      ["or", () => works().or("id.eq.1,and(year.gt.1880,mood.eq.happy)"), [1, 3, 4]],
      ["filter", () => works().filter("title", "ilike", "the*"), [3, 5, 6]],
      ["filter by a JSON path", () => works().eq("details->size->width", 92), [3]],
      ["textSearch", () => fixture.from("documents").select("id").textSearch("search", "fat & cat"), [1]],
      [
        "textSearch, plain",
        () =>
          fixture.from("documents").select("id").textSearch("search", "fat cats", { type: "plain", config: "english" }),
        [1],
      ],
      [
        "textSearch, a phrase",
        () =>
          fixture
            .from("documents")
            .select("id")
            .textSearch("search", "cats ate", { type: "phrase", config: "english" }),
        [1],
      ],
      [
        "textSearch, as in a browser",
        () =>
          fixture
            .from("documents")
            .select("id")
            .textSearch("search", "impossible -cat", { type: "websearch", config: "english" }),
        [3],
      ],
      [
        "a column with an odd name",
        () => fixture.from("odd table").select('id:"the key"').eq('"with,comma"', "c2"),
        [2],
      ],
    ];
    test.each(filters)("%s", async (_name, query, expected) => {
      expect(await ids(query())).toEqual(expected);
    });

    test("a text with any characters is compared as it is", async () => {
      const text = `a "quoted", (bracketed) \\ {braced} % & + # ? text; é ★`;
      await fixture.from("watched").insert({ id: 90, name: text }).throwOnError();
      expect((await fixture.from("watched").select("id").eq("name", text.toUpperCase())).data).toEqual([{ id: 90 }]);
      await fixture.from("watched").delete().eq("id", 90).throwOnError();
    });
  });

  describe("modifiers", () => {
    test("order, limit and range", async () => {
      expect(
        await ids(fixture.from("works").select("id").order("year", { ascending: false, nullsFirst: false }).limit(2)),
      ).toEqual([1, 3]);
      expect(
        await ids(fixture.from("works").select("id").order("year", { nullsFirst: true }).order("id").range(0, 1)),
      ).toEqual([7, 5]);
      expect(await ids(works().range(2, 4))).toEqual([3, 4, 5]);
    });

    test("the rows of a relation are ordered, limited and filtered by its name", async () => {
      const { data } = await fixture
        .from("artists")
        .select("name, works(title)")
        .order("title", { referencedTable: "works", ascending: false })
        .limit(1, { referencedTable: "works" })
        .eq("works.on_show", true)
        .in("id", [1, 2])
        .order("id");
      expect(data).toEqual([
        { name: "Claude", works: [{ title: "Water Lilies" }] },
        { name: "Vincent", works: [{ title: "The Starry Night" }] },
      ]);
      const ranged = await fixture
        .from("artists")
        .select("works(id)")
        .order("id", { referencedTable: "works" })
        .range(1, 1, { referencedTable: "works" })
        .eq("id", 1);
      expect(ranged.data).toEqual([{ works: [{ id: 2 }] }]);
    });

    test("or within a relation", async () => {
      const { data } = await fixture
        .from("artists")
        .select("name, works!inner(title)")
        .or("year.lt.1700,year.gt.1900", { referencedTable: "works" })
        .order("id");
      expect(data).toEqual([
        { name: "Claude", works: [{ title: "Water Lilies" }] },
        { name: "Rembrandt", works: [{ title: "The Night Watch" }] },
      ]);
    });

    test("rows are ordered by a column of a relation", async () => {
      const { data } = await fixture
        .from("works")
        .select("id, artists!inner(name)")
        .order("artists(name)")
        .order("id")
        .limit(2);
      expect(data).toEqual([
        { id: 1, artists: { name: "Claude" } },
        { id: 2, artists: { name: "Claude" } },
      ]);
    });

    test("single requires one row, maybeSingle at most one", async () => {
      expect((await works().eq("id", 1).single()).data).toEqual({ id: 1 });
      expect(await works().eq("id", 0).single()).toMatchObject({
        data: null,
        status: 406,
        error: { code: "PGRST116" },
      });
      expect(await works().single()).toMatchObject({ data: null, status: 406, error: { code: "PGRST116" } });
      expect((await works().eq("id", 1).maybeSingle()).data).toEqual({ id: 1 });
      expect(await works().eq("id", 0).maybeSingle()).toMatchObject({ data: null, error: null });
      expect((await works().maybeSingle()).error).toMatchObject({ code: "PGRST116" });
    });

    test("csv", async () => {
      const { data } = await fixture.from("colours").select("id, name").order("id").csv();
      expect(data).toBe("id,name\n1,red\n2,green\n3,none");
    });

    test("rows without their nulls", async () => {
      expect((await fixture.from("works").select("id, year").eq("id", 7).stripNulls()).data).toEqual([{ id: 7 }]);
      expect((await fixture.from("works").select("id, year").eq("id", 7).stripNulls().single()).data).toEqual({
        id: 7,
      });
    });

    test.each(["exact", "planned", "estimated"] as const)("count %s, with rows and without", async (count) => {
      const rows = await fixture.from("numbers").select("n", { count }).limit(10);
      expect(rows.count).toBe(100);
      expect(rows.data).toHaveLength(10);
      const headOnly = await fixture.from("numbers").select("*", { count, head: true });
      expect(headOnly).toMatchObject({ count: 100, data: null, error: null });
    });

    test("the count of changed rows is returned", async () => {
      const { count, data } = await fixture
        .from("items")
        .update({ note: "n" }, { count: "exact" })
        .lt("id", 3)
        .rollback();
      expect({ count, data }).toEqual({ count: 2, data: null });
      expect((await fixture.from("exhibits").delete({ count: "exact" }).eq("work_id", 1).rollback()).count).toBe(2);
      expect(
        (
          await fixture
            .from("keyless")
            .insert([{ a: 1 }, { a: 2 }], { count: "exact" })
            .rollback()
        ).count,
      ).toBe(2);
    });

    test("rollback shows the result of a write", async () => {
      const written = await fixture.from("items").insert({ name: "ghost" }).select("name").rollback();
      expect(written.data).toEqual([{ name: "ghost" }]);
      expect((await fixture.from("items").select().eq("name", "ghost")).data).toEqual([]);
    });

    test("maxAffected refuses a write that changes more", async () => {
      const many = await fixture.from("items").update({ note: "x" }).lt("id", 3).maxAffected(1).select();
      expect(many).toMatchObject({ status: 400, error: { code: "PGRST124" } });
      expect((await fixture.from("items").select("note").eq("id", 1).single()).data).toEqual({ note: "soft" });
      const few = await fixture.from("items").update({ note: "x" }).lt("id", 3).maxAffected(2).select("id").rollback();
      expect(few.data).toHaveLength(2);
    });

    test("explain, as text and as JSON", async () => {
      const text = await works().explain();
      expect(text.data).toMatch(/works/);
      const plan = await works().explain({ format: "json", analyze: true, buffers: true });
      expect(plan.data).toEqual([expect.objectContaining({ Plan: expect.any(Object) })]);
    });

    test("a request that is aborted by its signal is cancelled in the database too", async () => {
      const sleeping = () =>
        run(database, "select from pg_stat_activity where wait_event = 'PgSleep' and datname = current_database()");
      const controller = new AbortController();
      const answer = fixture.rpc("slow", { seconds: 60 }).abortSignal(controller.signal).then();
      await until(async () => (await sleeping()).length > 0);
      controller.abort();
      expect((await answer).error?.message).toMatch(/AbortError/);
      const since = performance.now();
      await until(async () => (await sleeping()).length === 0);
      expect(performance.now() - since).toBeLessThan(10_000);
    });

    test("throwOnError throws the error of the response", async () => {
      await expect(fixture.from("nothing").select().throwOnError()).rejects.toMatchObject({ code: "PGRST205" });
    });

    test("another schema", async () => {
      expect((await fixture.schema("other").from("works").select().order("id")).data).toEqual([
        { id: 1, name: "other one" },
        { id: 2, name: "other two" },
      ]);
      expect((await fixture.schema("other").rpc("add", { a: 3, b: 4 })).data).toBe(12);
      expect((await fixture.schema("private").from("vault").select()).error).toMatchObject({ code: "PGRST106" });
    });

    test("the description of a schema", async () => {
      const { data, error } = await fixture.schema("other").getOpenApiSpec();
      expect(error).toBeNull();
      expect(data).toMatchObject({
        swagger: "2.0",
        paths: { "/works": expect.anything(), "/rpc/add": expect.anything() },
      });
    });

    test("a custom header reaches SQL", async () => {
      const { data } = await fixture.rpc("request_header", { name: "x-mine" }).setHeader("X-Mine", "here");
      expect(data).toBe("here");
    });
  });

  describe("selected columns", () => {
    test("aliases, casts, JSON paths and computed columns", async () => {
      const { data } = await fixture
        .from("works")
        .select("name:title, year::text, details->size->>width, shouted")
        .eq("id", 1);
      expect(data).toEqual([{ name: "Water Lilies", year: "1906", width: "90", shouted: "WATER LILIES" }]);
    });

    test("relations of relations, through junctions, hinted and renamed", async () => {
      const { data, error } = await fixture
        .from("exhibitions")
        .select(
          "title, curator:people!curator_id(name), deputy:people!exhibitions_deputy_fkey(name), works(title, artists(name))",
        )
        .eq("id", 2)
        .order("id", { referencedTable: "works" })
        .single();
      expect(error).toBeNull();
      expect(data).toEqual({
        title: "Night",
        curator: { name: "Ben" },
        deputy: { name: "Cyd" },
        works: [
          { title: "The Starry Night", artists: { name: "Vincent" } },
          { title: "The Night Watch", artists: { name: "Rembrandt" } },
        ],
      });
    });

    test("an ambiguous relation is refused with the candidates", async () => {
      const { error, status } = await fixture.from("exhibitions").select("people(name)");
      expect(status).toBe(300);
      expect(error).toMatchObject({
        code: "PGRST201",
        hint: expect.stringContaining("people!exhibitions_curator_fkey"),
      });
    });

    test("of an inner join are those of rows with a related row", async () => {
      const { data } = await fixture.from("artists").select("name, works!inner(title)").eq("works.title", "Sunflowers");
      expect(data).toEqual([{ name: "Vincent", works: [{ title: "Sunflowers" }] }]);
      expect(await ids(fixture.from("artists").select("id, works()").is("works", null))).toEqual([5]);
    });

    test("of relations can be spread, to one and to many", async () => {
      expect((await fixture.from("works").select("title, ...artists(artist:name)").eq("id", 3)).data).toEqual([
        { title: "The Starry Night", artist: "Vincent" },
      ]);
      expect(
        (
          await fixture
            .from("artists")
            .select("name, ...works(titles:title)")
            .eq("id", 1)
            .order("id", { referencedTable: "works" })
        ).data,
      ).toEqual([{ name: "Claude", titles: ["Water Lilies", "Impression, Sunrise"] }]);
    });

    test("aggregates, also of a relation, and the count that needs no switch", async () => {
      expect((await fixture.from("works").select("mood, count(), price.sum()").eq("mood", "calm")).data).toEqual([
        { mood: "calm", count: 2, sum: 179.5 },
      ]);
      expect((await fixture.from("artists").select("name, works(count)").eq("id", 2)).data).toEqual([
        { name: "Vincent", works: [{ count: 2 }] },
      ]);
    });
  });

  describe("writes", () => {
    test("insert adds one, with its row or without", async () => {
      expect(await fixture.from("items").insert({ name: "a" })).toMatchObject({ data: null, error: null, status: 201 });
      const { data } = await fixture
        .from("items")
        .insert({ name: "b", extra: { n: [1] } })
        .select("name, quantity, extra")
        .single();
      expect(data).toEqual({ name: "b", quantity: 1, extra: { n: [1] } });
    });

    test("insert adds many; missing columns are null, or the default if requested", async () => {
      const rows = [{ name: "c", note: "noted" }, { name: "d" }];
      const nulls = await fixture.from("items").insert(rows).select("note").order("id");
      expect(nulls.data).toEqual([{ note: "noted" }, { note: null }]);
      const defaults = await fixture.from("items").insert(rows, { defaultToNull: false }).select("note").order("id");
      expect(defaults.data).toEqual([{ note: "noted" }, { note: "none" }]);
    });

    test("upsert merges, ignores, and supports other keys than the primary one", async () => {
      const merged = await fixture
        .from("keyed")
        .upsert([
          { code: "one", n: 50 },
          { code: "six", n: 6 },
        ])
        .select("code, name, n")
        .order("code");
      expect(merged.data).toEqual([
        { code: "one", name: "One", n: 50 },
        { code: "six", name: null, n: 6 },
      ]);
      const ignored = await fixture
        .from("keyed")
        .upsert(
          [
            { code: "one", n: 51 },
            { code: "ten", n: 10 },
          ],
          { ignoreDuplicates: true },
        )
        .select("code");
      expect(ignored.data).toEqual([{ code: "ten" }]);
      const byName = await fixture
        .from("keyed")
        .upsert({ code: "uno", name: "One", n: 52 }, { onConflict: "name" })
        .select()
        .single();
      expect(byName.data).toEqual({ code: "uno", name: "One", n: 52 });
      await fixture.from("keyed").update({ code: "one", n: 1 }).eq("code", "uno").throwOnError();
      await fixture.from("keyed").delete().in("code", ["six", "ten"]).throwOnError();
    });

    test("update and delete return the changed rows, with the options of a read", async () => {
      const { data: made } = await fixture.from("works").insert({ title: "Copy", artist_id: 1 }).select("id").single();
      const changed = await fixture
        .from("works")
        .update({ year: 2000 })
        .eq("id", made!.id)
        .select("year, artists(name)");
      expect(changed).toMatchObject({ status: 200, data: [{ year: 2000, artists: { name: "Claude" } }] });
      expect(await fixture.from("works").update({ year: 1 }).eq("id", 0)).toMatchObject({ status: 204, data: null });
      const gone = await fixture.from("works").delete().eq("id", made!.id).select("title").single();
      expect(gone.data).toEqual({ title: "Copy" });
    });

    test("a write that would return more than one row to single is rolled back", async () => {
      const { error } = await fixture.from("items").update({ note: "undone" }).lt("id", 3).select().single();
      expect(error).toMatchObject({ code: "PGRST116" });
      expect((await fixture.from("items").select().eq("note", "undone")).data).toEqual([]);
    });

    test("a status and headers from SQL", async () => {
      expect((await fixture.from("watched").insert({ id: 91, name: "told" }).rollback()).status).toBe(299);
      expect(await fixture.from("watched").insert({ id: 91, name: "teapot" })).toMatchObject({
        status: 418,
        error: { code: "TEA", message: "short and stout", details: "a teapot", hint: "tip me over" },
      });
    });
  });

  describe("functions", () => {
    test("return scalars, rows, lists and nothing", async () => {
      expect((await fixture.rpc("add", { a: 1, b: 2 })).data).toBe(3);
      expect((await fixture.rpc("greet")).data).toBe("hello");
      expect((await fixture.rpc("greet", { name: "you", times: 2 })).data).toBe("hello youhello you");
      expect((await fixture.rpc("series", { up_to: 3 })).data).toEqual([1, 2, 3]);
      expect((await fixture.rpc("divide", { n: 7, d: 2 })).data).toEqual({ quotient: 3, remainder: 1 });
      expect((await fixture.rpc("join_words", { words: ["a", "b"] })).data).toBe("a+b");
      expect(await fixture.rpc("nap")).toMatchObject({ data: null, error: null, status: 204 });
      expect((await fixture.rpc("echo_json", { a: [1, { b: null }] })).data).toEqual({ a: [1, { b: null }] });
    });

    test("by GET and HEAD, counted", async () => {
      expect((await fixture.rpc("add", { a: 1, b: 2 }, { get: true })).data).toBe(3);
      expect((await fixture.rpc("count_list", { list: [1, 2, 3] }, { get: true })).data).toBe(3);
      expect(await fixture.rpc("series", { up_to: 5 }, { head: true, count: "exact" })).toMatchObject({
        data: null,
        count: 5,
      });
      expect((await fixture.rpc("series", { up_to: 5 }, { count: "exact" }).range(0, 1)).count).toBe(5);
      expect((await fixture.rpc("write_item", { name: "x" }, { get: true })).error).toMatchObject({ code: "25006" });
    });

    test("rows of a function have the options of a table's", async () => {
      const { data } = await fixture
        .rpc("works_by", { artist: 1 })
        .select("title, artists(name)")
        .gt("year", 1880)
        .order("title")
        .limit(1)
        .single();
      expect(data).toEqual({ title: "Water Lilies", artists: { name: "Claude" } });
    });

    test("an unknown function is refused with the name of a similar one", async () => {
      const { error, status } = await fixture.rpc("gret");
      expect(status).toBe(404);
      expect(error).toMatchObject({ code: "PGRST202", hint: "Perhaps you meant to call the function api.greet" });
    });
  });
});

async function run(database: TestDatabase, statement: string): Promise<unknown[]> {
  const client = new pg.Client({ connectionString: database.ownerUrl });
  await client.connect();
  try {
    return (await client.query(statement)).rows;
  } finally {
    await client.end();
  }
}
