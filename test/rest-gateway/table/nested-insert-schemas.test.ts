import { beforeEach, describe, expect, test } from "vitest";
import { useClient, useDatabase } from "../../database.ts";
import { useFixture } from "../../fixture.ts";
import { serve, useService } from "../../serve.ts";
import { openClient, type TestRequest } from "./client.ts";

const SCHEMA = `
  create schema shop;
  create domain shop.code as text check (value <> '');
  create type shop.mood as enum ('sad', 'glad');
  -- Keys of types whose casts cut or round values.
  create table shop.countries (code char(2) primary key, name text);
  create table shop.cities (
    id numeric(10, 2) primary key, country varchar(3) references shop.countries, at timestamptz unique, mood shop.mood unique
  );
  create table shop.streets (name shop.code primary key, city_id numeric references shop.cities, mood shop.mood references shop.cities (mood));
  create table shop.visits (id serial primary key, city_at timestamptz references shop.cities (at));

  create table shop.events (id bigint generated always as identity, day date not null, primary key (id, day)) partition by range (day);
  create table shop.events_old partition of shop.events for values from (minvalue) to ('2020-01-01');
  create table shop.events_new partition of shop.events for values from ('2020-01-01') to (maxvalue);
  create table shop.guests (
    event_id bigint, day date, name text, primary key (event_id, day, name), foreign key (event_id, day) references shop.events
  );

  create table shop.changed (id text primary key, name text);
  create table shop.changed_lines (id serial primary key, changed_id text not null references shop.changed);
  create function shop.change_key() returns trigger language plpgsql as $$ begin new.id := 'key of ' || new.name; return new; end $$;
  create trigger change_key before insert on shop.changed for each row execute function shop.change_key();

  create table shop.dropped (id serial primary key, name text);
  create table shop.dropped_lines (id serial primary key, dropped_id integer references shop.dropped);
  create function shop.drop_row() returns trigger language plpgsql as $$ begin
    if new.name = 'drop' then return null; end if; return new; end $$;
  create trigger drop_row before insert on shop.dropped for each row execute function shop.drop_row();

  create table shop.keyless (name text, n integer);
  create table shop.keyless_targets (id serial primary key, keyless_name text);
  create table shop.codes (code text unique, name text);
  create table shop.code_lines (id serial primary key, code text references shop.codes (code));

  create table shop.authors (id serial primary key, name text not null, secret text default 'none');
  create table shop.books (id serial primary key, author_id integer not null references shop.authors, title text not null, price integer);
  create view shop.writers with (security_invoker) as select id, name from shop.authors;
  create view shop.titles with (security_invoker) as select id, author_id as writer, title from shop.books;
  create view shop.both_names as select a.id, a.name, 1 as one from shop.authors a;
  create function shop.insert_author() returns trigger language plpgsql as $$ begin
    insert into shop.authors (name) values (new.name) returning id into new.id;
    if new.name = 'no key' then new.id := null; end if;
    return new;
  end $$;
  create trigger insert_author instead of insert on shop.both_names for each row execute function shop.insert_author();

  create table shop.later (id serial primary key, name text);
  create table shop.later_lines (
    id serial primary key, later_id integer references shop.later, book_id integer references shop.books deferrable initially deferred
  );
  create table shop.checks (id serial primary key);
  create function shop.check_request() returns void language plpgsql as $$ begin
    if current_setting('request.headers')::json->>'x-refuse' = 'yes' then raise 'refused'; end if;
    insert into shop.checks default values;
  end $$;
  grant usage on schema shop to anon, authenticated;
  grant execute on function shop.check_request to authenticated;
  grant usage on all sequences in schema shop to anon, authenticated;
  grant select, insert on all tables in schema shop to authenticated;
  grant insert (name), select (id) on shop.authors to anon;
  grant insert (title, author_id) on shop.books to anon;
`;

const database = useDatabase({ sql: SCHEMA });
const owner = useClient(database.ownerUrl);
const service = useService({
  database,
  settings: {
    PGRST_DB_SCHEMAS: "shop",
    PGRST_DB_TX_END: "commit-allow-override",
    PGRST_DB_PLAN_ENABLED: "true",
  },
});
const client = useFixture(() => openClient(service.url, { as: { role: "authenticated" } }));

beforeEach(async () => {
  await owner.query(`do $$ declare t regclass; begin
    for t in select oid from pg_class where relnamespace = 'shop'::regnamespace and relkind in ('r', 'p') loop
      execute format('truncate %s restart identity cascade', t);
    end loop; end $$`);
});

const insert = (
  path: string,
  body: unknown,
  { prefer = "return=representation", ...rest }: TestRequest & { readonly prefer?: string } = {},
) =>
  client.ask(path, {
    method: "POST",
    body: JSON.stringify(body),
    ...rest,
    headers: { Prefer: `nested=insert, ${prefer}`, ...rest.headers },
  });

