import fc from "fast-check";
import { pino } from "pino";
import { beforeAll, describe, expect, test } from "vitest";
import { loadCatalog } from "../../../../catalog/load-catalog.ts";
import { quotedName } from "../../../../postgres/client/quoted-name.ts";
import { withClient } from "../../../../postgres/client/with-client.ts";
import { tableAddresses } from "../../../../rest-gateway/resource/collections/collections.ts";
import { parseAddress } from "../../../../rest-gateway/resource/parse/address.ts";
import { useDatabase } from "../../../database.ts";
import { useFixture } from "../../../fixture.ts";
import { propertyRuns } from "../../../property-runs.ts";
import { openResources } from "../open-resources.ts";

describe("tables whose names clash", () => {
  const warnings: Record<string, string>[] = [];
  const isOfAddresses = ({ msg = "" }: { msg?: string }) => msg.startsWith("tables are at other addresses");
  const log = pino(
    {},
    {
      write: (line: string) => void [JSON.parse(line)].filter(isOfAddresses).map(({ tables }) => warnings.push(tables)),
    },
  );
  const resources = useFixture(() =>
    openResources({
      log,
      sql: `
        create schema shop;
        grant usage on schema shop to anon;
        create table public."Users" (id int primary key);
        create table public."Articles" (id int primary key);
        create table shop.comments (id int primary key);
        create table public."Order_Lines" (id int primary key, of text default 'first');
        create table public.order_lines (id int primary key, of text default 'second');
        create table public."ORDER LINES" (id int primary key, of text default 'third');
        create table public.parts (id int primary key, of text default 'public');
        create table shop."Parts" (id int primary key, of text default 'shop');
        create table shop.parts (id int primary key, of text default 'shop, second');
        create table public.things (id int primary key, of text default 'plain');
        create table public."Things" (id int primary key, of text default 'chosen');
        comment on table public."Things" is E'@address real things\nWhat there is.';
        create table public.nodes (id int primary key, of text default 'first');
        create table public."Nodes" (id int primary key, of text default 'at the root');
        comment on table public."Nodes" is '@root node';
        insert into public."Order_Lines" values (1); insert into public.order_lines values (1);
        insert into public."ORDER LINES" values (1); insert into public.parts values (1);
        insert into shop."Parts" values (1); insert into shop.parts values (1);
        insert into public.things values (1); insert into public."Things" values (1);
        insert into public.nodes values (1); insert into public."Nodes" values (1);
        grant select, insert, delete on all tables in schema shop to anon;
        grant select on public."Order_Lines", public.order_lines, public."ORDER LINES", public.parts, public.things,
          public."Things", public.nodes, public."Nodes" to anon`,
      settings: { PGRST_DB_SCHEMAS: "shop,public" },
    }),
  );
  beforeAll(() => resources.addUser("Ada"));

  test("leave the paths of older tables unchanged", async () => {
    const { status, body } = await resources.ask("/users");
    expect([status, body.map(({ name }: { name: string }) => name)]).toEqual([200, ["Ada"]]);
    for (const name of ["articles", "comments"]) {
      expect((await resources.ask(`/api/v1/${name}`)).status, name).toBe(200);
    }
    expect((await resources.ask("/openapi.json")).body.paths).toHaveProperty("/users");
  });

  test.each([
    ["order-lines", "first"],
    ["order-lines-2", "second"],
    ["order-lines-3", "third"],
    ["parts", "public"],
    ["shop-parts", "shop"],
    ["parts-2", "shop, second"],
    ["things", "plain"],
    ["real-things", "chosen"],
    ["nodes", "at the root"],
    ["nodes-2", "first"],
  ])("have paths of their own: /api/v1/%s is one, %s", async (address, expected) => {
    // Where a table is served at the root too, its lists are plain arrays.
    const { body } = await resources.ask(`/api/v1/${address}`);
    expect(body.data ?? body).toEqual([{ id: 1, of: expected }]);
  });

  test("keep their paths when another one is created", async () => {
    const { owner, ask, seen } = resources;
    await owner.query(`
      create table public."Fresh" (id int primary key, of text default 'first');
      insert into public."Fresh" values (1);
      grant select on public."Fresh" to anon`);
    await seen("/api/v1/fresh");
    await owner.query("create table public.fresh (id int primary key); grant select on public.fresh to anon");
    await seen("/api/v1/fresh-2");
    expect((await ask("/api/v1/fresh")).body.data).toEqual([{ id: 1, of: "first" }]);
    expect((await ask("/api/v1/fresh-2")).body.data).toEqual([]);
    expect(warnings.map((tables) => tables["public.fresh"])).toEqual([undefined, "/api/v1/fresh-2"]);
    expect(warnings[0]).toMatchObject({
      "shop.Parts": "/api/v1/shop-parts",
      "public.ORDER LINES": "/api/v1/order-lines-3",
    });
  });

  test("are selected by the schema in Accept-Profile and Content-Profile, and links use their paths", async () => {
    const { ask } = resources;
    const profile = (schema: string) => ({ "Accept-Profile": schema, "Content-Profile": schema });
    const rows = async (path: string, schema: string) => (await ask(path, { headers: profile(schema) })).body.data;
    expect(await rows("/api/v1/parts", "shop")).toEqual([{ id: 1, of: "shop" }]);
    expect(await rows("/api/v1/parts-2", "shop")).toEqual([{ id: 1, of: "shop, second" }]);
    expect(await rows("/api/v1/shop-parts", "shop")).toEqual([{ id: 1, of: "shop" }]);
    expect(await rows("/api/v1/parts", "public")).toEqual([{ id: 1, of: "public" }]);
    const { body } = await ask("/api/v1/parts?links=true", { headers: profile("shop") });
    expect(body.data[0]._links.self.href).toBe("/api/v1/shop-parts/1");
    expect(body.links.first).toContain("/api/v1/shop-parts?");
    const made = await ask("/api/v1/parts", { method: "POST", body: { id: 2 }, headers: profile("shop") });
    expect([made.status, made.headers.get("location")]).toEqual([201, "/api/v1/shop-parts/2"]);
    expect(made.headers.get("vary")).toContain("Accept-Profile");
    const gone = await ask("/api/v1/parts/2", { method: "DELETE", headers: profile("shop") });
    expect(gone.status).toBe(204);
    expect((await ask("/api/v1/order-lines", { headers: profile("shop") })).status).toBe(404);
    const unknown = await ask("/api/v1/parts", { headers: profile("private") });
    expect([unknown.status, unknown.body.error.code]).toEqual([406, "NOT_ACCEPTABLE"]);
    expect(unknown.body.error.message).toContain("shop, public");
  });
});

