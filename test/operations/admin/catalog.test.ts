import { readFile } from "node:fs/promises";
import { join } from "node:path";
import jwt from "jsonwebtoken";
import pg from "pg";
import { beforeAll, describe, expect, test } from "vitest";
import type { DatabaseDescription, DescribedTable } from "../../../catalog/database-description.ts";
import { useClient, useDatabase } from "../../database.ts";
import { REPOSITORY } from "../../repository.ts";
import { SECRET } from "../../secret.ts";
import { useService } from "../../serve.ts";
import { until } from "../../until.ts";

const database = useDatabase();
const owner = useClient(database.ownerUrl);
beforeAll(async () => {
  await owner.query("create schema odd; set search_path = odd, public");
  const odd = await readFile(join(REPOSITORY, "test/data/schemas/odd.sql"), "utf8");
  await owner.query(odd.replaceAll("public.", "odd."));
  await owner.query(MORE);
  await owner.query("reset search_path");
});
const service = useService({ database, settings: { STUDIO: "administrators" } });

/** Objects that the schema above lacks. */
const MORE = `
  create extension btree_gist;
  create table odd.rooms (
    room int, during tstzrange, constraint no_overlap exclude using gist (room with =, during with &&)
  );
  create foreign data wrapper nothing;
  create server elsewhere foreign data wrapper nothing;
  create foreign table odd.remote (id int options (column_name 'ID')) server elsewhere;
  create type odd.place as (street text, "house number" int);
  create table odd.described (
    id int generated always as identity primary key, place odd.place, name text collate "C" default 'it''s', moods odd.mood[],
    constraint "no ""empty"" name" check (name <> '')
  );
  comment on table odd.described is 'with a comment';
  comment on column odd.described.name is 'the name';
  create index on odd.described (lower(name), id) where id > 7;
  alter table odd.described enable row level security;
  create policy "read ""some""" on odd.described as restrictive for select to anon, authenticated using (id > 3);
  grant select, update (name) on odd.described to anon;
  create function odd.touch() returns trigger language plpgsql as $$ begin return new; end $$;
  create trigger "touch it" before update of name on odd.described for each row when (old.name is null) execute function odd.touch();
  alter table odd.described disable trigger "touch it";
  create function odd.add(a text, variadic more text[]) returns text language sql security definer return a;
  create procedure odd.work(inout done int default 3) language sql as 'select 1';
  create aggregate odd.total(int) (sfunc = int4pl, stype = int);
  create view odd.descriptions as select name from odd.described where id > 7;
  create policy "by description" on odd.notes for select using (exists (select from odd.described where described.id = notes.flight_id));
  create function odd.described_name(n int) returns text begin atomic select name from odd.described where id = n; end;
  create table odd."</script>""; drop table x --" ("<b>'" int primary key, "\\" text);
  alter publication supabase_realtime add table odd.described;
  insert into odd.parts select n, 2020 from generate_series(1, 10) n;
  analyze odd.parts_all;
`;

const tokenOf = (claims: object) => jwt.sign(claims, SECRET);
const ADMINISTRATOR = { role: "admin", sub: "1" };

function request(query = "", headers: Record<string, string> = { authorization: `Bearer ${tokenOf(ADMINISTRATOR)}` }) {
  return fetch(`${service.url}/admin/v1/catalog${query}`, { headers });
}

async function readCatalog(query = ""): Promise<DatabaseDescription> {
  const response = await request(query);
  expect(response.status).toBe(200);
  return (await response.json()) as DatabaseDescription;
}

async function readTable(name: string): Promise<DescribedTable> {
  const { tables } = await readCatalog("?schema=odd");
  return tables.find((table) => table.name === name)!;
}

