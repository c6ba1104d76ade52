import { beforeEach, describe, expect, test } from "vitest";
import { useClient, useDatabase } from "../../database.ts";
import { useFixture } from "../../fixture.ts";
import { useService } from "../../serve.ts";
import { openClient, type TestRequest } from "./client.ts";

const SCHEMA = `
  create schema stock;
  create domain stock.amount as integer check (value >= 0);
  create table stock.items (
    id integer generated always as identity primary key, sku text unique, name text not null default 'unnamed', amount stock.amount,
    price numeric(8, 2), weight float8, tags text[], data jsonb, plain json, due timestamptz, owner text not null default 'authenticated'
  );
  create table stock.rates (country char(2), day date, rate numeric, primary key (country, day));
  create table stock.payload ("position" integer primary key, updated text);
  create table stock.keyless (a integer, b text);
  create table stock.odd (id integer primary key, "$inc n" integer, n integer, note text);
  create view stock.names with (security_invoker) as select id, name as label from stock.items;
  create function stock.label(stock.items) returns text stable language sql as $$ select $1.sku || ': ' || $1.name $$;
  alter table stock.items enable row level security;
  create policy own on stock.items using (owner = current_user) with check (owner = current_user and name is distinct from 'forbidden');
  grant execute on function stock.label to authenticated;
  grant usage on schema stock to anon, authenticated, service_role;
  grant select, update on all tables in schema stock to authenticated, service_role;
  grant select (id, sku), update (name) on stock.items to anon;
`;

const database = useDatabase({ sql: SCHEMA });
const owner = useClient(database.ownerUrl);
const service = useService({
  database,
  settings: { PGRST_DB_SCHEMAS: "stock", PGRST_DB_PLAN_ENABLED: "true" },
});
const client = useFixture(() => openClient(service.url, { as: { role: "authenticated" } }));

beforeEach(async () => {
  await owner.query(`
    truncate stock.items, stock.rates, stock.payload, stock.keyless, stock.odd restart identity;
    insert into stock.items (sku, name, amount, price, weight, tags, data, plain, due, owner) values
      ('a', 'one', 1, 1.50, 0.5, '{x,y}', '{"k": 1, "l": {"m": 1}}', '{"k": 1}', '2026-01-01Z', 'authenticated'),
      ('b', 'two', 2, 2.50, null, null, null, null, null, 'authenticated'),
      ('c', 'three', null, null, null, '{}', '[1]', '[1]', null, 'authenticated'),
      ('d', 'hidden', 4, 4.50, 4, '{z}', '{}', '{}', null, 'somebody');
    insert into stock.rates values ('de', '2026-01-01', 1), ('de', '2026-01-02', 2), ('fr', '2026-01-01', 3);
    insert into stock.payload values (1, 'no'), (2, 'no');
    insert into stock.keyless values (1, 'one'), (1, 'uno'), (2, 'two');
    insert into stock.odd values (1, 10, 20, 'x')`);
});

type Patch = TestRequest & { readonly prefer?: string };
const patch = (path: string, body: unknown, { prefer = "return=representation", ...rest }: Patch = {}) =>
  client.ask(path, {
    method: "PATCH",
    body: typeof body === "string" || Buffer.isBuffer(body) ? body : JSON.stringify(body),
    ...rest,
    headers: { Prefer: prefer, ...rest.headers },
  });
const operate = (path: string, body: unknown, more: Patch = {}) =>
  patch(path, body, { ...more, prefer: `operators, ${more.prefer ?? "return=representation"}` });

const rowsOf = async (query: string) => (await owner.query(query)).rows;

