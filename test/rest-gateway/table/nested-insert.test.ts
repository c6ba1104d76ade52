import { beforeEach, describe, expect, test } from "vitest";
import { useClient, useDatabase } from "../../database.ts";
import { useFixture } from "../../fixture.ts";
import { useService } from "../../serve.ts";
import { openClient, type TestRequest } from "./client.ts";

const SCHEMA = `
  create schema shop;
  create table shop.customers (
    id bigint generated always as identity primary key, name text not null, owner name not null default current_user
  );
  create table shop.orders (
    id uuid primary key default gen_random_uuid(), customer_id bigint references shop.customers, note text default 'none',
    total numeric not null default 0, data jsonb, owner name not null default current_user
  );
  create table shop.products (code text primary key, title text not null);
  create table shop.lines (
    id bigint generated always as identity primary key, order_id uuid not null references shop.orders,
    sku text not null check (sku <> ''), quantity integer not null default 1,
    product_code text references shop.products, unique (order_id, sku)
  );
  create table shop.parts (id serial primary key, line_id bigint not null references shop.lines, name varchar(5) not null);
  create table shop.tags (id serial primary key, name text unique not null);
  create table shop.order_tags (
    order_id uuid references shop.orders, tag_id integer references shop.tags, primary key (order_id, tag_id)
  );
  create table shop.employees (
    id bigint generated always as identity primary key, name text not null, manager_id bigint references shop.employees
  );
  create table shop.addresses (id serial primary key, city text not null);
  create table shop.shipments (
    id serial primary key,
    from_id integer constraint shipment_from references shop.addresses,
    to_id integer constraint shipment_to references shop.addresses
  );
  create table shop.tenants (id integer primary key);
  create table shop.projects (
    tenant_id integer references shop.tenants, code text, title text, primary key (tenant_id, code)
  );
  create table shop.tasks (
    tenant_id integer, project_code text, number integer, title text, primary key (tenant_id, project_code, number),
    foreign key (tenant_id, project_code) references shop.projects deferrable initially deferred
  );
  create table shop.profiles (customer_id bigint primary key references shop.customers, bio text);
  create table shop.visits (
    id serial primary key, customer_id bigint default 1 references shop.customers, note text default 'none'
  );
  alter table shop.orders enable row level security;
  create policy own on shop.orders to authenticated using (owner = current_user) with check (owner = current_user);
  create policy all_rows on shop.orders to anon using (true);
  alter table shop.lines enable row level security;
  create policy of_own_orders on shop.lines to authenticated
    using (exists (select from shop.orders o where o.id = order_id))
    with check (exists (select from shop.orders o where o.id = order_id));
  create policy all_rows on shop.lines to anon using (true);
  create function shop.add_total() returns trigger language plpgsql security definer as $$ begin
    update shop.orders set total = total + new.quantity where id = new.order_id; return null;
  end $$;
  create trigger add_total after insert on shop.lines for each row execute function shop.add_total();
  grant usage on schema shop to authenticated, anon;
  grant select, insert on all tables in schema shop to authenticated, anon;
  grant usage on all sequences in schema shop to authenticated, anon;
`;

const database = useDatabase({ sql: SCHEMA });
const owner = useClient(database.ownerUrl);
const service = useService({ database, settings: { PGRST_DB_SCHEMAS: "shop" } });
const client = useFixture(() => openClient(service.url, { as: { role: "authenticated" } }));

beforeEach(async () => {
  await owner.query(`truncate shop.customers, shop.orders, shop.products, shop.lines, shop.parts, shop.tags, shop.order_tags,
    shop.employees, shop.addresses, shop.shipments, shop.tenants, shop.projects, shop.tasks, shop.profiles, shop.visits restart identity`);
});

const insert = (
  path: string,
  body: unknown,
  { prefer = "return=representation", ...rest }: TestRequest & { prefer?: string } = {},
) =>
  client.ask(path, {
    method: "POST",
    body: JSON.stringify(body),
    ...rest,
    headers: { Prefer: ["nested=insert", prefer].filter(Boolean).join(", "), ...rest.headers },
  });

