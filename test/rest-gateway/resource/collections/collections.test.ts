import { beforeAll, describe, expect, test } from "vitest";
import { useFixture } from "../../../fixture.ts";
import { openResources, type Resources, type Sent } from "../open-resources.ts";

let ask: Resources["ask"];
let ada: number;
let eve: number;

const resources = useFixture(openResources);
beforeAll(async () => {
  ask = resources.ask;
  ada = await resources.addUser("Ada");
  eve = await resources.addUser("Eve");
  await resources.owner.query(
    `insert into articles (title, content, status, tags, author_id)
       select 'Title ' || n, 'About postgres and number ' || n,
         (array['DRAFT', 'PUBLISHED', 'ARCHIVED'])[n % 3 + 1]::article_status, array['all', 'tag' || n % 2],
         case when n % 2 = 0 then $1 else $2 end::bigint
       from generate_series(1, 30) as n`,
    [ada, eve],
  );
  await resources.owner.query(
    "insert into comments (article_id, content, author_id) select 1 + n % 3, 'Comment ' || n, $1 from generate_series(0, 8) as n",
    [eve],
  );
  await resources.owner.query(
    "insert into article_translations values (1, 'de', 'Titel eins'), (1, 'pt-BR', 'Título um')",
  );
});

const codeOf = ({ status, body }: { status: number; body: { error: { code: string } } }) => [status, body.error.code];
const idsOf = ({ body }: { body: { data: { id: number }[] } }) => body.data.map(({ id }) => id);
// biome-ignore lint/suspicious/noExplicitAny: rows of any table.
type Row = any;