describe("a PATCH with a list", () => {
  test("gives each row its own values by the primary key, and returns them in the order of the list", async () => {
    const { status, body, headers } = await patch(
      "/items?select=id,name,amount",
      [
        { id: 3, name: "III", amount: 30 },
        { id: 1, name: "I", amount: 10 },
      ],
      { prefer: "return=representation, count=exact" },
    );
    expect([status, headers["content-range"]]).toEqual([200, "0-1/2"]);
    expect(body).toEqual([
      { id: 3, name: "III", amount: 30 },
      { id: 1, name: "I", amount: 10 },
    ]);
    expect(await rowsOf("select name from stock.items order by id")).toEqual(
      ["I", "two", "III", "hidden"].map((name) => ({ name })),
    );
  });

  test("finds rows by the columns of on_conflict, and by keys of several columns", async () => {
    expect(
      (
        await patch("/items?on_conflict=sku&select=label", [
          { sku: "b", name: "B" },
          { sku: "a", name: "A" },
        ])
      ).body,
    ).toEqual([{ label: "b: B" }, { label: "a: A" }]);
    const rates = [
      { country: "fr", day: "2026-01-01", rate: 30 },
      { country: "de", day: "2026-01-02", rate: 20.5 },
    ];
    expect((await patch("/rates", rates)).body).toEqual(rates);
    expect((await patch("/keyless?on_conflict=a&order=b&select=b", [{ a: 1, b: "1" }])).body).toEqual([
      { b: "1" },
      { b: "1" },
    ]);
  });

  test("returns nothing unless it is requested", async () => {
    const { status, text, headers } = await patch("/items", [{ id: 1, name: "I" }], { prefer: "count=exact" });
    expect([status, text, headers["content-range"]]).toEqual([204, "", "0-0/1"]);
  });

  test("skips rows that do not exist, that policies hide, and that the conditions exclude", async () => {
    const list = [1, 2, 4, 99].map((id) => ({ id, name: "new" }));
    expect((await patch("/items?select=id", list)).body).toEqual([{ id: 1 }, { id: 2 }]);
    const filtered = await patch("/items?select=id&on_conflict=id&amount=gt.1", list);
    expect(filtered.body).toEqual([{ id: 2 }]);
    expect(await rowsOf("select name from stock.items where id = 4")).toEqual([{ name: "hidden" }]);
    const service = await patch("/items?select=id", list, { as: { role: "service_role" } });
    expect(service.body).toEqual([{ id: 1 }, { id: 2 }, { id: 4 }]);
  });

  test("changes the columns of `columns` only, and gives missing ones null or their default", async () => {
    const list = JSON.stringify([
      { id: 1, name: "I", amount: 7 },
      { id: 2, amount: 8 },
    ]);
    const path = "/items?columns=id,name&select=id,name,amount";
    expect((await patch(path, list, { prefer: "return=representation, missing=default" })).body).toEqual([
      { id: 1, name: "I", amount: 1 },
      { id: 2, name: "unnamed", amount: 2 },
    ]);
    expect(await patch(path, list)).toMatchObject({
      status: 400,
      body: { code: "23502", details: { path: "1/name" } },
    });
  });

  test("works through a view, from CSV, and where a table has the names of the statement", async () => {
    expect((await patch("/names?on_conflict=id", [{ id: 1, label: "I" }])).body).toEqual([{ id: 1, label: "I" }]);
    const csv = await patch("/items?select=id,name", "id,name\n1,one more\n", {
      headers: { "Content-Type": "text/csv" },
    });
    expect(csv.body).toEqual([{ id: 1, name: "one more" }]);
    expect((await patch("/payload", [{ position: 2, updated: "yes" }])).body).toEqual([
      { position: 2, updated: "yes" },
    ]);
  });

  test("counts for max-affected, and is refused as one object with several rows", async () => {
    const list = [1, 2].map((id) => ({ id, name: "new" }));
    const prefer = "handling=strict, max-affected=1";
    expect(await patch("/items", list, { prefer })).toMatchObject({ status: 400, body: { code: "PGRST124" } });
    const headers = { Accept: "application/vnd.pgrst.object+json" };
    expect(await patch("/items", list, { headers })).toMatchObject({ status: 406, body: { code: "PGRST116" } });
    expect(await rowsOf("select from stock.items where name = 'new'")).toHaveLength(0);
  });

  test.each([
    [
      [
        { id: 1, name: "a" },
        { id: null, name: "b" },
      ],
      "PGRST197",
      "1",
    ],
    [
      [
        { id: 1, name: "a" },
        { id: 2, name: "b" },
        { id: "1", name: "c" },
      ],
      "PGRST198",
      "2",
    ],
  ])("refuses rows without a key and with the same key: %j", async (list, code, path) => {
    expect(await patch("/items", list)).toMatchObject({ status: 400, body: { code, details: { path } } });
    expect(await rowsOf("select from stock.items where name in ('a', 'b', 'c')")).toHaveLength(0);
  });

  test.each([
    [
      "a value that is none of the type",
      [
        { id: 1, amount: 1 },
        { id: 2, amount: "many" },
      ],
      "22P02",
      "1/amount",
    ],
    [
      "a violated domain",
      [
        { id: 1, amount: 1 },
        { id: 2, amount: -1 },
      ],
      "23514",
      "*/amount",
    ],
    [
      "a value that another row has",
      [
        { id: 1, sku: "x" },
        { id: 2, sku: "c" },
      ],
      "23505",
      "*/sku",
    ],
    [
      "a null",
      [
        { id: 1, name: "x" },
        { id: 2, name: null },
      ],
      "23502",
      "1/name",
    ],
  ])("names the row with %s", async (_problem, list, code, path) => {
    const { body } = await patch("/items?on_conflict=id", list);
    expect([body.code, body.details.path]).toEqual([code, path]);
    expect(await rowsOf("select from stock.items where amount = 1 and name = 'one' and sku = 'a'")).toHaveLength(1);
  });

  test("leaves a malformed list to Postgres, where `columns` names what it has", async () => {
    for (const list of ['[{"id": 1, "name": "x"}', '[{"id": 1}, 5]']) {
      const { status, body } = await patch("/items?columns=id,name", list);
      expect([status, body.code]).toEqual([400, expect.stringMatching(/^22/)]);
    }
  });

  test("requires the privileges of any update", async () => {
    const anonymous = { as: { role: "anon" }, prefer: "return=minimal" };
    expect((await patch("/items", [{ id: 1, name: "I" }], anonymous)).status).toBe(204);
    expect((await patch("/items", [{ id: 1, sku: "z" }], anonymous)).status).toBe(401);
    expect((await patch("/items?on_conflict=name", [{ name: "one", sku: "z" }], anonymous)).status).toBe(401);
    expect((await patch("/items", [{ id: 1, name: "forbidden" }])).body.code).toBe("42501");
  });

  test("keeps PostgREST's meaning without a key: a condition chooses the rows", async () => {
    const list = [{ name: "same" }];
    expect((await patch("/items?id=lt.3&select=id,name", list)).body).toEqual([
      { id: 1, name: "same" },
      { id: 2, name: "same" },
    ]);
    expect((await patch("/items", list)).body.code).toBe("21000");
    expect((await patch("/keyless", [{ a: 1, b: "x" }])).body.code).toBe("21000");
    expect((await patch("/items?on_conflict=id", [])).body).toEqual([]);
    expect((await patch("/items?on_conflict=sku", list)).body.code).toBe("PGRST197");
    expect((await patch("/items?on_conflict=id", [{ id: 1 }])).body.code).toBe("PGRST102");
    expect((await patch("/items?on_conflict=nothing", list)).body.code).toBe("PGRST204");
  });

  test("is one statement, which uses the index of the key", async () => {
    const { text } = await patch("/rates", [{ country: "de", day: "2026-01-01", rate: 5 }], {
      headers: { Accept: "application/vnd.pgrst.plan+text" },
    });
    expect(text).toContain("Update on rates");
  });
});