const rowsOf = async (query: string) => (await owner.query(query)).rows;

describe("a nested insert", () => {
  test("inserts rows of a to-many relation and returns them with any select", async () => {
    const body = {
      note: "a",
      lines: [
        { sku: "x", quantity: 2 },
        { sku: "y", quantity: 3 },
      ],
    };
    const {
      status,
      body: rows,
      headers,
    } = await insert("/orders?select=note,total,lines(sku,quantity)&lines.order=sku", body);
    expect({ status, rows }).toEqual({
      status: 201,
      rows: [
        {
          note: "a",
          total: 5,
          lines: [
            { sku: "x", quantity: 2 },
            { sku: "y", quantity: 3 },
          ],
        },
      ],
    });
    expect(headers["preference-applied"]).toBe("nested=insert, return=representation");
  });

  test("returns rows in other formats, with filtered, aggregated and spread relations", async () => {
    const body = { note: "a", customers: { name: "Ann" }, lines: [{ sku: "x" }, { sku: "y" }, { sku: "z" }] };
    const filtered = await insert("/orders?select=note,lines(sku)&lines.sku=in.(x,z)&lines.order=sku.desc", body);
    expect(filtered.body).toEqual([{ note: "a", lines: [{ sku: "z" }, { sku: "x" }] }]);
    const spread = await insert("/orders?select=note,...customers(customer:name),skus:lines(sku)&lines.limit=0", body);
    expect(spread.body).toEqual([{ note: "a", customer: "Ann", skus: [] }]);
    const csv = await insert("/orders?select=note,total", [body, { ...body, note: "b" }], {
      headers: { Accept: "text/csv" },
    });
    expect(csv.text).toBe("note,total\na,3\nb,3");
  });

  test("passes the policy of a child that looks at the parent row", async () => {
    const { status } = await insert("/orders", { lines: [{ sku: "x" }] });
    expect(status).toBe(201);
    const refused = await insert("/orders", { owner: "anon", lines: [{ sku: "x" }] });
    expect(refused).toMatchObject({ status: 403, body: { code: "42501", details: { path: "" } } });
    expect(await rowsOf("select from shop.orders")).toHaveLength(1);
  });

  test("inserts several levels, in both directions, of several rows at the top", async () => {
    const orders = [
      { note: "a", customer: { name: "Ann" }, lines: [{ sku: "x", parts: [{ name: "p" }, { name: "q" }] }] },
      { note: "b", customer: null, lines: [] },
      {
        note: "c",
        customers: { name: "Cas" },
        lines: [
          { sku: "y", parts: [] },
          { sku: "z", parts: [{ name: "r" }] },
        ],
      },
    ].map(({ customer, ...order }) => (customer === undefined ? order : { ...order, customers: customer }));
    const select = "select=note,customers(name),lines(sku,parts(name))";
    const { status, body } = await insert(`/orders?${select}`, orders);
    expect({ status, body }).toEqual({
      status: 201,
      body: [
        { note: "a", customers: { name: "Ann" }, lines: [{ sku: "x", parts: [{ name: "p" }, { name: "q" }] }] },
        { note: "b", customers: null, lines: [] },
        {
          note: "c",
          customers: { name: "Cas" },
          lines: [
            { sku: "y", parts: [] },
            { sku: "z", parts: [{ name: "r" }] },
          ],
        },
      ],
    });
  });

  test("inserts targets of a many-to-many relation and the rows of the junction", async () => {
    const orders = [
      { note: "a", tags: [{ name: "red" }, { name: "blue" }] },
      { note: "b", tags: [{ name: "green" }] },
    ];
    const { status, body } = await insert("/orders?select=note,tags(name)&tags.order=name", orders);
    expect({ status, body }).toEqual({
      status: 201,
      body: [
        { note: "a", tags: [{ name: "blue" }, { name: "red" }] },
        { note: "b", tags: [{ name: "green" }] },
      ],
    });
    const linked = { order_tags: [{ tag_id: 1 }] };
    expect(await insert("/orders?select=tags(name)", linked)).toMatchObject({ body: [{ tags: [{ name: "red" }] }] });
  });

  test("follows a self-reference in both directions", async () => {
    const employee = {
      name: "Ann",
      manager_id: { name: "Bob" },
      employees: [{ name: "Cas", employees: [{ name: "Dan" }] }],
    };
    const { status, body } = await insert(
      "/employees?select=name,manager_id(name),employees(name,employees(name))",
      employee,
    );
    expect({ status, body }).toEqual({
      status: 201,
      body: [{ name: "Ann", manager_id: { name: "Bob" }, employees: [{ name: "Cas", employees: [{ name: "Dan" }] }] }],
    });
    const below = { name: "Eve", manager_id: 1 };
    expect(await insert("/employees?select=manager_id", below)).toMatchObject({ body: [{ manager_id: 1 }] });
  });

  test("tells several foreign keys to one table apart by a hint, and refuses to guess", async () => {
    const hinted = { "addresses!shipment_from": { city: "Oslo" }, shipment_to: { city: "Rome" } };
    const { body } = await insert("/shipments?select=from:addresses!shipment_from(city),to:shipment_to(city)", hinted);
    expect(body).toEqual([{ from: { city: "Oslo" }, to: { city: "Rome" } }]);
    const columns = { from_id: { city: "Bonn" }, to_id: null };
    expect(await insert("/shipments?select=from_id(city),to_id", columns)).toMatchObject({
      body: [{ from_id: { city: "Bonn" }, to_id: null }],
    });
    const ambiguous = await insert("/shipments", { addresses: { city: "Oslo" } });
    expect(ambiguous).toMatchObject({ status: 300, body: { code: "PGRST201", details: { path: "addresses" } } });
    expect(ambiguous.body.details.relationships).toHaveLength(2);
  });

  test("fills composite keys, also through several levels", async () => {
    const tenant = {
      id: 7,
      projects: [
        { code: "a", tasks: [{ number: 1 }, { number: 2 }] },
        { code: "b", tasks: [] },
      ],
    };
    const { status } = await insert("/tenants", tenant, { prefer: "" });
    expect(status).toBe(201);
    expect(await rowsOf("select tenant_id, project_code, number from shop.tasks order by number")).toEqual([
      { tenant_id: 7, project_code: "a", number: 1 },
      { tenant_id: 7, project_code: "a", number: 2 },
    ]);
  });

  test("accepts the key of a related row that is also given, if both agree", async () => {
    const agreeing = {
      id: 7,
      projects: [
        { tenant_id: 7, code: "a" },
        { tenant_id: null, code: "b" },
      ],
    };
    expect(await insert("/tenants", agreeing)).toMatchObject({ status: 201 });
    const differing = {
      id: 8,
      projects: [
        { tenant_id: 8, code: "a" },
        { tenant_id: 7, code: "b" },
      ],
    };
    expect(await insert("/tenants", differing)).toMatchObject({
      status: 400,
      body: { code: "PGRST196", details: { path: "projects/1/tenant_id" } },
    });
    const both = { customer_id: 1, customers: { name: "Ann" } };
    expect(await insert("/orders", { ...both, lines: [] })).toMatchObject({ status: 201 });
    expect(await insert("/orders", { ...both, lines: [] })).toMatchObject({
      status: 400,
      body: { code: "PGRST196", details: { path: "customer_id" } },
    });
    expect(await rowsOf("select from shop.tenants")).toHaveLength(1);
  });

  test("sets a foreign key to null where the related row is null, and to its default where it is missing", async () => {
    await owner.query("insert into shop.customers (name) values ('Ann')");
    const visits = [{ customers: { name: "Bob" } }, { customers: null }];
    expect(await insert("/visits?select=customer_id", visits)).toMatchObject({
      body: [{ customer_id: 2 }, { customer_id: null }],
    });
    expect(await insert("/visits?select=customer_id", { customers: null })).toMatchObject({
      body: [{ customer_id: null }],
    });
    expect(await insert("/visits?select=customer_id", { customers: null, customer_id: 2 })).toMatchObject({
      body: [{ customer_id: 2 }],
    });
    const mixed = [{ customers: { name: "Cas" } }, { customers: null }, { customer_id: null }, { note: "b" }];
    const prefer = "return=representation, missing=default";
    expect(await insert("/visits?select=customer_id,note", mixed, { prefer })).toMatchObject({
      body: [
        { customer_id: 3, note: "none" },
        { customer_id: null, note: "none" },
        { customer_id: null, note: "none" },
        { customer_id: 1, note: "b" },
      ],
    });
  });

  test("inserts the other row of a one-to-one relation after the row", async () => {
    const { body } = await insert("/customers?select=name,profiles(bio)", { name: "Ann", profiles: { bio: "b" } });
    expect(body).toEqual([{ name: "Ann", profiles: { bio: "b" } }]);
    expect(
      await insert("/profiles?select=bio,customers(name)", { bio: "c", customers: { name: "Bob" } }),
    ).toMatchObject({
      body: [{ bio: "c", customers: { name: "Bob" } }],
    });
  });

  test("keeps objects and lists in columns that take them, and all digits of numbers", async () => {
    const order = { data: { lines: [1.1, { a: null }] }, total: 0 };
    const body = JSON.stringify(order).replace('"total":0', '"total":12345678901234567890.10');
    const { text } = await client.ask("/orders?select=data,total", {
      method: "POST",
      body,
      headers: { Prefer: "nested=insert, return=representation" },
    });
    expect(text).toBe('[{"data":{"lines": [1.1, {"a": null}]},"total":12345678901234567890.10}]');
  });

  test.each([
    [998, 201],
    [999, 400],
    [9_000, 400],
  ])("with a value of %i levels is %i", async (levels, status) => {
    const data = `${"[".repeat(levels)}1.0${"]".repeat(levels)}`;
    const headers = { Prefer: "nested=insert" };
    const response = await client.ask("/orders", { method: "POST", body: `[{"data":${data}}]`, headers });
    expect([response.status, response.body?.code]).toEqual([status, status === 400 ? "PGRST102" : undefined]);
  });

  test.each([
    ["return=minimal", "", { status: 201, text: "" }],
    ["", "", { status: 201, text: "" }],
    ["return=headers-only", "", { status: 201, text: "" }],
    ["count=exact", "*/2", { status: 201, text: "" }],
  ])("with %s has the response of an ordinary insert", async (prefer, _range, expected) => {
    const orders = [{ lines: [{ sku: "x" }] }, { lines: [] }];
    const nested = await insert("/orders", orders, { prefer });
    const ordinary = await client.ask("/orders", {
      method: "POST",
      body: [{ note: "a" }, { note: "b" }],
      headers: { Prefer: prefer },
    });
    expect(nested).toMatchObject(expected);
    expect(nested.headers["content-range"]).toBe(ordinary.headers["content-range"]);
    expect(nested.headers["content-type"]).toBe(ordinary.headers["content-type"]);
  });

  test("of one row with return=headers-only returns its address", async () => {
    const { headers } = await insert("/orders", { lines: [{ sku: "x" }] }, { prefer: "return=headers-only" });
    const [{ id }] = await rowsOf("select id from shop.orders");
    expect(headers.location).toBe(`/orders?id=eq.${id}`);
  });

  test("of several rows is refused where one object is requested, and nothing is inserted", async () => {
    const headers = { Accept: "application/vnd.pgrst.object+json" };
    expect(await insert("/orders?select=lines(sku)", { lines: [{ sku: "x" }] }, { headers })).toMatchObject({
      body: { lines: [{ sku: "x" }] },
    });
    const refused = await insert("/orders", [{ lines: [] }, { lines: [] }], { headers });
    expect(refused).toMatchObject({ status: 406, body: { code: "PGRST116" } });
    expect(await rowsOf("select from shop.orders")).toHaveLength(1);
  });

  test("uses only the columns and relations that are named for the rows at the top", async () => {
    const order = { note: "a", unknown: 1, lines: [{ sku: "x" }], customers: { name: "Ann" } };
    const { body } = await insert("/orders?columns=note,lines&select=note,customer_id,lines(sku)", order);
    expect(body).toEqual([{ note: "a", customer_id: null, lines: [{ sku: "x" }] }]);
    expect(await insert("/orders?columns=none", order)).toMatchObject({ status: 400, body: { code: "PGRST204" } });
  });

  test("inserts nothing for an empty list", async () => {
    expect(await insert("/orders", [])).toMatchObject({ status: 201, body: [] });
  });
});

