import { readFile } from "node:fs/promises";
import { join } from "node:path";
import jwt from "jsonwebtoken";
import pg from "pg";
import { beforeAll, describe, expect, test } from "vitest";
import type { DatabaseDescription, DescribedTable } from "../../studio/api/catalog.ts";
import { tableDefinition } from "../../studio/schema/table-definition.ts";
import { identifier } from "../../studio/sql-text.ts";
import { useClient, useDatabase } from "../database.ts";
import { REPOSITORY } from "../repository.ts";
import { SECRET } from "../secret.ts";
import { useService } from "../serve.ts";

const MORE = `
  create function odd.touch() returns trigger language plpgsql as 'begin return new; end';
  create table odd.everything (
    id int generated always as identity primary key, "select" text collate "C" default e'it''s \\\\ "x"' not null, n int default 7,
    constraint "no ""empty""" check ("select" <> ''), exclude using btree (n with =)
  );
  comment on table odd.everything is e'it''s a \\\\ comment';
  comment on column odd.everything."select" is 'reserved';
  comment on constraint "no ""empty""" on odd.everything is 'not empty';
  create index everything_lower on odd.everything (lower("select")) where id > 7;
  comment on index odd.everything_lower is 'an index';
  alter table odd.everything enable row level security;
  alter table odd.everything force row level security;
  create policy "read ""some""" on odd.everything as restrictive for select to anon, authenticated using (id > 3);
  create policy writes on odd.everything for all to public using (true) with check (n > 3);
  comment on policy writes on odd.everything is 'a policy';
  grant select, update ("select") on odd.everything to anon;
  grant all on odd.everything to service_role;
  create trigger "touch it" before update of n on odd.everything for each row when (old.n is null) execute function odd.touch();
  comment on trigger "touch it" on odd.everything is 'a trigger';
  alter table odd.everything disable trigger "touch it";
  create view odd.own with (security_invoker = true) as select id from odd.everything;
  create table odd.child (extra text) inherits (odd.no_key);
`;

const database = useDatabase();
const owner = useClient(database.ownerUrl);
beforeAll(async () => {
  const odd = await readFile(join(REPOSITORY, "test/data/schemas/odd.sql"), "utf8");
  await owner.query(`create schema odd; set search_path = odd, public; ${odd.replaceAll("public.", "odd.")} ${MORE}`);
  await owner.query("reset search_path");
});
const service = useService({ database });

async function readTables(): Promise<readonly DescribedTable[]> {
  const token = jwt.sign({ role: "admin" }, SECRET);
  const headers = { authorization: `Bearer ${token}` };
  const response = await fetch(`${service.url}/admin/v1/catalog?schema=odd`, { headers });
  return ((await response.json()) as DatabaseDescription).tables;
}

/** Leaves out sizes, usage, and objects that were dropped with it, which the SQL does not restore. */
const contentOf = (table: DescribedTable) => ({
  ...table,
  ...{ bytes: null, estimated_rows: null, replica_identity: "default", dependents: [] },
  indexes: table.indexes.map((index) => ({ ...index, bytes: null, scans: 0 })),
});

describe("the SQL of a table", () => {
  test("creates each kind of table and view as it was", async () => {
    const names = (await readTables()).map(({ name }) => name);
    expect(names.length).toBeGreaterThan(20);
    for (const name of names) {
      const before = (await readTables()).find((table) => table.name === name);
      // Dropped with another one.
      if (!before) continue;
      const kind = before.kind === "partitioned table" ? "table" : before.kind;
      await owner.query(`drop ${kind} ${pg.escapeIdentifier("odd")}.${pg.escapeIdentifier(name)} cascade`);
      await owner.query(tableDefinition(before));
      const after = (await readTables()).find((table) => table.name === name)!;
      expect(contentOf(after), tableDefinition(before)).toEqual(contentOf(before));
    }
  });

  test("quotes each name that needs it, all keywords of Postgres included", async () => {
    const { rows } = await owner.query<{ word: string }>("select word from pg_get_keywords() order by word");
    const names = [...rows.map(({ word }) => word), "Größe", 'say "hi"', "a_1$", "1st", "x'); drop table y; --"];
    const columns = names.map((name) => `${identifier(name)} int`);
    await owner.query(
      `create temp table named (${columns.join(", ")}); select ${names.map(identifier).join(", ")} from named`,
    );
    const found = await owner.query<{ name: string }>(
      "select attname as name from pg_attribute where attrelid = 'named'::regclass and attnum > 0 order by attnum",
    );
    expect(found.rows.map(({ name }) => name)).toEqual(names);
    expect(["notes", "name", "a_1"].map(identifier)).toEqual(["notes", "name", "a_1"]);
  });
});
