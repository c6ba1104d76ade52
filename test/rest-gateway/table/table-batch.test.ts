import { randomUUID } from "node:crypto";
import { beforeEach, describe, expect, test } from "vitest";
import { useClient, useDatabase } from "../../database.ts";
import { useFixture } from "../../fixture.ts";
import { serve, useService } from "../../serve.ts";
import { openClient, type TestRequest } from "./client.ts";

const SCHEMA = `
  create schema shop;
  create schema other;
  create table shop.orders (
    id bigint generated always as identity primary key, item text not null check (item <> 'refused'), amount numeric default 1,
    seen text default current_setting('request.method', true) || ' ' || current_setting('request.path', true)
  );
  create table shop.lines (
    id bigint generated always as identity primary key, order_id bigint references shop.orders on delete cascade, sku text, document jsonb
  );
  create table shop.labels (name text constraint label_taken unique deferrable initially deferred);
  create table shop.files (name text primary key, content bytea);
  create table other.orders (id int primary key);
  create table shop.visits (path text);
  create function shop.total() returns numeric stable language sql as 'select sum(amount) from shop.orders';
  create function shop.teapot() returns text language sql as $$
    select set_config('response.status', '418', true), set_config('response.headers', '[{"X-Pot": "tea"}]', true); select 'short'; $$;
  create domain shop."text/plain" as text;
  create domain shop."application/octet-stream" as bytea;
  create function shop.hello() returns shop."text/plain" language sql as $$ select 'hello, wörld'::shop."text/plain" $$;
  create function shop.picture() returns shop."application/octet-stream" language sql
    as $$ select '\\x89504eff'::shop."application/octet-stream" $$;
  create function shop.add_order() returns text language sql as $$ insert into shop.orders (item) values ('added') returning item $$;
  create function shop.add_by_another() returns text stable language plpgsql as $$ begin return shop.add_order(); end $$;
  create function shop.long() returns text stable language sql as $$ select repeat('%', 1000000) $$;
  create domain shop."application/vnd.half+json" as text;
  create function shop.half() returns shop."application/vnd.half+json" stable language sql
    as $$ select '{"name": "\\ud800"}'::shop."application/vnd.half+json" $$;
  create function shop.zone() returns text stable language sql as $$ select current_setting('timezone') $$;
  create function shop.become() returns text language sql as $$ select set_config('role', 'anon', true) $$;
  create function shop.who() returns text stable language sql as $$ select current_user::text $$;
  create function shop.check_request() returns void language plpgsql as $$ begin
    if current_setting('request.path', true) = '/labels' then raise 'not this path' using errcode = '42501'; end if;
    insert into shop.visits values (current_setting('request.path', true));
  end $$;
  grant usage on schema shop, other to authenticated, anon;
  grant all on all tables in schema shop, other to authenticated;
  grant execute on all functions in schema shop to authenticated, anon;
  grant select on shop.orders to anon;
  grant usage on all sequences in schema shop to authenticated;
`;

const SETTINGS = {
  PGRST_DB_SCHEMAS: "shop,other",
  PGRST_DB_TX_END: "commit-allow-override",
  BATCH_MAX: "30",
};

const database = useDatabase({ sql: SCHEMA });
const owner = useClient(database.ownerUrl);
const service = useService({ database, settings: SETTINGS });
const client = useFixture(() => openClient(service.url, { as: { role: "authenticated" } }));

beforeEach(async () => {
  await owner.query(
    "truncate shop.orders, shop.lines, shop.labels, shop.files, shop.visits, other.orders restart identity",
  );
});

type Part = { method: string; path: unknown; headers?: object; body?: unknown };

const RETURNED = { Prefer: "return=representation" };
const BATCH_TYPE = "application/vnd.batch+json";

const send = (parts: unknown, { headers, ...request }: TestRequest = {}, on = client) =>
  on.ask("/", {
    method: "POST",
    body: typeof parts === "string" ? parts : JSON.stringify(parts),
    ...request,
    headers: { "Content-Type": BATCH_TYPE, ...headers },
  });