const rowsOf = async (query: string) => (await owner.query(query)).rows;

describe("a nested insert", () => {
  test("passes on keys of other types unchanged", async () => {
    const country = {
      code: "de",
      name: "Germany",
      cities: [{ id: 1.25, at: "2024-05-06T07:08:09.123456+02:00", mood: "glad" }],
    };
    const { status } = await insert("/countries", country);
    expect(status).toBe(201);
    const street = { name: "Main", "cities!city_id": { id: 2.5, visits: [{}], at: "2024-05-06T07:08:09.654321Z" } };
    const { body } = await insert("/streets?select=name,city_id,cities!city_id(id,visits(city_at))", street);
    expect(body).toEqual([
      { name: "Main", city_id: 2.5, cities: { id: 2.5, visits: [{ city_at: "2024-05-06T07:08:09.654321+00:00" }] } },
    ]);
    const long = { id: 3, countries: { code: "fr" }, visits: [] };
    expect(await insert("/cities?select=country", long)).toMatchObject({ body: [{ country: "fr" }] });
    const mood = { name: "Side", "cities!mood": { id: 4, mood: "sad" } };
    expect(await insert("/streets?select=mood", mood)).toMatchObject({ body: [{ mood: "sad" }] });
  });

  test("inserts into partitioned tables, whose rows go to several partitions", async () => {
    const events = [
      { day: "2024-01-01", guests: [{ name: "Ann" }] },
      { day: "2001-01-01", guests: [{ name: "Bob" }] },
      { day: "2025-01-01", guests: [{ name: "Cas" }] },
    ];
    const { body } = await insert("/events?select=id,day,guests(name)", events);
    expect(body).toEqual(events.map((event, index) => ({ id: index + 1, ...event })));
  });

  test("uses keys that a trigger has changed", async () => {
    const rows = [
      { name: "a", changed_lines: [{}, {}] },
      { name: "b", changed_lines: [{}] },
    ];
    const { body } = await insert("/changed?select=id,changed_lines(changed_id)", rows);
    expect(body).toEqual([
      { id: "key of a", changed_lines: [{ changed_id: "key of a" }, { changed_id: "key of a" }] },
      { id: "key of b", changed_lines: [{ changed_id: "key of b" }] },
    ]);
  });

  test("is refused if a trigger drops a row", async () => {
    const rows = [
      { name: "a", dropped_lines: [{}] },
      { name: "drop", dropped_lines: [{}] },
    ];
    expect(await insert("/dropped", rows)).toMatchObject({
      status: 409,
      body: { code: "PGRST194", message: "Only 1 of 2 rows of 'dropped' were inserted", details: { path: "*" } },
    });
    expect(await rowsOf("select from shop.dropped")).toEqual([]);
  });

  test("is refused if a row to which others refer has no key", async () => {
    expect(await insert("/codes", { name: "a", code_lines: [{}] })).toMatchObject({
      status: 409,
      body: { code: "PGRST195", details: { path: "code" } },
    });
    expect(await insert("/codes?select=name", { name: "a", code_lines: [] })).toMatchObject({ body: [{ name: "a" }] });
  });

  test("returns rows without a primary key as they were inserted, in the order of the columns", async () => {
    const { text } = await insert("/codes", [{ name: "a", code: "x", code_lines: [{}] }]);
    expect(text).toBe('[{"code":"x","name":"a"}]');
    expect(
      await insert("/codes?select=name,code_lines(id)", [{ name: "a", code: "y", code_lines: [{}] }]),
    ).toMatchObject({
      body: [{ name: "a", code_lines: [{ id: 2 }] }],
    });
    expect(
      await insert("/keyless?select=n", [
        { name: "a", n: 1 },
        { name: "b", n: 2 },
      ]),
    ).toMatchObject({
      body: [{ n: 1 }, { n: 2 }],
    });
  });

  test("follows relations of automatically updatable views", async () => {
    const writer = { name: "Ann", titles: [{ title: "One" }, { title: "Two" }] };
    const { body } = await insert("/writers?select=name,titles(title,writer)", writer);
    expect(body).toEqual([
      {
        name: "Ann",
        titles: [
          { title: "One", writer: 1 },
          { title: "Two", writer: 1 },
        ],
      },
    ]);
    expect(await insert("/titles?select=writer", { title: "Three", writers: { name: "Bob" } })).toMatchObject({
      body: [{ writer: 2 }],
    });
  });

  test("takes keys from a view's INSTEAD OF trigger, and is refused without one", async () => {
    const { body } = await insert("/both_names?select=name,books(title)", { name: "Ann", books: [{ title: "One" }] });
    expect(body).toEqual([{ name: "Ann", books: [{ title: "One" }] }]);
    expect(await insert("/both_names", { name: "no key", books: [{ title: "One" }] })).toMatchObject({
      status: 409,
      body: { code: "PGRST195", details: { path: "id" } },
    });
    expect(await rowsOf("select from shop.authors")).toHaveLength(1);
  });

  test("requires INSERT on the columns that are sent and on foreign keys, and SELECT on keys only", async () => {
    const as = { role: "anon" };
    const author = { name: "Ann", books: [{ title: "One" }, { title: "Two" }] };
    expect(await insert("/authors", author, { as, prefer: "return=minimal" })).toMatchObject({ status: 201 });
    expect(await rowsOf("select author_id, title from shop.books order by id")).toEqual([
      { author_id: 1, title: "One" },
      { author_id: 1, title: "Two" },
    ]);
    expect(await insert("/authors?select=id", author, { as })).toMatchObject({ status: 201, body: [{ id: 2 }] });
    expect(await insert("/authors", author, { as })).toMatchObject({ status: 401, body: { code: "42501" } });
    const priced = { name: "Bob", books: [{ title: "Three", price: 1 }] };
    expect(await insert("/authors", priced, { as, prefer: "return=minimal" })).toMatchObject({
      status: 401,
      body: { code: "42501", message: "permission denied for table books", details: { path: "books/0" } },
    });
    expect(await rowsOf("select from shop.authors")).toHaveLength(2);
  });

  test("fails as a whole when a deferred constraint fails at the commit", async () => {
    const later = { name: "a", later_lines: [{ book_id: null }, { book_id: 99 }] };
    expect(await insert("/later", later)).toMatchObject({
      status: 409,
      body: { code: "23503", details: { path: "later_lines/1/book_id" } },
    });
    expect(await rowsOf("select from shop.later")).toEqual([]);
  });

  test("with tx=rollback returns the rows and inserts none", async () => {
    const author = { name: "Ann", books: [{ title: "One" }] };
    const { status, body } = await insert("/authors?select=name,books(title)", author, {
      prefer: "return=representation, tx=rollback",
    });
    expect({ status, body }).toEqual({ status: 201, body: [author] });
    expect(await rowsOf("select from shop.authors")).toEqual([]);
    const later = { later_lines: [{ book_id: 99 }] };
    expect(await insert("/later", later, { prefer: "tx=rollback" })).toMatchObject({ status: 409 });
  });

  test("is done once with an Idempotency-Key, and the response is repeated", async () => {
    const author = { name: "Ann", books: [{ title: "One" }] };
    const headers = { "Idempotency-Key": "a-key-of-one-write" };
    const [first, second] = [
      await insert("/authors?select=id,books(id)", author, { headers }),
      await insert("/authors?select=id,books(id)", author, { headers }),
    ];
    expect(first).toMatchObject({ status: 201, body: [{ id: 1, books: [{ id: 1 }] }] });
    expect(second.text).toBe(first.text);
    expect(await rowsOf("select from shop.books")).toHaveLength(1);
    const wrong = { name: "Bob", books: [{ title: "One" }, { title: null }] };
    expect(await insert("/authors", wrong, { headers: { "Idempotency-Key": "another-key" } })).toMatchObject({
      status: 400,
      body: { code: "23502", details: { path: "books/1/title" } },
    });
  });

  test("is part of a batch, whose other parts can refer to it", async () => {
    const headers = { Prefer: "nested=insert, return=representation" };
    const parts = (title: string | null) => [
      {
        method: "POST",
        path: "/authors?select=id,books(id)",
        headers,
        body: { name: "Ann", books: [{ title: "One" }] },
      },
      {
        method: "POST",
        path: "/authors?select=id",
        headers,
        body: { name: "Bob", books: [{ title: "Two" }, { title }] },
      },
      {
        method: "POST",
        path: "/books?select=title,authors(name)",
        headers,
        body: { title: "Four", author_id: { $ref: "0#/0/id" } },
      },
      { method: "GET", path: ["/books?select=title&order=id&author_id=eq.", { $ref: "1#/0/id" }] },
    ];
    const send = (body: object, more: Record<string, string> = {}) =>
      client.ask("/", {
        method: "POST",
        body: JSON.stringify(body),
        headers: { "Content-Type": "application/vnd.batch+json", ...more },
      });
    const { status, text } = await send(parts("Three"));
    expect({ status, bodies: JSON.parse(text).map(({ body }: { body: unknown }) => body) }).toEqual({
      status: 200,
      bodies: [
        [{ id: 1, books: [{ id: 1 }] }],
        [{ id: 2 }],
        [{ title: "Four", authors: { name: "Ann" } }],
        [{ title: "Two" }, { title: "Three" }],
      ],
    });
    expect(await send(parts(null))).toMatchObject({
      status: 400,
      body: { code: "23502", index: 1, details: { path: "books/1/title" } },
    });
    expect(await send(parts("Three"), { Prefer: "tx=rollback" })).toMatchObject({ status: 200 });
    expect(await rowsOf("select from shop.books")).toHaveLength(4);
  });

  test("runs at the isolation level of the role", async () => {
    await owner.query(
      `alter role authenticated in database ${database.name} set default_transaction_isolation = 'repeatable read'`,
    );
    const { status } = await insert("/authors?select=name,books(title)", { name: "Ann", books: [{ title: "One" }] });
    await owner.query(`alter role authenticated in database ${database.name} reset default_transaction_isolation`);
    expect(status).toBe(201);
  });

  test("runs the pre-request function once, whose errors have no path", async () => {
    const settings = { PGRST_DB_SCHEMAS: "shop", PGRST_DB_PRE_REQUEST: "shop.check_request" };
    const checked = await serve(database, settings);
    const other = openClient(checked.url, { as: { role: "authenticated" } });
    const post = (refuses: string) =>
      other.ask("/authors", {
        method: "POST",
        body: JSON.stringify({ name: "Ann", books: [{ title: "One" }] }),
        headers: { Prefer: "nested=insert", "X-Refuse": refuses },
      });
    try {
      expect(await post("no")).toMatchObject({ status: 201 });
      expect(await rowsOf("select from shop.checks")).toHaveLength(1);
      expect(await post("yes")).toMatchObject({ status: 400, body: { code: "P0001", details: null } });
      expect(await rowsOf("select from shop.authors")).toHaveLength(1);
    } finally {
      other.close();
      await checked.stop();
    }
  });

  test("works where transactions are explicit", async () => {
    const explicit = await serve(database, { PGRST_DB_SCHEMAS: "shop", TRANSACTION_MODE: "explicit" });
    const other = openClient(explicit.url, { as: { role: "authenticated" } });
    try {
      const author = { name: "Ann", books: [{ title: "One" }] };
      const post = (body: unknown) =>
        other.ask("/authors?select=name,books(title)", {
          method: "POST",
          body: JSON.stringify(body),
          headers: { Prefer: "nested=insert, return=representation" },
        });
      expect(await post(author)).toMatchObject({ status: 201, body: [author] });
      expect(await post({ ...author, books: [{ title: null }] })).toMatchObject({
        status: 400,
        body: { details: { path: "books/0/title" } },
      });
      expect(await post(author)).toMatchObject({ status: 201 });
      expect(await rowsOf("select from shop.books")).toHaveLength(2);
    } finally {
      other.close();
      await explicit.stop();
    }
  });
});