describe("an error of a nested insert has the path", () => {
  test.each<[string, string, unknown, { status: number; code: string; path: string }]>([
    [
      "an unknown key",
      "/orders",
      { lines: [{ sku: "x" }, { sku: "y", nothing: 1 }] },
      { status: 400, code: "PGRST204", path: "lines/1/nothing" },
    ],
    ["an unknown relation", "/orders", { linez: [{ sku: "x" }] }, { status: 400, code: "PGRST204", path: "linez" }],
    [
      "keys that differ",
      "/orders",
      { lines: [{ sku: "x" }, { quantity: 1 }] },
      { status: 400, code: "PGRST102", path: "lines/1" },
    ],
    [
      "a list for one row",
      "/orders",
      { customers: [{ name: "Ann" }] },
      { status: 400, code: "PGRST102", path: "customers" },
    ],
    ["an object for rows", "/orders", { lines: { sku: "x" } }, { status: 400, code: "PGRST102", path: "lines" }],
    [
      "a number among rows",
      "/orders",
      { lines: [{ sku: "x" }, 1] },
      { status: 400, code: "PGRST102", path: "lines/1" },
    ],
    [
      "a missing value",
      "/orders",
      { lines: [{ sku: "x" }, { sku: null }] },
      { status: 400, code: "23502", path: "lines/1/sku" },
    ],
    [
      "a duplicate",
      "/orders",
      { tags: [{ name: "x" }, { name: "y" }, { name: "x" }] },
      { status: 409, code: "23505", path: "tags/*/name" },
    ],
    [
      "a violated check",
      "/orders",
      { lines: [{ sku: "x" }, { sku: "" }] },
      { status: 400, code: "23514", path: "lines/*/sku" },
    ],
    [
      "a missing reference",
      "/orders",
      [{ lines: [{ sku: "x", product_code: null }] }, { lines: [{ sku: "x", product_code: "p" }] }],
      { status: 409, code: "23503", path: "1/lines/0/product_code" },
    ],
    [
      "a value of another type",
      "/orders",
      {
        lines: [
          { sku: "x", quantity: 1 },
          { sku: "y", quantity: "many" },
        ],
      },
      { status: 400, code: "22P02", path: "lines/1/quantity" },
    ],
    [
      "a long value",
      "/orders",
      { lines: [{ sku: "x", parts: [{ name: "p" }, { name: "longer" }] }] },
      { status: 400, code: "22001", path: "lines/0/parts/1/name" },
    ],
    ["a value of the top row", "/customers", { name: null, orders: [] }, { status: 400, code: "23502", path: "name" }],
  ])("of %s", async (_what, path, body, { status, code, path: at }) => {
    const response = await insert(path, body);
    expect(response).toMatchObject({ status, body: { code, details: { path: at } } });
    expect(
      await rowsOf("select from shop.orders union all select from shop.customers union all select from shop.tags"),
    ).toEqual([]);
  });
});