const insert = (item: string, headers: object = RETURNED): Part => ({
  method: "POST",
  path: "/orders?select=id,item",
  headers,
  body: { item },
});
const items = async () => (await owner.query("select item from shop.orders order by id")).rows.map(({ item }) => item);

describe("a batch", () => {
  test("runs its requests in order, and returns the response of each", async () => {
    const { status, headers, body } = await send([
      insert("a"),
      { method: "PATCH", path: "/orders?item=eq.a", body: { amount: 3 }, headers: { Prefer: "count=exact" } },
      { method: "GET", path: "/orders?select=item,amount" },
      { method: "POST", path: "/rpc/total" },
      { method: "DELETE", path: "/orders?item=eq.a" },
      { method: "GET", path: "/rpc/total" },
    ]);
    expect([status, headers["content-type"]]).toEqual([200, BATCH_TYPE]);
    expect(body).toMatchObject([
      { status: 201, headers: { "Preference-Applied": "return=representation" }, body: [{ id: 1, item: "a" }] },
      { status: 204, headers: { "Content-Range": "0-0/1" }, body: null },
      { status: 200, headers: { "Content-Type": "application/json; charset=utf-8" }, body: [{ item: "a", amount: 3 }] },
      { status: 200, body: 3 },
      { status: 204, body: null },
      { status: 200, body: null },
    ]);
    expect(await items()).toEqual([]);
  });

  test("takes full paths, profiles, media types and all other headers of requests", async () => {
    const { body } = await send([
      { method: "POST", path: "/rest/v1/orders?columns=item", body: [{ item: "a" }, { item: "b", amount: 9 }] },
      {
        method: "GET",
        path: "/orders?select=item&order=item.desc",
        headers: { accept: "text/csv", RANGE: "0-0", "Range-Unit": "items" },
      },
      { method: "POST", path: "/orders", headers: { "Content-Type": "text/csv" }, body: "item,amount\nc,5\nd,NULL" },
      { method: "POST", path: "/orders", headers: { "Content-Profile": "other" }, body: { id: 7 } },
      { method: "GET", path: "/orders", headers: { "Accept-Profile": "other" } },
      { method: "GET", path: "/orders?item=eq.d", headers: { Accept: "application/vnd.pgrst.object+json" } },
      { method: "GET", path: "/orders?select=id", headers: { Prefer: "count=planned" } },
    ]);
    expect(body).toMatchObject([
      { status: 201 },
      { status: 200, headers: { "Content-Range": "0-0/*" }, body: "item\nb" },
      { status: 201 },
      { status: 201 },
      { status: 200, headers: { "Content-Profile": "other" }, body: [{ id: 7 }] },
      { status: 200, body: { item: "d", amount: null } },
      { headers: { "Content-Range": expect.stringMatching(/^0-3\/\d+$/) } },
    ]);
  });

  test("inherits the profile and the time zone of the batch", async () => {
    const zone = { method: "GET", path: "/rpc/zone", headers: { "Accept-Profile": "shop" } };
    const own = { ...zone, headers: { ...zone.headers, Prefer: "timezone=UTC" } };
    const headers = { "Content-Profile": "other", Prefer: "timezone=Asia/Tokyo" };
    const parts = [{ method: "POST", path: "/orders", body: { id: 8 } }, { method: "GET", path: "/orders" }, zone, own];
    const { body } = await send(parts, { headers });
    expect(body).toMatchObject([{ status: 201 }, { body: [{ id: 8 }] }, { body: "Asia/Tokyo" }, { body: "UTC" }]);
  });

  test("returns text as a string and bytes in base64, and JSON with all digits", async () => {
    const { text } = await send([
      { method: "POST", path: "/rpc/hello", headers: { Accept: "text/plain" } },
      { method: "POST", path: "/rpc/picture", headers: { Accept: "application/octet-stream" } },
      { method: "POST", path: "/orders?select=amount", headers: RETURNED, body: { item: "a" } },
    ]);
    expect(JSON.parse(text)).toMatchObject([
      { body: "hello, wörld" },
      { body: Buffer.from([0x89, 0x50, 0x4e, 0xff]).toString("base64"), encoding: "base64" },
      { body: [{ amount: 1 }] },
    ]);
    const exact = await send(
      '[{"method":"POST","path":"/orders?select=amount","headers":{"Prefer":"return=representation"},"body":{"item":"a","amount":12345678901234567890.10}}]',
    );
    expect(exact.text).toContain('"body":[{"amount":12345678901234567890.10}]');
  });

  test("shows SQL the method, the path and the settings of each request", async () => {
    const { body } = await send([
      { method: "POST", path: "/orders?select=seen", headers: RETURNED, body: { item: "a" } },
      { method: "PUT", path: "/files?name=eq.f", body: { name: "f" } },
      { method: "POST", path: "/rpc/teapot" },
      { method: "POST", path: "/rpc/become" },
      { method: "POST", path: "/rpc/who" },
    ]);
    expect(body).toMatchObject([
      { status: 201, body: [{ seen: "POST /orders" }] },
      { status: 204 },
      { status: 418, headers: { "X-Pot": "tea" }, body: "short" },
      { status: 200, body: "anon" },
      { status: 200, body: "authenticated" },
    ]);
    expect(body[3].headers["X-Pot"]).toBeUndefined();
  });

  test("writes nothing by requests that only read, as single requests do not", async () => {
    const read = { method: "GET", path: "/orders" };
    for (const part of [
      { method: "GET", path: "/rpc/add_order" },
      { method: "GET", path: "/rpc/add_by_another" },
      { method: "POST", path: "/rpc/add_by_another", body: {} },
    ]) {
      const { status, body } = await client.ask(part.path, { method: part.method, ...(part.body && { body: "{}" }) });
      expect([status, body.code]).toEqual([405, "25006"]);
      for (const parts of [[part], [insert("a"), part], [insert("a"), read, part, insert("b")]]) {
        const batch = await send(parts);
        expect([batch.status, batch.body.code, batch.body.index]).toEqual([status, "25006", parts.indexOf(part)]);
      }
    }
    expect(await items()).toEqual([]);
    const call = { method: "POST", path: "/rpc/add_order", body: {} };
    expect(await send([read, call, read, insert("b"), read])).toMatchObject({ status: 200 });
    expect(await items()).toEqual(["added", "b"]);
  });

  test("runs as its caller", async () => {
    const { status, body } = await send([insert("a")], { as: { role: "anon" } });
    expect([status, body]).toMatchObject([401, { code: "42501", index: 0 }]);
    expect(await send([{ method: "GET", path: "/orders" }], { as: { role: "anon" } })).toMatchObject({ status: 200 });
    const keyless = await fetch(`${service.url}/rest/v1/`, { method: "POST", headers: { "Content-Type": BATCH_TYPE } });
    expect(keyless.status).toBe(401);
  });

  test("has Preference-Applied and Location of inserts as single requests have them", async () => {
    const part = { method: "POST", path: "/orders", headers: { Prefer: "return=headers-only" }, body: { item: "a" } };
    const { body } = await send([part]);
    const single = await client.ask("/orders", part as TestRequest);
    const { location, "preference-applied": applied, "content-range": range } = single.headers;
    expect(body[0].headers).toMatchObject({ "Preference-Applied": applied, "Content-Range": range });
    expect([body[0].headers.Location, location]).toEqual(["/orders?id=eq.1", "/orders?id=eq.2"]);
  });

  test("inserts nested rows", async () => {
    const nested = { item: "a", lines: [{ sku: "x" }, { sku: "y" }] };
    const headers = { Prefer: "nested=insert, return=representation" };
    const part = { method: "POST", path: "/orders?select=item,lines(sku)", headers, body: nested };
    const { body } = await send([insert("first"), part, insert("last")]);
    expect(body[1]).toMatchObject({ status: 201, body: [nested] });
    expect(body[2].body).toMatchObject([{ item: "last" }]);
    const failed = await send([insert("again"), { ...part, body: { item: "b", lines: [{ sku: [] }, { id: "x" }] } }]);
    expect(failed.body).toMatchObject({ index: 1 });
    expect(await items()).toEqual(["first", "a", "last"]);
  });
});