describe("refused is a nested insert", () => {
  test.each<[string, TestRequest & { readonly prefer?: string }, string, unknown]>([
    ["of CSV", { body: "name\nAnn", headers: { "Content-Type": "text/csv" } }, "PGRST102", null],
    [
      "of a form",
      { body: "name=Ann", headers: { "Content-Type": "application/x-www-form-urlencoded" } },
      "PGRST102",
      null,
    ],
    ["of text that is not JSON", { body: "{" }, "PGRST102", null],
    ["of a list of numbers", { body: "[1]" }, "PGRST102", null],
    ["of invalid UTF-8", { body: Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]) }, "22021", null],
    ["that merges duplicates", { prefer: "resolution=merge-duplicates" }, "PGRST127", null],
    ["whose execution plan is requested", { headers: { Accept: "application/vnd.pgrst.plan+json" } }, "PGRST127", null],
    ["of too many rows", { body: JSON.stringify(Array(10_001).fill({ name: "a" })) }, "PGRST102", null],
    ["of too many levels", { body: JSON.stringify(deepAuthor(5)) }, "PGRST102", { path: /^books\/0\/authors\// }],
  ])("%s", async (_what, request, code, details) => {
    const response = await insert("/authors", { name: "Ann" }, request);
    expect(response).toMatchObject({ status: 400, body: { code } });
    if (details) expect(response.body.details.path).toMatch((details as { path: RegExp }).path);
    expect(await rowsOf("select from shop.authors")).toEqual([]);
  });

  test("of more than 4 MiB", async () => {
    expect(await insert("/authors", { name: "a".repeat(4 * 2 ** 20) })).toMatchObject({
      status: 413,
      body: { code: "PAYLOAD_TOO_LARGE" },
    });
  });
});

function deepAuthor(pairs: number): object {
  const author = { name: "Ann" };
  return pairs === 0 ? author : { ...author, books: [{ title: "a", authors: deepAuthor(pairs - 1) }] };
}