describe("operators", () => {
  test("change values from the values before", async () => {
    const { body, headers } = await operate(
      "/items?id=in.(1,2,3)&order=id&select=amount,price,weight,tags,data,plain,due",
      {
        amount: { $inc: 2 },
        price: { $mul: 1.1 },
        weight: { $max: 1 },
        tags: { $append: ["y", "z"] },
        data: { $append: { new: 1 } },
        plain: { $append: [2, 3] },
        due: { $inc: "1 day" },
      },
    );
    expect(headers["preference-applied"]).toBe("operators, return=representation");
    expect(body).toEqual([
      {
        ...{ amount: 3, price: 1.65, weight: 1, tags: ["x", "y", "y", "z"] },
        ...{ data: [{ k: 1, l: { m: 1 } }, { new: 1 }], plain: [{ k: 1 }, 2, 3], due: "2026-01-02T00:00:00+00:00" },
      },
      { amount: 4, price: 2.75, weight: 1, tags: ["y", "z"], data: [{ new: 1 }], plain: [2, 3], due: null },
      { amount: 2, price: null, weight: 1, tags: ["y", "z"], data: [1, { new: 1 }], plain: [1, 2, 3], due: null },
    ]);
  });

  test.each([
    ["name", { $min: "beta" }, "beta"],
    ["tags", { $prepend: "w" }, ["w", "x", "y"]],
    ["tags", { $remove: "x" }, ["y"]],
    ["data", { $merge: { l: 2, n: null } }, { k: 1, l: 2, n: null }],
    ["plain", { $merge: { l: 2 } }, { k: 1, l: 2 }],
    ["data", { $unset: ["l", "none"] }, { k: 1 }],
    ["data", { $prepend: [0] }, [0, { k: 1, l: { m: 1 } }]],
    ["data", { $set: { $inc: 1 } }, { $inc: 1 }],
    ["due", { $min: "2025-01-01Z" }, "2025-01-01T00:00:00+00:00"],
  ])("apply to %s: %j", async (column, value, expected) => {
    expect((await operate(`/items?id=eq.1&select=${column}`, { [column]: value })).body).toEqual([
      { [column]: expected },
    ]);
  });

  test("may differ from row to row, beside values", async () => {
    const list = [
      { id: 1, amount: { $inc: 5 }, name: { $max: "a" } },
      { id: 2, amount: 9, name: { $max: "z" } },
      { id: 3, amount: { $min: 3 }, name: { $set: "third" } },
    ];
    expect((await operate("/items?select=id,amount,name", list)).body).toEqual([
      { id: 1, amount: 6, name: "one" },
      { id: 2, amount: 9, name: "z" },
      { id: 3, amount: 3, name: "third" },
    ]);
  });

  test("lose no change of several clients", async () => {
    await Promise.all(Array.from({ length: 20 }, () => operate("/items?id=eq.1", { amount: { $inc: 1 } })));
    expect(await rowsOf("select amount from stock.items where id = 1")).toEqual([{ amount: 21 }]);
  });

  test("are values without the preference", async () => {
    const value = { $merge: { a: 1 } };
    expect((await patch("/items?id=eq.1&select=data", { data: value })).body).toEqual([{ data: value }]);
    expect((await patch("/items?id=eq.1", { amount: { $inc: 1 } })).body.code).toBe("22P02");
  });

  test.each([
    [{ amount: { $plus: 1 } }, "PGRST102", { path: "amount" }],
    [{ amount: { $inc: 1, $mul: 2 } }, "PGRST102", { path: "amount" }],
    [{ amount: { $inc: null } }, "PGRST102", { path: "amount" }],
    [{ data: { $merge: 1.0 } }, "PGRST102", { path: "data" }],
    [{ name: { $inc: 1 } }, "PGRST199", expect.stringContaining("'$inc' cannot be applied to 'name'")],
    [{ amount: { $append: 1 } }, "PGRST199", expect.stringContaining("stock.amount")],
    [{ amount: { $inc: "many" } }, "22P02", null],
    [{ amount: { $inc: -2 } }, "23514", null],
  ])("are refused where they are not possible: %j", async (body, code, details) => {
    expect((await operate("/items?id=eq.1", body)).body).toMatchObject({ code, details });
  });

  test("are refused with the position in a list, on the key, and where a column has the name of an operand", async () => {
    const list = [
      { id: 1, amount: 1 },
      { id: 2, amount: { $plus: 1 } },
    ];
    expect((await operate("/items", list)).body).toMatchObject({ code: "PGRST102", details: { path: "1/amount" } });
    expect((await operate("/items?on_conflict=id", [{ id: { $inc: 1 }, amount: 1 }])).body.code).toBe("PGRST199");
    expect((await operate("/odd?id=eq.1", { n: { $inc: 1 } })).body.code).toBe("PGRST199");
    expect((await operate("/odd?id=eq.1&select=note", { note: { $max: "y" } })).body).toEqual([{ note: "y" }]);
    expect((await operate("/items?columns=amount&id=eq.1", "{")).body.code).toBe("PGRST102");
  });

  test("are refused in a body that is not UTF-8, which changes nothing", async () => {
    const notUtf8 = Buffer.from('{"name": {"$max": "z\xff"}}', "latin1");
    for (const path of ["/items?id=eq.1", "/items?id=eq.1&columns=name"]) {
      const { status, body } = await operate(path, notUtf8);
      expect([status, body.code]).toEqual([400, "22021"]);
    }
    expect(await rowsOf("select name from stock.items where id = 1")).toEqual([{ name: "one" }]);
  });

  test("require SELECT on the column, whose value they read", async () => {
    const anonymous = { as: { role: "anon" }, prefer: "return=minimal" };
    expect((await operate("/items?id=eq.1", { name: "I" }, anonymous)).status).toBe(204);
    expect((await operate("/items?id=eq.1", { name: { $max: "z" } }, anonymous)).status).toBe(401);
  });
});