describe("lists", () => {
  test("are in the envelope, twenty to a page, in the order of the key", async () => {
    const { status, body } = await ask("/api/v1/articles");
    expect(status).toBe(200);
    expect(body.data.map(({ id }: Row) => id)).toEqual(Array.from({ length: 20 }, (_, index) => index + 1));
    expect(body.pagination).toEqual({ page: 1, limit: 20, total: 30, totalPages: 2 });
    expect(body.links).toEqual({
      first: "/api/v1/articles?page=1&limit=20",
      prev: null,
      next: "/api/v1/articles?page=2&limit=20",
      last: "/api/v1/articles?page=2&limit=20",
    });
  });

  test("links keep the other parameters, and never contain a key", async () => {
    const { body } = await ask("/api/v1/articles?status=DRAFT&limit=4&sort=title:desc");
    expect(body.links.next).toBe("/api/v1/articles?status=DRAFT&limit=4&sort=title%3Adesc&page=2");
    expect((await ask(body.links.next)).body.links.prev).toContain("page=1");
  });

  test("skip and limit return the simpler envelope", async () => {
    const { body } = await ask("/api/v1/articles?skip=28&limit=5");
    expect([idsOf({ body }), body.pagination]).toEqual([[29, 30], { skip: 28, limit: 5, total: 30 }]);
  });

  test("a page after the last is empty", async () => {
    const { status, body } = await ask("/api/v1/articles?page=9");
    expect([status, body.data, body.links.next, body.links.prev]).toEqual([
      200,
      [],
      null,
      "/api/v1/articles?page=2&limit=20",
    ]);
  });

  test("filters by any field, by the author, and by any of several values", async () => {
    const only = async (query: string) => (await ask(`/api/v1/articles?limit=100&${query}`)).body.data as Row[];
    expect((await only("status=PUBLISHED")).every(({ status }) => status === "PUBLISHED")).toBe(true);
    expect((await only("status=PUBLISHED&status=DRAFT")).length).toBe(20);
    expect((await only(`author=${ada}`)).every(({ author_id }) => author_id === ada)).toBe(true);
    expect((await only(`author=${ada}`)).length).toBe(15);
    expect(await only(`author_id=${ada}&status=DRAFT`)).toEqual(await only(`author=${ada}&status=DRAFT`));
    expect((await only("tags=tag1")).length).toBe(15);
    expect((await only("title=Title%207"))[0].id).toBe(7);
    expect(codeOf(await ask("/api/v1/articles?status=LOST"))).toEqual([400, "VALIDATION_ERROR"]);
    expect(codeOf(await ask("/api/v1/articles?created_at=yesterday-ish"))).toEqual([400, "VALIDATION_ERROR"]);
  });

  test("sorts by several fields, in both syntaxes, with the key as the last one", async () => {
    const sorted = (await ask("/api/v1/articles?sort=status:desc,title:asc&limit=30&fields=id,status,title")).body.data;
    const expected = [...sorted].sort(
      (a: Row, b: Row) => order(b.status) - order(a.status) || (a.title < b.title ? -1 : 1),
    );
    expect(sorted).toEqual(expected);
    const byStatus = (await ask("/api/v1/articles?sort=status&order=desc&limit=30")).body.data;
    expect(byStatus[0].status).toBe("ARCHIVED");
    function order(status: string) {
      return ["DRAFT", "PUBLISHED", "ARCHIVED"].indexOf(status);
    }
  });

  test("fields are selected, dotted ones from relations", async () => {
    const { body } = await ask("/api/v1/articles?fields=id,author.name,comments.content&limit=2&sort=id");
    expect(body.data[0]).toEqual({
      id: 1,
      author: { name: "Eve" },
      comments: ["Comment 0", "Comment 3", "Comment 6"].map((content) => ({ content })),
    });
    expect((await ask("/api/v1/comments?fields=article.author.name&limit=1")).body.data).toEqual([
      { article: { author: { name: "Eve" } } },
    ]);
    expect((await ask("/api/v1/articles?fields=author&limit=1")).body.data[0].author).toMatchObject({
      id: eve,
      name: "Eve",
    });
    expect((await ask("/api/v1/articles?fields=author.nmae")).body.error.message).toContain('"name"');
    expect((await ask("/api/v1/articles?fields=author.name.x")).status).toBe(400);
    expect((await ask("/api/v1/articles?fields=")).status).toBe(400);
  });

  test("keyword searches with the search function of the database", async () => {
    const found = await ask("/api/v1/articles?keyword=number%2017");
    expect(idsOf(found)).toEqual([17]);
    expect((await ask("/api/v1/articles?keyword=POSTGR&limit=3")).body.pagination.total).toBe(30);
    expect(idsOf(await ask("/api/v1/articles?keyword="))).toEqual([]);
    expect(idsOf(await ask(`/api/v1/articles?keyword=postgres&author=${ada}&status=DRAFT&limit=100`)).length).toBe(5);
  });

  test("an unknown parameter is refused by its name", async () => {
    const response = await ask("/api/v1/articles?statsu=DRAFT");
    expect(codeOf(response)).toEqual([400, "VALIDATION_ERROR"]);
    expect(response.body.error.details).toEqual([{ field: "statsu", message: expect.stringContaining('"status"') }]);
    expect(codeOf(await ask("/api/v1/article"))).toEqual([404, "RESOURCE_NOT_FOUND"]);
    expect(codeOf(await ask("/api/v1/articles/1/authors"))).toEqual([404, "RESOURCE_NOT_FOUND"]);
  });
});

