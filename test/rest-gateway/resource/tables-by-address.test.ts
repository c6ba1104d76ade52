import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openResources, type Resources } from "./open-resources.ts";

let resources: Resources;
afterAll(() => resources.close());

describe("a table that nobody may read", () => {
  beforeAll(async () => {
    resources = await openResources({
      sql: `
        create table public."Users" (id int primary key);
        create table public."Articles" (id int primary key);
        create schema shop;
        grant usage on schema shop to anon;
        create table shop.comments (id int primary key)`,
      settings: { PGRST_DB_SCHEMAS: "shop,public" },
    });
    await resources.addUser("Ada");
  });

  test("takes no address from one that somebody may", async () => {
    const { status, body } = await resources.ask("/users");
    expect([status, body.map(({ name }: { name: string }) => name)]).toEqual([200, ["Ada"]]);
    for (const name of ["articles", "comments"]) {
      expect((await resources.ask(`/api/v1/${name}`)).status, name).toBe(200);
    }
    expect((await resources.ask("/openapi.json")).body.paths).toHaveProperty("/users");
  });

  test("loses the address that it had when another one is made", async () => {
    const { owner, ask, seen } = resources;
    await owner.query(`create table public."Fresh" (id int primary key)`);
    await owner.query("create table public.fresh (id int primary key); grant select on public.fresh to anon");
    await seen("/api/v1/fresh");
    expect((await ask("/api/v1/fresh")).status).toBe(200);
  });
});

describe("of two tables that somebody may read", () => {
  beforeAll(async () => {
    await resources.close();
    resources = await openResources({
      sql: `
        create schema shop;
        grant usage on schema shop to anon;
        create table public."Order_Lines" (id int primary key, of text default 'quoted');
        create table public.order_lines (id int primary key, of text default 'plain');
        create table public.parts (id int primary key, of text default 'public');
        create table shop."Parts" (id int primary key, of text default 'shop');
        create table public."A B" (id int primary key, of text default 'first');
        create table public."a b" (id int primary key, of text default 'second');
        insert into public."Order_Lines" values (1); insert into public.order_lines values (1);
        insert into public.parts values (1); insert into shop."Parts" values (1);
        insert into public."A B" values (1); insert into public."a b" values (1);
        grant select on all tables in schema shop to anon;
        grant select on public."Order_Lines", public.order_lines, public.parts, public."A B", public."a b" to anon`,
      settings: { PGRST_DB_SCHEMAS: "shop,public" },
    });
  });

  test.each([
    ["order-lines", "plain", "has the name that SQL takes without quotes"],
    ["parts", "shop", "is of the schema that is exposed first"],
    ["a-b", "first", "was created first"],
  ])("/api/v1/%s is the one, %s, that %s", async (address, expected) => {
    const { body } = await resources.ask(`/api/v1/${address}`);
    expect(body.data).toEqual([{ id: 1, of: expected }]);
  });
});

describe("of two functions of one name that take the row", () => {
  test("the one that was created first is the action", async () => {
    const { owner, ask, seen } = resources;
    await owner.query(`
      create table public.drafts (id int primary key);
      insert into public.drafts values (1);
      create function public.send(draft drafts, "to" text default 'all') returns text language sql as $$ select "to" $$;
      create function public.send(draft drafts) returns text language sql as $$ select 'nowhere' $$;
      create function public.closed(draft drafts) returns text language sql as $$ select 'closed' $$;
      revoke execute on function public.closed(drafts) from public;
      create function public.closed(draft drafts, n int default 1) returns text language sql as $$ select 'open' $$;
      grant execute on function public.send(drafts), public.send(drafts, text), public.closed(drafts, int) to anon;
      grant select on public.drafts to anon`);
    await seen("/api/v1/drafts/1");
    const act = (name: string, body: object) => ask(`/api/v1/drafts/1/${name}`, { method: "POST", body });
    expect((await act("send", { to: "Ann" })).body).toBe("Ann");
    expect((await act("closed", { n: 2 })).body).toBe("open");
  });
});