describe("a reference", () => {
  test("stands for a value of an earlier response, in bodies and paths", async () => {
    const { body } = await send([
      insert("a b/c&d"),
      {
        method: "POST",
        path: "/lines?select=id,order_id,document",
        headers: RETURNED,
        body: [{ order_id: { $ref: "0#/0/id" }, document: { whole: { $ref: "0#/0" }, list: [{ $ref: "0#" }] } }],
      },
      { method: "GET", path: ["/lines?select=id&order_id=eq.", { $ref: "0#/0/id" }] },
      { method: "GET", path: ["/orders?select=item&item=eq.", { $ref: "0#/0/item" }, "&limit=1"] },
    ]);
    expect(body.slice(1)).toMatchObject([
      {
        status: 201,
        body: [{ id: 1, order_id: 1, document: { whole: { id: 1, item: "a b/c&d" }, list: [[{ id: 1 }]] } }],
      },
      { status: 200, body: [{ id: 1 }] },
      { status: 200, body: [{ item: "a b/c&d" }] },
    ]);
  });

  test("keeps all digits of numbers", async () => {
    const exact = "12345678901234567890.10";
    const first = `{"method":"POST","path":"/orders?select=amount","headers":{"Prefer":"return=representation"},"body":{"item":"a","amount":${exact}}}`;
    const second =
      '{"method":"POST","path":"/orders?select=amount","headers":{"Prefer":"return=representation"},"body":{"item":"b","amount":{"$ref":"0#/0/amount"}}}';
    const third = '{"method":"GET","path":["/orders?select=item&amount=eq.",{"$ref":"1#/0/amount"}]}';
    const { text, body } = await send(`[${first},${second},${third}]`);
    expect(text.split(`{"amount":${exact}}`)).toHaveLength(3);
    expect(body[2].body).toEqual([{ item: "a" }, { item: "b" }]);
  });

  test("is a JSON Pointer, whose names are escaped", async () => {
    const document = { "a/b": { "~": [10, 20] } };
    const { body } = await send([
      { method: "POST", path: "/lines?select=document", headers: RETURNED, body: { document } },
      {
        method: "POST",
        path: "/lines?select=document",
        headers: RETURNED,
        body: { document: { $ref: "0#/0/document/a~1b/~0/1" } },
      },
    ]);
    expect(body[1].body).toEqual([{ document: 20 }]);
  });

  test("is data where it has another form", async () => {
    const document = { $ref: "#/definitions/x", other: [{ $ref: "0#/0", and: 1 }] };
    const { body } = await send([
      { method: "POST", path: "/lines?select=document", headers: RETURNED, body: { document } },
    ]);
    expect(body[0].body).toEqual([{ document }]);
  });

  test.each([
    ["to a value that is not there", { $ref: "0#/1/id" }, "UNKNOWN_REFERENCE"],
    ["to the length of a list", { $ref: "0#/length" }, "UNKNOWN_REFERENCE"],
    ["to itself", { $ref: "1#" }, "INVALID_BATCH"],
    ["to a later request", { $ref: "2#/0" }, "INVALID_BATCH"],
  ])("%s is refused with the index of its request", async (_name, reference, code) => {
    const { status, body } = await send([insert("a"), { method: "POST", path: "/lines", body: { sku: reference } }]);
    expect([status, body]).toMatchObject([400, { code, index: 1 }]);
    expect(await items()).toEqual([]);
  });

  test("does not multiply long values in a path", async () => {
    const long = { method: "GET", path: "/rpc/long" };
    const path = ["/orders?item=eq.", ...Array(1_000).fill({ $ref: "0#" })];
    const { status, body } = await send([long, { method: "GET", path }]);
    expect([status, body]).toMatchObject([400, { code: "INVALID_BATCH", index: 1 }]);
  });

  test.each(["1", "1.0"])("is refused in a body with very many levels and %s", async (number) => {
    const deep = `${"[".repeat(100_000)}${number}${"]".repeat(100_000)}`;
    const line = `{"method":"POST","path":"/lines","body":{"sku":{"$ref":"0#/0/item"},"document":${deep}}}`;
    const { status, body } = await send(`[{"method":"GET","path":"/orders"},${line}]`);
    expect([status, body]).toMatchObject([400, { code: "INVALID_BATCH", index: 1 }]);
  });

  test("does not multiply large values", async () => {
    await owner.query("insert into shop.orders (item) values (repeat('x', 100000))");
    const read = { method: "GET", path: "/orders?select=item" };
    const line = (count: number) => ({
      method: "POST",
      path: "/lines",
      body: { document: Array.from({ length: count }, () => ({ $ref: "0#" })) },
    });
    expect((await send([read, line(10)])).status).toBe(200);
    const { status, body } = await send([read, line(11)]);
    expect([status, body]).toMatchObject([400, { code: "INVALID_BATCH", index: 1 }]);
    const path = { method: "GET", path: ["/orders?item=eq.", { $ref: "0#/0/item" }] };
    expect((await send([read, path])).body).toMatchObject({ code: "INVALID_BATCH", index: 1 });
    await owner.query("insert into shop.orders (item) select repeat('x', 100000) from generate_series(1, 10)");
    expect((await send([read, line(1)])).body).toMatchObject({ code: "INVALID_BATCH", index: 1 });
  });

  test("to a lone surrogate cannot be part of a path", async () => {
    const parts = [
      { method: "GET", path: "/rpc/half" },
      { method: "GET", path: ["/orders?item=eq.", { $ref: "0#/name" }] },
    ];
    expect((await send(parts)).body).toMatchObject({ code: "UNKNOWN_REFERENCE", index: 1 });
  });

  test("to null or to a list cannot be part of a path", async () => {
    for (const pointer of ["0#/0", "0#/0/amount"]) {
      const parts = [
        { method: "POST", path: "/orders", headers: RETURNED, body: { item: "a", amount: null } },
        { method: "GET", path: ["/orders?id=eq.", { $ref: pointer }] },
      ];
      expect((await send(parts)).body).toMatchObject({ code: "UNKNOWN_REFERENCE", index: 1 });
    }
  });
});