describe("rows", () => {
  const body = { title: "A new one", content: "Words", tags: ["a"] };
  const create = async (as: number) => (await ask("/api/v1/articles", { method: "POST", body, as })).body;

  test("are created by the signed-in user, and belong to it", async () => {
    const { status, headers, body: made } = await ask("/api/v1/articles", { method: "POST", body, as: ada });
    expect(status).toBe(201);
    expect(made).toMatchObject({ ...body, status: "DRAFT", author_id: ada, updated_at: null });
    expect(headers.get("location")).toBe(`/api/v1/articles/${made.id}`);
    const anonymous = await ask("/api/v1/articles", { method: "POST", body });
    expect([...codeOf(anonymous), anonymous.headers.get("www-authenticate")]).toEqual([401, "AUTH_REQUIRED", "Bearer"]);
    const wrong = await ask("/api/v1/articles", { headers: { Authorization: "Bearer nonsense" } });
    expect(codeOf(wrong)).toEqual([401, "INVALID_TOKEN"]);
  });

  test("a violated constraint is 422 with the field and the constraint's own message", async () => {
    const response = await ask("/api/v1/articles", { method: "POST", body: { ...body, title: "Tiny" }, as: ada });
    expect(codeOf(response)).toEqual([422, "VALIDATION_ERROR"]);
    expect(response.body.errors).toEqual([{ field: "title", message: "Give a title of at least 5 characters." }]);
    const { id } = await create(ada);
    const patched = await ask(`/api/v1/articles/${id}`, { method: "PATCH", body: { title: "Tiny" }, as: ada });
    expect([patched.status, patched.body.errors.length]).toEqual([422, 1]);
  });

  test("a PATCH without changes requires the right to update the row, and leaves it as it is", async () => {
    const { id } = await create(ada);
    const before = (await ask(`/api/v1/articles/${id}`)).body;
    const patch = (body: object, as?: Sent["as"]) =>
      ask(`/api/v1/articles/${id}`, { method: "PATCH", body, ...(as !== undefined && { as }) });
    for (const body of [{}, { author_id: 77 }]) {
      expect(codeOf(await patch(body, eve)), JSON.stringify(body)).toEqual([403, "PERMISSION_DENIED"]);
      expect(codeOf(await patch(body))).toEqual([401, "AUTH_REQUIRED"]);
      const own = await patch(body, ada);
      expect([own.status, own.body]).toEqual([200, before]);
    }
    const administrator = await patch({}, { sub: "999", role: "admin" });
    expect([administrator.status, administrator.body]).toEqual([200, before]);
    expect(codeOf(await ask("/api/v1/articles/999999", { method: "PATCH", body: {}, as: eve }))).toEqual([
      404,
      "RESOURCE_NOT_FOUND",
    ]);
    expect((await ask(`/api/v1/articles/${id}`)).body).toEqual(before);
  });

  test("PUT replaces the writable fields: null, or the default, or 400 for required ones", async () => {
    const { id, created_at } = (
      await ask("/api/v1/articles", {
        method: "POST",
        body: { ...body, status: "ARCHIVED", summary: "Short" },
        as: ada,
      })
    ).body;
    const put = (sent: object) => ask(`/api/v1/articles/${id}`, { method: "PUT", body: sent, as: ada });
    const { status, body: after } = await put({ title: "Another", content: "New" });
    expect(status).toBe(200);
    expect(after).toMatchObject({
      title: "Another",
      status: "DRAFT",
      tags: [],
      summary: null,
      author_id: ada,
      created_at,
    });
    const incomplete = await put({ title: "Another" });
    expect(incomplete.status).toBe(400);
    expect(incomplete.body.error.details).toEqual([{ field: "content", message: expect.any(String) }]);
  });

  test("a merge patch is accepted, and a JSON Patch is refused", async () => {
    const { id } = await create(ada);
    const patch = (type: string, sent: unknown) =>
      ask(`/api/v1/articles/${id}`, { method: "PATCH", body: sent, as: ada, headers: { "Content-Type": type } });
    const { status, body: after } = await patch("application/merge-patch+json", { summary: null, title: "Merged" });
    expect([status, after.title, after.summary]).toEqual([200, "Merged", null]);
    for (const sent of [[{ op: "replace", path: "/title", value: "Patched" }], { title: "Patched" }]) {
      expect(codeOf(await patch("application/json-patch+json", sent))).toEqual([415, "UNSUPPORTED_MEDIA_TYPE"]);
    }
    expect((await ask(`/api/v1/articles/${id}`)).body.title).toBe("Merged");
  });

  test("only their author and administrators change or delete them", async () => {
    const { id } = await create(ada);
    const path = `/api/v1/articles/${id}`;
    const patch = (as?: number) =>
      ask(path, { method: "PATCH", body: { content: "x" }, ...(as !== undefined && { as }) });
    expect(codeOf(await patch())).toEqual([401, "AUTH_REQUIRED"]);
    expect(codeOf(await patch(eve))).toEqual([403, "PERMISSION_DENIED"]);
    expect(codeOf(await ask(path, { method: "DELETE", as: eve }))).toEqual([403, "PERMISSION_DENIED"]);
    expect((await patch(ada)).status).toBe(200);
    expect((await ask(path, { method: "DELETE", as: { role: "admin", sub: String(eve) } })).status).toBe(204);
    expect(codeOf(await patch(ada))).toEqual([404, "RESOURCE_NOT_FOUND"]);
  });

  test("an array creates several, all or none of them", async () => {
    const rows = [
      { ...body, status: "PUBLISHED" },
      { title: "Second one", content: "Words" },
    ];
    const { status, body: made } = await ask("/api/v1/articles", { method: "POST", body: rows, as: ada });
    expect([status, made.map(({ title, status }: Row) => [title, status])]).toEqual([
      201,
      [
        ["A new one", "PUBLISHED"],
        ["Second one", "DRAFT"],
      ],
    ]);
    const before = (await ask("/api/v1/articles")).body.pagination.total;
    const half = await ask("/api/v1/articles", { method: "POST", body: [body, { ...body, title: "No" }], as: ada });
    expect(half.status).toBe(422);
    const unfit = await ask("/api/v1/articles", { method: "POST", body: [body, { ...body, title: 5 }], as: ada });
    expect(unfit.body.error.details).toEqual([{ field: "1.title", message: expect.any(String) }]);
    expect((await ask("/api/v1/articles", { method: "POST", body: [], as: ada })).status).toBe(400);
    const many = Array.from({ length: 1001 }, () => body);
    expect((await ask("/api/v1/articles", { method: "POST", body: many, as: ada })).status).toBe(400);
    expect((await ask("/api/v1/articles")).body.pagination.total).toBe(before);
  });

  test("a key of two columns has both in the path", async () => {
    const { status, body: row } = await ask("/api/v1/article-translations/1,pt-BR");
    expect([status, row.title]).toEqual([200, "Título um"]);
    expect((await ask("/api/v1/article-translations/1,fr")).status).toBe(404);
    expect(codeOf(await ask("/api/v1/article-translations/1"))).toEqual([400, "INVALID_ID"]);
    const sent = { article_id: 2, language: "de", title: "Titel zwei" };
    const made = await ask("/api/v1/article-translations", { method: "POST", body: sent, as: ada });
    expect([made.status, made.headers.get("location")]).toEqual([201, "/api/v1/article-translations/2,de"]);
    const again = await ask("/api/v1/article-translations", { method: "POST", body: sent, as: ada });
    expect(codeOf(again)).toEqual([409, "RESOURCE_CONFLICT"]);
  });
});

