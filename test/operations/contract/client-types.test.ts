import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { loadCatalog } from "../../../catalog/load-catalog.ts";
import { toClientTypes } from "../../../operations/contract/client-types.ts";
import { withClient } from "../../../postgres/client/with-client.ts";
import { cloneDatabase } from "../../database.ts";
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

let database: Awaited<ReturnType<typeof cloneDatabase>>;
let folder: string;
beforeAll(async () => {
  database = await cloneDatabase("empty");
  // Within the repository, where the client's package is found.
  folder = await mkdtemp(join(REPOSITORY, "node_modules/.client-types-"));
});
afterAll(async () => {
  await rm(folder, { recursive: true, force: true });
  await database.drop();
});

/** What the compiler objects to in a program that uses the types. */
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
});