describe("of two functions with one name that take the row", () => {
  const resources = useFixture(openResources);

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

describe("tables with any names in several schemas", () => {
  const schemas = ["public", "shop", "Shop One"];
  const word = fc.constantFrom(
    "shop",
    "Shop",
    "parts",
    "PARTS",
    "one",
    "2",
    "_",
    "-",
    " ",
    ".",
    "/",
    "İ",
    "ß",
    "Σ",
    "é",
  );
  const tableName = fc.array(word, { minLength: 1, maxLength: 4 }).map((words) => words.join(""));
  const qualified = fc.tuple(fc.constantFrom(...schemas), tableName);
  const tables = fc.uniqueArray(qualified, {
    minLength: 8,
    maxLength: 24,
    selector: ([schema, name]) => `${schema} ${name}`,
  });

  const database = useDatabase({ template: "empty" });

  test("have exactly one path each, which no later table takes", async () => {
    await fc.assert(
      fc.asyncProperty(tables, async (made) => {
        await withClient(database.ownerUrl, async (client) => {
          const options = { schemas, extraSearchPath: [], loginRole: "authenticator" };
          const known = new Map<string, string>();
          await client.query(
            schemas
              .map(
                (schema) => `drop schema if exists ${quotedName(schema)} cascade; create schema ${quotedName(schema)};`,
              )
              .join(""),
          );
          for (const [index, [schema, name]] of made.entries()) {
            await client.query(`create table ${quotedName(schema, name)} (id int)`);
            if (index % 4 !== 3 && index !== made.length - 1) continue;
            const { tables: served } = tableAddresses((await loadCatalog(client, options, null)).catalog);
            const found = [...served].map(
              ([address, table]) => [JSON.stringify([table.schema, table.name]), address] as const,
            );
            // Each table is found once, and no two have one address.
            expect(new Set(found.map(([table]) => table))).toEqual(
              new Set(made.slice(0, index + 1).map((each) => JSON.stringify(each))),
            );
            expect(found.length).toBe(index + 1);
            for (const [table, address] of found) {
              expect(parseAddress(`/api/v1/${encodeURIComponent(address)}`).segments).toEqual([address]);
              expect(known.get(table) ?? address, table).toBe(address);
              known.set(table, address);
            }
          }
        });
      }),
      { numRuns: propertyRuns(12) },
    );
  });
});
