import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { loadCatalog } from "../../../catalog/load-catalog.ts";
import { toClientTypes } from "../../../operations/contract/client-types.ts";
import { parseClientTypes } from "../../../operations/contract/parse-client-types.ts";
import { withClient } from "../../../postgres/client/with-client.ts";
import { useDatabase } from "../../database.ts";
import { REPOSITORY } from "../../repository.ts";

const SCHEMA = `
  create schema shop;
  create type shop.colour as enum ('red', 'light green');
  create type shop.size as (width int, height int);
  comment on column shop.size.width is '@notNull';
  create domain shop.sku as text check (value <> '');
  create table shop.makers (id int primary key, name text not null);
  create table shop.items (
    id bigint generated always as identity primary key,
    sku shop.sku not null,
    colour shop.colour,
    "odd name" shop.size not null default (1, 2),
    colours shop.colour[] not null default '{}',
    maker int not null constraint items_maker references shop.makers,
    price numeric not null default 0,
    gross numeric generated always as (price * 1.2) stored,
    details jsonb,
    required jsonb not null default '{}',
    during daterange
  );
  create view shop.red_items as select id, sku, price, maker from shop.items where colour = 'red';
  create view shop.totals as select maker, count(*) as items from shop.items group by maker;
  create function shop.label(shop.items) returns text return $1.sku;
  create function shop.find_items(part text, most int default 10, colour shop.colour default null)
    returns setof shop.items stable begin atomic select * from shop.items limit most; end;
  create function shop.count_items() returns bigint stable return (select count(*) from shop.items);
  comment on function shop.count_items is '@notNull
Counts.';
  create function shop.maker_of(item shop.items) returns setof shop.makers rows 1 stable begin atomic
    select * from shop.makers where id = item.maker; end;
  create function shop.take(text) returns text return $1;
  create function shop.take(int) returns int return $1;
  create function shop.spans() returns table (since date, amount int) stable begin atomic select current_date, 1; end;
  create function shop.nothing() returns void begin atomic; end;
`;

/** Compiles only if every type is exactly so: nullable where it is, and not where it is not. */
const PROGRAM = `
import { createClient } from "@supabase/supabase-js";
import type { Database, Enums, Tables, TablesInsert, TablesUpdate } from "./database.types.ts";

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
function same<A, B>(..._: Same<A, B> extends true ? [] : ["not the same"]): void {}

same<Enums<"colour">, "red" | "light green">();
same<Tables<"items">["colour"], "red" | "light green" | null>();
same<Tables<"items">["odd name"], { width: number; height: number | null }>();
same<Tables<"items">["colours"], ("red" | "light green")[]>();
same<Tables<"items">["during"], string | null>();
same<Tables<"red_items">["sku"], string>();
same<Tables<"totals">["items"], number | null>();
same<Tables<"items">["label"], string | null>();
same<Database["shop"]["Functions"]["spans"]["Returns"], { since: string | null; amount: number | null }[]>();

type Item = Tables<"items">;
same<Database["shop"]["Functions"]["find_items"]["Returns"], Omit<Item, "label">[]>();
same<Database["shop"]["Functions"]["maker_of"]["Args"], { item: Omit<Item, "label"> }>();
same<Database["shop"]["Functions"]["take"], { Args: { "": string }; Returns: string | null }>();
// @ts-expect-error: it is a column that is computed, and cannot be called
type Uncalled = Database["shop"]["Functions"]["label"];

const insert: TablesInsert<"items"> = { sku: "a", maker: 1 };
const update: TablesUpdate<"red_items"> = { price: 3 };
// @ts-expect-error: it is generated
const generated: TablesInsert<"items"> = { sku: "a", maker: 1, gross: 2 };
// @ts-expect-error: null would be no JSON there
const withoutJson: TablesInsert<"items"> = { sku: "a", maker: 1, required: null };
// @ts-expect-error: it must be given
const incomplete: TablesInsert<"items"> = { sku: "a" };
same<TablesInsert<"totals">, never>();

const supabase = createClient<Database, "shop">("http://127.0.0.1", "key");
const { data: rows } = await supabase.from("items").select("id, sku, maker:makers(name)").limit(1);
same<NonNullable<typeof rows>[number], { id: number; sku: string; maker: { name: string } }>();
const { data: makers } = await supabase.from("makers").select("items(id)").single();
same<NonNullable<typeof makers>, { items: { id: number }[] }>();
const { data: amount } = await supabase.rpc("count_items");
same<typeof amount, number | null>();
const { data: found } = await supabase.rpc("find_items", { part: "a", colour: null }).select("sku");
same<typeof found, { sku: string }[] | null>();
const { data: parts } = await supabase.rpc("find_items", { part: "a" }).select("label, made_by:maker_of(name)");
same<typeof parts, { label: string | null; made_by: { name: string } | null }[] | null>();
await supabase.from("items").insert(insert);
await supabase.from("red_items").update(update).eq("id", 1);
// @ts-expect-error: there is no such column
await supabase.from("items").update({ wrong: 1 });
`;

