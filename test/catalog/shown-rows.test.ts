import { beforeAll, expect, test } from "vitest";
import type { Catalog } from "../../catalog/catalog.ts";
import { useFixture } from "../fixture.ts";
import { makeFixture } from "./fixture.ts";

const TABLES = `
  create schema vault;
  create table vault.open (id int primary key, name text, kind int);
  create table vault.closed (id int primary key, name text);
  alter table vault.closed enable row level security;
  create view vault.some_open as select * from vault.open where kind = 1;
  create view vault.all_open as select id, name as "{QUERY :quals <>} (", kind from vault.open`;

/** Views that show each row of a table. */
const WHOLE: Readonly<Record<string, string>> = {
  plain: "select * from vault.open",
  computed: "select id, upper(name) as loud, kind + 1 as next from vault.open",
  ordered: "select id from vault.open order by name",
  nested: "select * from vault.all_open",
  invoking: "select * from vault.open",
};

/** Views that may hide rows, or whose rows are of several tables. */
const PARTIAL: Readonly<Record<string, string>> = {
  filtered: "select * from vault.open where kind = 1",
  filtered_below: "select * from vault.some_open",
  restricted: "select * from vault.closed",
  subquery: "select * from (select * from vault.open where kind = 1) below",
  whole_subquery: "select * from (select * from vault.open) below",
  cte: "with few as (select * from vault.open where kind = 1) select * from few",
  joined: "select open.* from vault.open join vault.all_open using (id)",
  limited: "select * from vault.open limit 5",
  later: "select * from vault.open offset 5",
  distinct_rows: "select distinct kind from vault.open",
  distinct_on: "select distinct on (kind) id, kind from vault.open",
  grouped: "select kind, count(*) as count from vault.open group by kind",
  counted: "select count(*) as count from vault.open",
  having_rows: "select kind from vault.open group by kind having count(*) > 1",
  numbered: "select id, row_number() over () as number from vault.open",
  united: "select id from vault.open union all select id from vault.open",
  sampled: "select * from vault.open tablesample system (10)",
  repeated: "select id, generate_series(1, kind) as number from vault.open",
  looked_up: "select id, (select name from vault.closed where closed.id = open.id) as other from vault.open",
  called: "select * from generate_series(1, 5) as number",
  constant: "select 1 as one",
};

/** Functions whose query reads no hidden rows, or which Postgres does not make part of others. */
const OPEN_FUNCTIONS: Readonly<Record<string, string>> = {
  reads_open: "stable begin atomic select * from vault.open where kind = 1; end",
  reads_whole: "stable begin atomic select id, name, kind from api.plain; end",
  calls_open: "stable begin atomic select * from api.reads_open(); end",
  is_volatile: "volatile begin atomic select id, name, 1 from vault.closed; end",
  has_rights: "stable security definer begin atomic select id, name, 1 from vault.closed; end",
  is_configured: "stable set search_path = '' begin atomic select id, name, 1 from vault.closed; end",
};
const CLOSED_FUNCTIONS: Readonly<Record<string, string>> = {
  reads_closed: "stable begin atomic select id, name, 1 from vault.closed; end",
  reads_filtered: "immutable begin atomic select id, name, kind from vault.some_open; end",
  calls_closed: "stable begin atomic select * from api.reads_closed(); end",
  calls_quoted: "stable begin atomic select * from api.is_quoted(); end",
  is_quoted: "stable as 'select * from vault.open'",
};

let catalog: Catalog;
const fixture = useFixture(makeFixture);
beforeAll(async () => {
  await fixture.owner.query(TABLES);
  for (const [name, query] of Object.entries({ ...WHOLE, ...PARTIAL }))
    await fixture.owner.query(
      `create view api.${name} ${name === "invoking" ? "with (security_invoker)" : ""} as ${query}`,
    );
  const { is_quoted, ...others } = CLOSED_FUNCTIONS;
  for (const [name, rest] of Object.entries({ is_quoted, ...OPEN_FUNCTIONS, ...others }))
    await fixture.owner.query(`create function api.${name}() returns setof vault.open language sql ${rest}`);
  catalog = await fixture.load();
});

test.each(Object.keys(WHOLE))("the view %s shows all rows of its table", (name) => {
  expect(catalog.findTable({ schema: "api", name })!.showsAllRows).toBe(true);
});

test.each(Object.keys(PARTIAL))("the view %s may hide rows", (name) => {
  expect(catalog.findTable({ schema: "api", name })!.showsAllRows).toBe(false);
});

const routine = (name: string) => catalog.schemas.get("api")!.routines.get(name)![0]!;

test.each(Object.keys(OPEN_FUNCTIONS))("the function %s brings no hidden rows into a query", (name) => {
  expect(routine(name).showsAllRows).toBe(true);
});

test.each(Object.keys(CLOSED_FUNCTIONS))("the function %s may bring hidden rows into a query", (name) => {
  expect(routine(name).showsAllRows).toBe(false);
});

test("with row-level security on its table, a view may hide rows", async () => {
  await fixture.owner.query("alter table vault.open enable row level security");
  const changed = await fixture.load();
  for (const name of Object.keys(WHOLE)) expect(changed.findTable({ schema: "api", name })!.showsAllRows).toBe(false);
});