describe("nesting", () => {
  test("lists the rows that belong to a row, and no others", async () => {
    const { status, body } = await ask("/api/v1/articles/2/comments?sort=id");
    expect([status, body.data.map(({ content }: Row) => content)]).toEqual([
      200,
      ["Comment 1", "Comment 4", "Comment 7"],
    ]);
    expect(body.links.first).toBe("/api/v1/articles/2/comments?sort=id&page=1&limit=20");
    expect((await ask("/api/v1/articles/9/comments")).body.data).toEqual([]);
    expect(codeOf(await ask("/api/v1/articles/99999/comments"))).toEqual([404, "RESOURCE_NOT_FOUND"]);
    expect((await ask(`/users/${eve}/comments?limit=2`)).body.data.length).toBe(2);
    expect(codeOf(await ask("/users/99999/comments"))).toEqual([404, "USER_NOT_FOUND"]);
  });

  test("a nested row must belong to its parent", async () => {
    expect((await ask("/api/v1/articles/2/comments/2")).body.content).toBe("Comment 1");
    expect(codeOf(await ask("/api/v1/articles/1/comments/2"))).toEqual([404, "RESOURCE_NOT_FOUND"]);
    expect((await ask(`/api/v1/users/${ada}/articles/2/comments/2`)).status).toBe(200);
    expect((await ask(`/api/v1/users/${eve}/articles/2/comments/2`)).status).toBe(404);
    expect((await ask(`/api/v1/users/${ada}/articles/2/comments`)).body.data.length).toBe(3);
    expect((await ask(`/api/v1/users/${eve}/articles/2/comments`)).status).toBe(404);
    expect((await ask(`/api/v1/users/${ada}/articles/2/comments/2/replies`)).status).toBe(404);
  });

  test("a row that is posted to a nested collection refers to the parent", async () => {
    const post = (path: string, body: object, as?: number) =>
      ask(path, { method: "POST", body, ...(as !== undefined && { as }) });
    const { status, headers, body } = await post(
      "/api/v1/articles/3/comments",
      { content: "Well", article_id: 1 },
      ada,
    );
    expect([status, body.article_id, body.author_id]).toEqual([201, 3, ada]);
    expect((await ask(headers.get("location")!)).body.content).toBe("Well");
    expect(codeOf(await post("/api/v1/articles/99999/comments", { content: "x" }, ada))).toEqual([
      404,
      "RESOURCE_NOT_FOUND",
    ]);
    expect(codeOf(await post(`/api/v1/users/${eve}/articles/2/comments`, { content: "x" }, ada))).toEqual([
      404,
      "RESOURCE_NOT_FOUND",
    ]);
    expect((await post(`/api/v1/users/${ada}/articles/2/comments`, { content: "x" }, ada)).status).toBe(201);
    expect(codeOf(await post("/api/v1/articles/3/comments", { content: "x" }))).toEqual([401, "AUTH_REQUIRED"]);
  });

  test("a row whose owner column the caller may not set is created in the caller's own collection only", async () => {
    const body = { title: "Mine, mine", content: "x" };
    const before = (await ask(`/api/v1/users/${eve}/articles`)).body.pagination.total;
    expect((await ask(`/api/v1/users/${ada}/articles`, { method: "POST", body, as: ada })).body.author_id).toBe(ada);
    const others = await ask(`/api/v1/users/${eve}/articles`, { method: "POST", body, as: ada });
    expect(codeOf(others)).toEqual([403, "PERMISSION_DENIED"]);
    expect((await ask(`/api/v1/users/${eve}/articles`)).body.pagination.total).toBe(before);
    expect(
      (await ask(`/api/v1/articles?author=${ada}&title=${encodeURIComponent(body.title)}`)).body.pagination.total,
    ).toBe(1);
  });

  test("a nested row is changed and deleted under its parent only", async () => {
    const { id } = (await ask("/api/v1/articles/1/comments", { method: "POST", body: { content: "Hm" }, as: ada }))
      .body;
    const patch = (path: string) => ask(path, { method: "PATCH", body: { content: "Oh" }, as: ada });
    expect((await patch(`/api/v1/articles/2/comments/${id}`)).status).toBe(404);
    expect((await patch(`/api/v1/articles/1/comments/${id}`)).body.content).toBe("Oh");
    expect((await ask(`/api/v1/articles/2/comments/${id}`, { method: "DELETE", as: ada })).status).toBe(404);
    expect((await ask(`/api/v1/articles/1/comments/${id}`, { method: "DELETE", as: ada })).status).toBe(204);
  });
});