let folder: string;
const database = useDatabase({ template: "empty" });
beforeAll(async () => {
  // The folder is in the repository, so that the client's package is found.
  folder = await mkdtemp(join(REPOSITORY, "node_modules/.client-types-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const RELATED_SCHEMA = `
  create schema trade;
  create schema stock;
  create type trade.state as enum ('open', 'closed');
  create table trade.customers (id int generated always as identity primary key, name text not null);
  create table trade.orders (
    id bigint generated by default as identity primary key, customer_id int references trade.customers, maker int not null references trade.customers,
    note text, state trade.state not null default 'open', total numeric not null default 0, tags text[] not null default '{}',
    details jsonb, due date
  );
  create table trade.lines (
    id int generated always as identity primary key, order_id bigint not null references trade.orders, sku text not null, quantity int not null default 1
  );
  create table trade.labels (id int generated by default as identity primary key, name text not null);
  create table trade.order_labels (order_id bigint references trade.orders, label_id int references trade.labels, primary key (order_id, label_id));
  create table trade.profiles (customer_id int primary key references trade.customers, bio text);
  create table trade.alone (id int primary key, "odd name" int);
  create view trade.open_orders as select id, note from trade.orders where state = 'open';
  create table stock.boxes (id int primary key, name text not null);
  create table stock.items (id int primary key, box_id int not null references stock.boxes);
`;

/** Each line that is wrong has a comment, which fails if it is right. */
const RELATED_PROGRAM = `
import { createClient } from "@supabase/supabase-js";
import type { Database, ExtendedDatabase, NestedInsert, NestedUpdate, OperatorUpdate, Operators, TablesInsert } from "./database.types.ts";

const inserted: NestedInsert<"orders"> = {
  note: "Gift",
  "customers!orders_maker_fkey": { name: "Ann", profiles: { bio: "likes tea" } },
  lines: [{ sku: "tea", quantity: 2 }, { sku: "cup" }],
  labels: [{ name: "new" }],
  order_labels: [{ label_id: 3 }, { labels: { name: "old" } }],
};
const ofLine: NestedInsert<"lines"> = { sku: "tea", orders: { maker: 1 } };
const inStock: NestedInsert<"items", "stock"> = { id: 1, boxes: { id: 2, name: "red" } };
const alone: NestedInsert<"alone"> = { id: 1 };
// @ts-expect-error: a required column
const noSku: NestedInsert<"orders"> = { lines: [{ quantity: 2 }] };
// @ts-expect-error: a value of another type
const textQuantity: NestedInsert<"orders"> = { lines: [{ sku: "tea", quantity: "2" }] };
// @ts-expect-error: no such relation
const noRelation: NestedInsert<"orders"> = { boxes: [] };
// @ts-expect-error: no such column
const noColumn: NestedInsert<"orders"> = { lines: [{ sku: "tea", colour: "red" }] };
// @ts-expect-error: two keys lead to this table
const ambiguous: NestedInsert<"orders"> = { customers: { name: "Ann" } };
// @ts-expect-error: many rows
const oneRow: NestedInsert<"orders"> = { lines: { sku: "tea" } };
// @ts-expect-error: one row
const manyRows: NestedInsert<"orders"> = { "customers!orders_maker_fkey": [{ name: "Ann" }] };
// @ts-expect-error: the key is not null
const noMaker: NestedInsert<"orders"> = { "customers!orders_maker_fkey": null };
const noCustomer: NestedInsert<"orders"> = { "customers!orders_customer_id_fkey": null };
// @ts-expect-error: it is not in this schema
const elsewhere: NestedInsert<"items"> = { id: 1 };
// @ts-expect-error: views have no nested bodies
const ofView: NestedInsert<"open_orders"> = { note: "x" };
// @ts-expect-error: the key of the row above is filled in for nested bodies only
const withoutKey: TablesInsert<"lines"> = { sku: "tea" };

const updated: NestedUpdate<"orders"> = { note: "x", lines: [{ id: 7, quantity: 3 }, { sku: "cup" }], labels: [{ id: 3 }] };
const ofCustomer: NestedUpdate<"customers"> = { profiles: { bio: "new" } };
const noProfile: NestedUpdate<"customers"> = { profiles: null };
// @ts-expect-error: it has no key, and lacks what a new row needs
const unkeyed: NestedUpdate<"orders"> = { lines: [{ quantity: 3 }] };
// @ts-expect-error: values only
const relative: NestedUpdate<"orders"> = { total: { $inc: 1 } };

const changed: OperatorUpdate<"orders"> = {
  total: { $inc: 1 }, tags: { $append: ["a", "b"] }, details: { $merge: { a: 1 } }, due: { $inc: "1 day" }, note: { $max: "x" }, state: { $set: "open" },
};
const plain: OperatorUpdate<"orders"> = { total: 3, tags: ["a"], details: { a: 1 }, note: null };
const removed: OperatorUpdate<"orders"> = { tags: { $remove: "a" }, details: { $unset: ["a"] }, total: { $mul: 2 }, due: { $set: null } };
// @ts-expect-error: text has no sum
const sumOfText: OperatorUpdate<"orders"> = { note: { $inc: "1 day" } };
// @ts-expect-error: a number has no items
const itemsOfNumber: OperatorUpdate<"orders"> = { total: { $append: 1 } };
// @ts-expect-error: no number
const textInc: OperatorUpdate<"orders"> = { total: { $inc: "1" } };
// @ts-expect-error: an item of another type
const wrongItem: OperatorUpdate<"orders"> = { tags: { $append: 1 } };
// @ts-expect-error: one operator for each column
const twoOperators: OperatorUpdate<"orders"> = { total: { $inc: 1, $mul: 2 } };
// @ts-expect-error: no such operator
const noOperator: OperatorUpdate<"orders"> = { total: { $add: 1 } };
// @ts-expect-error: no value of the enum
const noState: OperatorUpdate<"orders"> = { state: { $set: "shut" } };
// @ts-expect-error: a key takes no operator
const changedKey: OperatorUpdate<"orders"> = { id: { $inc: 1 } };
const increment: Operators<number> = { $inc: 1 };

const extended = createClient<ExtendedDatabase, "trade">("http://127.0.0.1", "key");
await extended.from("orders").insert({ maker: 1, note: "Gift", lines: [{ sku: "tea" }] }).setHeader("Prefer", "nested=insert");
await extended.from("orders").insert(inserted).setHeader("Prefer", "nested=insert, missing=default");
await extended.from("orders").insert([inserted, { note: "x", labels: [] }]);
await extended.from("orders").update(updated).setHeader("Prefer", "nested=upsert").eq("id", 1);
await extended.from("orders").update({ total: { $inc: 1 } }).setHeader("Prefer", "operators").eq("id", 1);
await extended.from("orders").update(changed).setHeader("Prefer", "operators").eq("id", 1);
// @ts-expect-error: a value of another type
await extended.from("orders").insert({ maker: 1, lines: [{ sku: 3 }] });
// @ts-expect-error: no such relation
await extended.from("orders").insert({ maker: 1, boxes: [] });
// @ts-expect-error: text has no sum
await extended.from("orders").update({ note: { $inc: 1 } });
const { data } = await extended.from("orders").select("id, lines(sku), maker:customers!orders_maker_fkey(name)").single();
same<NonNullable<typeof data>, { id: number; lines: { sku: string }[]; maker: { name: string } }>();
same<ExtendedDatabase["trade"]["Tables"]["orders"]["Row"], Database["trade"]["Tables"]["orders"]["Row"]>();

const supabase = createClient<Database, "trade">("http://127.0.0.1", "key");
await supabase.from("orders").insert({ maker: 1 });
// @ts-expect-error: Database is that of Supabase
await supabase.from("orders").insert({ maker: 1, lines: [] });
// @ts-expect-error: Database is that of Supabase
await supabase.from("orders").update({ total: { $inc: 1 } });

type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
function same<A, B>(..._: Same<A, B> extends true ? [] : ["not the same"]): void {}
`;

/** Returns the compiler's errors in a program that uses the types. */
async function objections(types: string, program: string): Promise<string> {
  await writeFile(join(folder, "database.types.ts"), types);
  await writeFile(join(folder, "program.ts"), program);
  const strict = ["--noEmit", "--strict", "--skipLibCheck", "--allowImportingTsExtensions"];
  const modern = ["--target", "esnext", "--module", "nodenext", "--types", "node"];
  const files = [join(folder, "program.ts")];
  return promisify(execFile)("node_modules/.bin/tsc", ["--ignoreConfig", ...strict, ...modern, ...files], {
    cwd: REPOSITORY,
  }).then(
    () => "",
    (error: { stdout: string; stderr: string }) => error.stdout + error.stderr,
  );
}

describe("toClientTypes", () => {
  test("describes a schema as supabase-js expects, with true nullability", async () => {
    const types = await withClient(database.ownerUrl, async (client) => {
      await client.query(SCHEMA);
      const options = { schemas: ["shop"], extraSearchPath: [], loginRole: "postgres" };
      return toClientTypes((await loadCatalog(client, options)).catalog);
    });
    expect(await objections(types, PROGRAM)).toBe("");
    const wrong = PROGRAM.replace("{ sku: string }[] | null", "{ sku: number }[] | null");
    expect(await objections(types, wrong)).toContain("error TS2554: Expected 1 arguments");
  });

  test("has types of nested bodies and operators beside that of supabase-js", async () => {
    const types = await withClient(database.ownerUrl, async (client) => {
      await client.query(RELATED_SCHEMA);
      const options = { schemas: ["trade", "stock"], extraSearchPath: [], loginRole: "postgres" };
      return toClientTypes((await loadCatalog(client, options)).catalog);
    });
    expect(await objections(types, RELATED_PROGRAM)).toBe("");
    expect(parseClientTypes(types)).toEqual(parseClientTypes(types.slice(0, types.indexOf("type Default ="))));
  });
});