describe("a batch that fails", () => {
  test("changes nothing, wherever it fails, and returns the error of that request with its index", async () => {
    for (let failing = 0; failing < 4; failing++) {
      const parts = [0, 1, 2, 3].map((index) => insert(index === failing ? "refused" : "a"));
      const { status, headers, body } = await send(parts);
      expect([status, body]).toMatchObject([400, { code: "23514", index: failing }]);
      expect(headers["proxy-status"]).toBe("PostgREST; error=23514");
    }
    expect(await items()).toEqual([]);
  });

  test("changes nothing if a later group fails", async () => {
    const line = { method: "POST", path: "/lines", body: { order_id: { $ref: "0#/0/id" }, nothing: 1 } };
    const { status, body } = await send([insert("a"), line]);
    expect([status, body]).toMatchObject([400, { code: "PGRST204", index: 1 }]);
    expect(await items()).toEqual([]);
  });

  test("changes nothing if a deferred constraint is violated at the commit, which is no request's error", async () => {
    const label = { method: "POST", path: "/labels", body: { name: "a" } };
    const { status, body } = await send([insert("a"), label, label]);
    expect([status, body]).toMatchObject([409, { code: "23505" }]);
    expect(body).not.toHaveProperty("index");
    expect(await items()).toEqual([]);
  });

  test("changes nothing if the result of a read is refused after the writes", async () => {
    const one = { method: "GET", path: "/orders", headers: { Accept: "application/vnd.pgrst.object+json" } };
    const { status, body } = await send([insert("a"), insert("b"), one]);
    expect([status, body]).toMatchObject([406, { code: "PGRST116", index: 2 }]);
    expect(await items()).toEqual([]);
  });

  test("changes nothing if a write returns or affects more rows than it may", async () => {
    const all = { method: "PATCH", path: "/orders?id=gt.0", body: { amount: 2 } };
    const one = { ...all, headers: { Accept: "application/vnd.pgrst.object+json", Prefer: "return=representation" } };
    const few = { ...all, headers: { Prefer: "handling=strict, max-affected=1" } };
    for (const [part, status, code] of [
      [one, 406, "PGRST116"],
      [few, 400, "PGRST124"],
    ] as const) {
      const response = await send([insert("a"), insert("b"), part]);
      expect([response.status, response.body]).toMatchObject([status, { code, index: 2 }]);
    }
    expect(await items()).toEqual([]);
  });

  test.each([
    ["an unknown table", { method: "GET", path: "/nothing" }, 404, "PGRST205"],
    ["a path that there is not", { method: "GET", path: "/a/b/c" }, 404, "PGRST125"],
    ["a method that the resource does not have", { method: "DELETE", path: "/rpc/total" }, 405, "PGRST101"],
    ["the description of the interface", { method: "GET", path: "/" }, 400, "INVALID_BATCH"],
    ["a batch", { method: "POST", path: "/", headers: { "Content-Type": BATCH_TYPE }, body: "[]" }, 405, "PGRST117"],
    ["OPTIONS", { method: "OPTIONS", path: "/orders" }, 400, "INVALID_BATCH"],
    ["HEAD", { method: "HEAD", path: "/orders" }, 400, "INVALID_BATCH"],
    ["a filter that cannot be parsed", { method: "GET", path: "/orders?id=1" }, 400, "PGRST100"],
    ["no path", { method: "GET" }, 400, "INVALID_BATCH"],
    ["a relative path", { method: "GET", path: "orders" }, 400, "INVALID_BATCH"],
    ["a long path", { method: "GET", path: `/orders?item=eq.${"x".repeat(16_384)}` }, 400, "INVALID_BATCH"],
    ["long headers", { method: "GET", path: "/orders", headers: { Prefer: "x".repeat(16_384) } }, 400, "INVALID_BATCH"],
    ["an unknown member", { method: "GET", path: "/orders", url: "/orders" }, 400, "INVALID_BATCH"],
    ["credentials", { method: "GET", path: "/orders", headers: { Authorization: "Bearer x" } }, 400, "INVALID_BATCH"],
    ["an API key", { method: "GET", path: "/orders?apikey=x" }, 400, "INVALID_BATCH"],
    ["a path with NUL", { method: "GET", path: "/orders?item=eq.\0" }, 400, "INVALID_BATCH"],
    ["a path with a line break", { method: "GET", path: "/orders?item=eq.a\r\n" }, 400, "INVALID_BATCH"],
    ["a path with a lone surrogate", { method: "GET", path: "/orders?item=eq.\ud800" }, 400, "INVALID_BATCH"],
    ["a name with a lone surrogate", { method: "POST", path: "/orders\udc00", body: {} }, 400, "INVALID_BATCH"],
    ["percent-encoded surrogates", { method: "GET", path: "/orders?item=eq.%ED%A0%80" }, 400, "22021"],
    ["a header with CR LF", { method: "GET", path: "/orders", headers: { Accept: "a\r\nb" } }, 400, "INVALID_BATCH"],
    ["a header with NUL", { method: "GET", path: "/orders", headers: { "If-Match": "\0" } }, 400, "INVALID_BATCH"],
    [
      "a header with a surrogate",
      { method: "GET", path: "/orders", headers: { Range: "\ud800" } },
      400,
      "INVALID_BATCH",
    ],
    [
      "a text with a lone surrogate",
      { method: "POST", path: "/orders", headers: { "Content-Type": "text/csv" }, body: "item\n\ud800" },
      400,
      "INVALID_BATCH",
    ],
    ["a cookie", { method: "GET", path: "/orders", headers: { Cookie: "a=b" } }, 400, "INVALID_BATCH"],
    [
      "a key of its own",
      { method: "POST", path: "/orders", headers: { "Idempotency-Key": "x" } },
      400,
      "INVALID_BATCH",
    ],
    [
      "an end of its own",
      { method: "POST", path: "/orders", headers: { Prefer: "tx=rollback" } },
      400,
      "INVALID_BATCH",
    ],
    ["a task", { method: "POST", path: "/rpc/total", headers: { Prefer: "respond-async" } }, 400, "INVALID_BATCH"],
    [
      "CSV that is no string",
      { method: "POST", path: "/orders", headers: { "Content-Type": "text/csv" }, body: 1 },
      400,
      "INVALID_BATCH",
    ],
  ])("refuses %s", async (_name, part, status, code) => {
    const response = await send([insert("a"), part]);
    expect([response.status, response.body]).toMatchObject([status, { code, index: 1 }]);
    if (status === 405) expect(response.headers.allow).toContain("GET");
    expect(await items()).toEqual([]);
  });

  test.each([
    ["no JSON", "[", 400, "INVALID_BATCH"],
    ["no list", '{"method":"GET","path":"/orders"}', 400, "INVALID_BATCH"],
    ["a list of other values", "[1]", 400, "INVALID_BATCH"],
    ["no request", "[]", 400, "INVALID_BATCH"],
    ["more than BATCH_MAX requests", JSON.stringify(Array(31).fill(insert("a"))), 413, "BATCH_TOO_LARGE"],
  ])("refuses %s", async (_name, body, status, code) => {
    expect(await send(body)).toMatchObject({ status, body: { code } });
    expect(await items()).toEqual([]);
  });

  test("cannot be queued", async () => {
    const { status, body } = await send([insert("a")], { headers: { Prefer: "respond-async" } });
    expect([status, body]).toMatchObject([400, { code: "INVALID_BATCH" }]);
  });
});