describe("actions", () => {
  test("publish publishes the caller's own article", async () => {
    const draft = { title: "To be published", content: "x" };
    const { id } = (await ask("/api/v1/articles", { method: "POST", body: draft, as: ada })).body;
    const publish = (as?: number) =>
      ask(`/api/v1/articles/${id}/publish`, { method: "POST", ...(as !== undefined && { as }) });
    expect(codeOf(await publish())).toEqual([401, "AUTH_REQUIRED"]);
    expect(codeOf(await publish(eve))).toEqual([403, "PERMISSION_DENIED"]);
    const { status, body } = await publish(ada);
    expect([status, body]).toMatchObject([200, { id, status: "PUBLISHED", author_id: ada }]);
    expect((await ask(`/api/v1/articles/${id}`)).body).toEqual(body);
    expect((await ask("/api/v1/articles/99999/publish", { method: "POST", as: ada })).status).toBe(404);
    const got = await ask(`/api/v1/articles/${id}/publish`);
    expect([...codeOf(got), got.headers.get("allow")]).toEqual([405, "METHOD_NOT_ALLOWED", "OPTIONS, POST"]);
  });
});

describe("hypermedia", () => {
  test("shows for each row the operations that the caller may use", async () => {
    const rows = (
      await resources.owner.query<{ id: string; author_id: string }>(
        "select id, author_id from articles order by id limit 20",
      )
    ).rows;
    expect(new Set(rows.map(({ author_id }) => author_id)).size).toBe(2);
    const kinds = ["update", "delete", "publish"];
    const linksFor = async (as?: Sent["as"]) => {
      const { body } = await ask("/api/v1/articles?links=true&sort=id", { ...(as !== undefined && { as }) });
      return body.data.map((row: { author_id: number; _links: object }) => [
        row.author_id,
        kinds.filter((kind) => kind in row._links),
      ]);
    };
    for (const user of [ada, eve]) {
      expect(await linksFor(user)).toEqual(
        rows.map(({ author_id }) => [Number(author_id), Number(author_id) === user ? kinds : []]),
      );
    }
    expect(await linksFor()).toEqual(rows.map(({ author_id }) => [Number(author_id), []]));
    for (const everything of [{ role: "service_role" }, { sub: "999", role: "admin" }]) {
      expect(await linksFor(everything)).toEqual(rows.map(({ author_id }) => [Number(author_id), kinds]));
    }
    const other = rows.find(({ author_id }) => Number(author_id) === eve)!;
    const one = await ask(`/api/v1/articles/${other.id}`, { as: ada, headers: { Accept: "application/hal+json" } });
    expect(Object.keys(one.body._links)).not.toEqual(expect.arrayContaining(["update"]));
  });

  test("shows all callers what all may do, and nothing by a policy that the caller could not write", async () => {
    expect((await ask("/users/1?links=true")).body._links).toMatchObject({ update: {}, delete: {} });
    await resources.owner.query(`
      create table public.doors (id int primary key, word text);
      insert into public.doors values (1, 'open');
      create function content_service.is_open(word text) returns boolean language sql stable as $$ select word = 'open' $$;
      grant execute on function content_service.is_open to anon;
      alter table public.doors enable row level security;
      create policy read on public.doors for select using (true);
      create policy change on public.doors for update using (content_service.is_open(word));
      create policy remove on public.doors for delete using (word = 'open');
      grant select, update, delete on public.doors to anon`);
    await resources.seen("/api/v1/doors/1");
    const { status, body } = await ask("/api/v1/doors/1?links=true");
    expect([status, Object.keys(body._links).sort()]).toEqual([200, ["delete", "self"]]);
    expect((await ask("/api/v1/doors/1", { method: "PATCH", body: { word: "open" } })).status).toBe(200);
    await resources.owner.query("update public.doors set word = 'shut'");
    expect(Object.keys((await ask("/api/v1/doors/1?links=true")).body._links)).toEqual(["self"]);
  });

  test("shows for a new row the operations that its author may use", async () => {
    const made = await ask("/api/v1/articles?links=true", {
      method: "POST",
      body: { title: "With links", content: "x" },
      as: ada,
    });
    expect(made.body._links).toMatchObject({ update: {}, delete: {}, publish: {} });
    const several = await ask("/api/v1/articles?links=true", {
      method: "POST",
      body: [{ title: "With links", content: "x" }],
      headers: { "Idempotency-Key": "links-of-several" },
      as: ada,
    });
    expect(several.body[0]._links).toMatchObject({ update: {}, delete: {} });
  });

  test.each([
    ["?links=true", "*/*", "application/json"],
    ["", "application/hal+json", "application/hal+json"],
  ])("_links of a row link to related resources (%s, %s)", async (query, accept, type) => {
    const response = await ask(`/api/v1/articles/2${query}`, { headers: { Accept: accept }, as: ada });
    expect(response.body).toMatchObject({ id: 2, title: "Title 2" });
    expect(response.body._links).toEqual({
      self: { href: "/api/v1/articles/2" },
      author: { href: `/api/v1/users/${ada}` },
      "article-translations": { href: "/api/v1/articles/2/article-translations" },
      comments: { href: "/api/v1/articles/2/comments" },
      update: { href: "/api/v1/articles/2", method: "PUT" },
      delete: { href: "/api/v1/articles/2", method: "DELETE" },
      publish: { href: "/api/v1/articles/2/publish", method: "POST" },
    });
    expect(response.headers.get("content-type")).toBe(`${type}; charset=utf-8`);
  });

  test("lists have them in each row, and only those that the caller may use", async () => {
    const { body } = await ask("/api/v1/articles?links=true&limit=1&fields=id");
    expect(body.data[0]._links).toMatchObject({ self: { href: "/api/v1/articles/1" } });
    expect(body.data[0]._links).not.toHaveProperty("delete");
    expect((await ask("/users/1?links=true")).body._links.self).toEqual({ href: "/users/1" });
    expect((await ask("/api/v1/articles/1")).body).not.toHaveProperty("_links");
  });
});