describe("GET /admin/v1/catalog", () => {
  test("only administrators get it", async () => {
    const statusOf = async (claims: object | null) =>
      (await request("", claims ? { authorization: `Bearer ${tokenOf(claims)}` } : {})).status;
    expect(await statusOf(null)).toBe(401);
    expect(await statusOf({ role: "authenticated", sub: "2" })).toBe(403);
    expect(await statusOf({ role: "service_role" })).toBe(403);
    expect(await statusOf(ADMINISTRATOR)).toBe(200);
  });

  test("the response is not cached by browsers, and has a tag by which an unchanged catalogue is 304", async () => {
    const authorization = `Bearer ${tokenOf(ADMINISTRATOR)}`;
    let tag = "";
    // Statistics of the tables above may still arrive.
    await until(async () => {
      const response = await request("?schema=odd", { authorization, "if-none-match": tag });
      const text = await response.text();
      if (response.status === 304) expect(text).toBe("");
      else expect(response.headers.get("cache-control")).toBe("no-store");
      tag = response.headers.get("etag")!;
      return response.status === 304;
    });
    expect(tag).toMatch(/^W\/"/);
    await owner.query("create table odd.newcomer ()");
    const changed = await request("?schema=odd", { authorization, "if-none-match": tag });
    expect(changed.status).toBe(200);
    await owner.query("drop table odd.newcomer");
  });

  test("the response is compressed for clients that accept it", async () => {
    const authorization = `Bearer ${tokenOf(ADMINISTRATOR)}`;
    const [compressed, plain] = await Promise.all(
      ["br", "identity"].map((accepted) => request("?schema=odd", { authorization, "accept-encoding": accepted })),
    );
    expect(compressed!.headers.get("content-encoding")).toBe("br");
    expect(plain!.headers.get("content-encoding")).toBeNull();
    const names = (description: unknown) => (description as DatabaseDescription).tables.map(({ name }) => name);
    const tables = names(await compressed!.json());
    expect(tables).toContain("types");
    expect(tables).toEqual(names(await plain!.json()));
  });

  test("schemas of Postgres are left out, and those of the service are marked", async () => {
    const { schemas, tables } = await readCatalog();
    const internal = new Map(schemas.map(({ name, internal }) => [name, internal]));
    for (const name of ["auth", "api", "content_service", "storage"]) expect(internal.get(name)).toBe(true);
    expect(internal.get("public")).toBe(false);
    expect(schemas.filter(({ exposed }) => exposed).map(({ name }) => name)).toEqual(["public"]);
    expect([...internal.keys()].filter((name) => /^pg_|information_schema/.test(name))).toEqual([]);
    expect(tables.some(({ schema, name }) => schema === "auth" && name === "users")).toBe(true);
    expect(tables.find(({ schema, name }) => schema === "public" && name === "users")?.exposed).toBe(true);
    expect(tables.filter(({ schema, exposed }) => schema !== "public" && exposed)).toEqual([]);
  });

  test("one schema can be asked for; one that does not exist is 404", async () => {
    const { tables } = await readCatalog("?schema=odd");
    expect(new Set(tables.map(({ schema }) => schema))).toEqual(new Set(["odd"]));
    for (const name of ["nowhere", "pg_catalog", 'x"); drop table y --']) {
      expect((await request(`?schema=${encodeURIComponent(name)}`)).status).toBe(404);
    }
  });

  test("columns have their types, defaults, labels and comments", async () => {
    const { columns, primary_key: key, comment } = await readTable("described");
    expect([key, comment]).toEqual([["id"], "with a comment"]);
    const [id, place, name, moods] = columns;
    expect(id).toMatchObject({ type: "integer", nullable: false, identity: "always", type_kind: "base" });
    expect(place).toMatchObject({
      type: "odd.place",
      type_kind: "composite",
      type_name: { schema: "odd", name: "place" },
    });
    expect(name).toMatchObject({ default: "'it''s'::text", comment: "the name", collation: '"C"' });
    expect(name?.grants).toEqual([{ role: "anon", privileges: ["update"] }]);
    expect(moods).toMatchObject({
      type: "odd.mood[]",
      type_kind: "array",
      labels: expect.arrayContaining(["so-so", ""]),
    });
    const types = await readTable("types");
    const column = (name: string) => types.columns.find((each) => each.name === name);
    expect(column("positive")).toMatchObject({ type: "odd.positive", base_type: "integer", type_kind: "base" });
    expect(column("short_text")?.max_length).toBe(20);
    expect(column("twice")?.generated).toEqual({ kind: "stored", expression: "(7 * 2)" });
  });

  test("a table has its constraints, indexes, policies, triggers and privileges", async () => {
    const table = await readTable("described");
    expect(table.constraints).toMatchObject([
      { name: "described_pkey", kind: "primary key", columns: ["id"], definition: "PRIMARY KEY (id)" },
      { name: 'no "empty" name', kind: "check", columns: ["name"], valid: true },
    ]);
    expect(table.indexes).toMatchObject([
      { name: "described_pkey", constraint: "described_pkey", unique: true, columns: ["id"] },
      { constraint: null, columns: [null, "id"], predicate: "(id > 7)", method: "btree", bytes: 8192, scans: 0 },
    ]);
    expect(table.policies).toMatchObject([
      {
        name: 'read "some"',
        command: "select",
        permissive: false,
        roles: ["anon", "authenticated"],
        using: "(id > 3)",
      },
    ]);
    expect(table.row_security).toBe("enabled");
    expect(table.lacks_administrator_policy).toBe(true);
    expect(table.published).toBe(true);
    expect(table.triggers).toMatchObject([
      { name: "touch it", enabled: "disabled", function: { schema: "odd", name: "touch" } },
    ]);
    expect(table.triggers[0]?.definition).toContain("BEFORE UPDATE OF name");
    expect(table.grants).toContainEqual({ role: "anon", privileges: ["select"] });
  });

  test("a table has what uses its columns", async () => {
    const { dependents } = await readTable("described");
    expect(dependents).toEqual([
      { kind: "function", schema: "odd", name: "described_name", of: null, columns: ["id", "name"] },
      { kind: "policy", schema: "odd", name: "by description", of: "notes", columns: ["id"] },
      { kind: "policy", schema: "odd", name: 'read "some"', of: "described", columns: ["id"] },
      { kind: "trigger", schema: "odd", name: "touch it", of: "described", columns: ["name"] },
      { kind: "view", schema: "odd", name: "descriptions", of: null, columns: ["id", "name"] },
    ]);
  });

  test("foreign keys name both sides, also composite ones and those of a table to itself", async () => {
    expect((await readTable("details_of_details")).foreign_keys).toMatchObject([
      {
        columns: ["order", "select"],
        target: { schema: "odd", name: "order details" },
        target_columns: ["order", "select"],
      },
    ]);
    const flights = await readTable("flights");
    expect(flights.foreign_keys.map(({ columns, target }) => [columns[0], target.name]).sort()).toEqual([
      ["city", "cities"],
      ["from_city", "cities"],
      ["return_flight", "flights"],
      ["to_city", "cities"],
    ]);
    const notes = await readTable("notes");
    expect(notes.constraints.find(({ kind }) => kind === "foreign key")?.valid).toBe(false);
  });

  test("a table of which Postgres has no statistics has no estimate, and an empty one has no rows", async () => {
    const uncounted = "odd.uncounted";
    await owner.query("set track_counts = off");
    await owner.query(
      `create table ${uncounted} with (autovacuum_enabled = false) as select generate_series(1, 9) as id`,
    );
    await owner.query("reset track_counts");
    await until(async () => (await readTable("uncounted").catch(() => null)) != null);
    expect((await readTable("uncounted")).estimated_rows).toBeNull();
    expect((await readTable("described")).estimated_rows).toBe(0);
    await owner.query(`analyze ${uncounted}`);
    expect((await readTable("uncounted")).estimated_rows).toBe(9);
  });

  test("partitions name their table, which has their rows and bytes together", async () => {
    const parts = await readTable("parts");
    const partition = await readTable("parts_all");
    expect(parts).toMatchObject({ kind: "partitioned table", partition_key: "RANGE (year)", estimated_rows: 10 });
    expect(partition).toMatchObject({ parents: [{ schema: "odd", name: "parts" }], estimated_rows: 10 });
    expect(partition.partition_bound).toBe("FOR VALUES FROM (MINVALUE) TO (MAXVALUE)");
    expect(parts.bytes).toBe(partition.bytes);
    expect(partition.bytes).toBeGreaterThan(0);
    expect(partition.constraints.filter(({ inherited }) => inherited).length).toBeGreaterThan(0);
  });

  test("views, materialized views and foreign tables have what is particular to them", async () => {
    const view = await readTable("flight_names");
    expect(view).toMatchObject({ kind: "view", estimated_rows: null, bytes: null, changes: [] });
    expect(view.definition).toContain("JOIN odd.cities");
    expect(view.columns.find(({ name }) => name === "from_city")?.origin).toEqual({
      ...{ schema: "odd", name: "flights", column: "from_city" },
    });
    expect((await readTable("city_counts")).kind).toBe("materialized view");
    expect(await readTable("remote")).toMatchObject({ kind: "foreign table", server: "elsewhere" });
    expect((await readTable("rooms")).constraints).toMatchObject([{ name: "no_overlap", kind: "exclude" }]);
    expect((await readTable("visits")).unlogged).toBe(true);
  });

  test("functions have their overloads, arguments and text", async () => {
    const { functions } = await readCatalog("?schema=odd");
    const named = (name: string) => functions.filter((each) => each.name === name);
    const overloads = named("add");
    expect(overloads.map(({ signature }) => signature)).toEqual([
      "a integer, b integer",
      "a text, VARIADIC more text[]",
    ]);
    expect(overloads[0]?.inputs).toEqual([
      { name: "a", type: "integer", mode: "in", default: null },
      { name: "b", type: "integer", mode: "in", default: "2" },
    ]);
    expect(overloads[1]).toMatchObject({ security_definer: true, language: "sql" });
    expect(overloads[1]?.inputs[1]).toMatchObject({ mode: "variadic" });
    expect(named("touch")).toMatchObject([{ returns: "trigger", exposed: false }]);
    expect(named("touch")[0]?.definition).toContain("begin return new; end");
    expect(named("work")).toMatchObject([{ kind: "procedure", inputs: [{ name: "done", mode: "inout" }] }]);
    expect(named("total")).toMatchObject([{ kind: "aggregate", definition: null }]);
    // Functions of extensions are left out.
    expect(named("hstore_to_json")).toEqual([]);
    const everywhere = await readCatalog();
    expect(everywhere.functions.some(({ schema, exposed }) => schema === "public" && exposed)).toBe(true);
  });

  test("types, sequences, extensions, publications and roles are listed", async () => {
    const { types, sequences, extensions, publications, roles } = await readCatalog("?schema=odd");
    expect(types.find(({ name }) => name === "mood")).toMatchObject({
      kind: "enum",
      labels: expect.arrayContaining([""]),
    });
    expect(types.find(({ name }) => name === "positive")).toMatchObject({ kind: "domain", base_type: "integer" });
    expect(types.find(({ name }) => name === "place")?.attributes.map(({ name }) => name)).toEqual([
      "street",
      "house number",
    ]);
    expect(sequences.find(({ name }) => name === "described_id_seq")?.owned_by).toEqual({
      ...{ schema: "odd", name: "described", column: "id" },
    });
    expect(extensions.map(({ name }) => name)).toContain("btree_gist");
    const realtime = publications.find(({ realtime }) => realtime);
    expect(realtime?.tables).toContainEqual({ schema: "odd", name: "described" });
    expect(roles.find(({ name }) => name === "admin")).toMatchObject({
      ...{ settable: true, inherits: expect.arrayContaining(["admin", "authenticated"]) },
    });
    expect(roles.find(({ name }) => name === "anon")?.inherits).toEqual(["anon"]);
  });

  test("names that would be SQL or HTML are texts", async () => {
    const table = await readTable('</script>"; drop table x --');
    expect(table.columns.map(({ name }) => name)).toEqual(["<b>'", "\\"]);
    expect(table.primary_key).toEqual(["<b>'"]);
  });

  test("while a migration has locked a table, the response reports the lock", async () => {
    const migration = new pg.Client({ connectionString: database.ownerUrl });
    await migration.connect();
    try {
      await migration.query("begin; lock table odd.described in access exclusive mode");
      const response = await request();
      expect(response.status).toBe(503);
      expect(await response.json()).toMatchObject({ error: { message: expect.stringContaining("locked a table") } });
    } finally {
      await migration.end();
    }
    expect((await request()).status).toBe(200);
  });
});