describe("preferences and headers of the whole batch", () => {
  test("Prefer: tx=rollback undoes all, after deferred constraints were checked", async () => {
    const headers = { Prefer: "tx=rollback" };
    expect((await send([insert("a"), insert("b")], { headers })).body).toMatchObject([
      { status: 201 },
      { status: 201 },
    ]);
    const label = { method: "POST", path: "/labels", body: { name: "a" } };
    expect((await send([label, label], { headers })).body).toMatchObject({ code: "23505" });
    const line = { method: "POST", path: "/lines", body: { order_id: { $ref: "0#/0/id" } } };
    expect((await send([insert("a"), line], { headers })).body).toMatchObject([{ status: 201 }, { status: 201 }]);
    expect(await items()).toEqual([]);
  });

  test("an Idempotency-Key makes the whole batch once", async () => {
    const line = { method: "POST", path: "/lines", headers: RETURNED, body: { order_id: { $ref: "0#/0/id" } } };
    const headers = { "Idempotency-Key": randomUUID() };
    const responses = await Promise.all([1, 2, 3].map(() => send([insert("a"), line], { headers })));
    const [first] = responses;
    expect(first).toMatchObject({ status: 200, body: [{ status: 201 }, { status: 201 }] });
    expect(new Set(responses.map(({ text }) => text)).size).toBe(1);
    expect(responses.filter((response) => response.headers["idempotent-replayed"] === "true")).toHaveLength(2);
    expect(await send([insert("b")], { headers })).toMatchObject({ status: 422 });
    expect(await items()).toEqual(["a"]);
  });

  test("an Idempotency-Key of another schema's batch is refused", async () => {
    const key = { "Idempotency-Key": randomUUID() };
    const add = [{ method: "POST", path: "/orders", body: { id: 71 } }];
    expect(await send(add, { headers: { ...key, "Accept-Profile": "other" } })).toMatchObject({ status: 200 });
    expect(await send(add, { headers: { ...key, "Accept-Profile": "shop" } })).toMatchObject({
      status: 422,
      body: { code: "IDEMPOTENCY_KEY_REUSED" },
    });
  });

  test("a batch that failed leaves its Idempotency-Key unused", async () => {
    const headers = { "Idempotency-Key": randomUUID() };
    expect((await send([insert("a"), insert("refused")], { headers })).body).toMatchObject({ index: 1 });
    expect(await send([insert("a"), insert("b")], { headers })).toMatchObject({ status: 200 });
    expect(await items()).toEqual(["a", "b"]);
  });

  test("the pre-request function runs before each request, and may refuse it", async () => {
    const checked = await serve(database, { ...SETTINGS, PGRST_DB_PRE_REQUEST: "shop.check_request" });
    const visitor = openClient(checked.url, { as: { role: "authenticated" } });
    const line = { method: "POST", path: "/lines", body: { order_id: { $ref: "0#/0/id" } } };
    const read = { method: "GET", path: "/files" };
    expect(await send([insert("a"), read, line], {}, visitor)).toMatchObject({ status: 200 });
    const visits = async () => (await owner.query("select path from shop.visits")).rows.map(({ path }) => path);
    expect(await visits()).toEqual(["/orders", "/files", "/lines"]);
    const forbidden = { method: "POST", path: "/labels", body: { name: "a" } };
    const { body } = await send([insert("b"), forbidden], {}, visitor);
    expect(body).toMatchObject({ code: "42501", message: "not this path", index: 1 });
    expect(await visits()).toHaveLength(3);
    visitor.close();
    await checked.stop();
  });

  test("a condition of a request sees the rows that the settings of the pre-request show", async () => {
    await owner.query(`
      create table shop.kept (id int primary key, note text, tenant text);
      insert into shop.kept values (1, 'first', 'a');
      alter table shop.kept enable row level security;
      create policy of_tenant on shop.kept using (tenant = current_setting('app.tenant', true));
      grant all on shop.kept to authenticated;
      create function shop.choose_tenant() returns text language sql as $$ select set_config('app.tenant', 'a', true) $$;
      grant execute on function shop.choose_tenant to authenticated`);
    const checked = await serve(database, { ...SETTINGS, PGRST_DB_PRE_REQUEST: "shop.choose_tenant" });
    const visitor = openClient(checked.url, { as: { role: "authenticated" } });
    const replacement = { id: 1, note: "second", tenant: "a" };
    const put = { method: "PUT", path: "/kept?id=eq.1", headers: { "If-None-Match": "*" }, body: replacement };
    const { body } = await send([{ method: "GET", path: "/kept" }, put], {}, visitor);
    expect(body).toMatchObject({ index: 1, code: "PGRST182" });
    expect((await owner.query("select note from shop.kept")).rows).toEqual([{ note: "first" }]);
    visitor.close();
    await checked.stop();
    await owner.query("drop table shop.kept; drop function shop.choose_tenant");
  });

  test("each request counts against the rate limit", async () => {
    const limited = await serve(database, { ...SETTINGS, RATE_LIMIT: "10" });
    const visitor = openClient(limited.url, { as: { role: "authenticated" } });
    const read = { method: "GET", path: "/orders" };
    const first = await send(Array(6).fill(read), {}, visitor);
    expect([first.status, first.headers["x-ratelimit-remaining"]]).toEqual([200, "4"]);
    const second = await send(Array(6).fill(insert("a")), {}, visitor);
    expect(second).toMatchObject({ status: 429, body: { code: "RATE_LIMITED" } });
    expect(await items()).toEqual([]);
    visitor.close();
    await limited.stop();
  });

  test("all responses together are bounded, before anything is committed", async () => {
    const small = await serve(database, { ...SETTINGS, MAX_ANSWER_BYTES: "1048576" });
    const visitor = openClient(small.url, { as: { role: "authenticated" } });
    await owner.query("insert into shop.orders (item) select repeat('x', 100000) from generate_series(1, 6)");
    const read = { method: "GET", path: "/orders?select=item" };
    expect(await send([read], {}, visitor)).toMatchObject({ status: 200 });
    const { body } = await send([insert("a"), read, read], {}, visitor);
    expect(body).toMatchObject({ code: "ANSWER_TOO_LARGE", details: "Nothing was changed." });
    expect((await items()).filter((item) => item === "a")).toEqual([]);
    visitor.close();
    await small.stop();
  });
});

describe("with TRANSACTION_MODE=explicit", () => {
  test("a batch is one transaction as well", async () => {
    const explicit = await serve(database, { ...SETTINGS, TRANSACTION_MODE: "explicit" });
    const visitor = openClient(explicit.url, { as: { role: "authenticated" } });
    const line = { method: "POST", path: "/lines", body: { order_id: { $ref: "0#/0/id" } } };
    expect((await send([insert("a"), line], {}, visitor)).body).toMatchObject([{ status: 201 }, { status: 201 }]);
    expect((await send([insert("b"), insert("refused")], {}, visitor)).body).toMatchObject({ index: 1 });
    expect(await items()).toEqual(["a"]);
    visitor.close();
    await explicit.stop();
  });
});