describe("HTTP", () => {
  test("HEAD returns the headers of GET, without the body", async () => {
    for (const path of ["/api/v1/articles", "/api/v1/articles/1", "/users"]) {
      const [got, head] = [await ask(path), await ask(path, { method: "HEAD" })];
      expect([head.status, head.text]).toEqual([200, ""]);
      for (const name of ["content-length", "content-type", "etag", "last-modified", "cache-control", "vary"]) {
        expect([name, head.headers.get(name)]).toEqual([name, got.headers.get(name)]);
      }
    }
  });

  test("OPTIONS and 405 list the methods", async () => {
    const allow = async (path: string) => (await ask(path, { method: "OPTIONS" })).headers.get("allow");
    expect(await allow("/api/v1/articles")).toBe("GET, HEAD, OPTIONS, POST");
    expect(await allow("/users/1")).toBe("DELETE, GET, HEAD, OPTIONS, PATCH, PUT");
    for (const [method, path] of [
      ["DELETE", "/users"],
      ["PUT", "/api/v1/articles"],
      ["POST", "/users/1"],
    ] as const) {
      const response = await ask(path, { method });
      expect(codeOf(response)).toEqual([405, "METHOD_NOT_ALLOWED"]);
      expect(response.headers.get("allow")).toBe(await allow(path));
    }
  });

  test("a trailing slash, upper case and underscores redirect permanently, for reads", async () => {
    for (const [path, canonical] of [
      ["/users/", "/users"],
      ["/Users/1?fields=id", "/users/1?fields=id"],
      ["/API/V1/Articles/", "/api/v1/articles"],
      ["/api/v1/article_translations/1,pt-BR", "/api/v1/article-translations/1,pt-BR"],
    ]) {
      const { status, headers } = await ask(path!);
      expect([status, headers.get("location")]).toEqual([301, canonical]);
    }
    const post = await ask("/users/", { method: "POST", body: { name: "Ada", email: "slash@example.org" } });
    expect(codeOf(post)).toEqual([404, "RESOURCE_NOT_FOUND"]);
    expect((await ask("/users?email=slash@example.org")).body).toEqual([]);
  });

  test("a media type other than JSON is 406", async () => {
    expect(codeOf(await ask("/users", { headers: { Accept: "text/csv" } }))).toEqual([406, "NOT_ACCEPTABLE"]);
    expect(codeOf(await ask("/users", { headers: { Accept: "application/json;q=0" } }))).toEqual([
      406,
      "NOT_ACCEPTABLE",
    ]);
    const browser = { Accept: "text/html,application/xhtml+xml,*/*;q=0.8" };
    expect((await ask("/users", { headers: browser })).status).toBe(200);
  });

  test("responses to signed-in callers are private, and every response varies by the credentials", async () => {
    expect((await ask("/users")).headers.get("cache-control")).toBe("no-cache");
    expect((await ask("/users", { as: ada })).headers.get("cache-control")).toBe("private, no-cache");
    expect((await ask("/users")).headers.get("vary")).toContain("Authorization");
    const refused = ["/users/999999", "/users/x", "/api/v1/nothing", "/users/", "/api/v9/users"];
    for (const path of refused) {
      const { headers } = await ask(path, { as: ada });
      expect([path, headers.get("cache-control")]).toEqual([path, "private, no-cache"]);
      expect(headers.get("vary")).toContain("X-API-Version");
    }
    const unknown = await ask("/users", { headers: { Authorization: "Bearer of.bad.news" } });
    expect([unknown.status, unknown.headers.get("cache-control")]).toEqual([401, "private, no-cache"]);
    expect(unknown.headers.get("vary")).toContain("Authorization");
    expect((await ask("/users", { headers: { "X-Request-Id": "mine-1" } })).headers.get("x-request-id")).toBe("mine-1");
  });

  test("an error has the documented envelope", async () => {
    const { body, headers } = await ask("/api/v1/articles/999999");
    expect(body).toEqual({
      error: {
        code: "RESOURCE_NOT_FOUND",
        message: expect.any(String),
        details: [],
        requestId: headers.get("x-request-id"),
        timestamp: expect.any(String),
        documentation: expect.any(String),
      },
    });
  });
});
