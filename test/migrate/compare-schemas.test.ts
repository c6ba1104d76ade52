import { expect, test } from "vitest";
import { compareSchemas } from "../../migrate/compare-schemas.ts";
import { readComparedSchema } from "../../migrate/drift.ts";
import { withClient } from "../../postgres/client/with-client.ts";
import { useDatabase } from "../database.ts";

const OBJECTS = `
  create schema kinds;
  create type kinds.pair as (one text, two text);
  create function kinds.days_between(one date, other date) returns float8 immutable language sql return one - other;
  create type kinds.period as range (subtype = date);
  create table kinds.items (id int primary key, note text, at date, code int not null);
  create unique index items_code on kinds.items (code);
  create index items_lower on kinds.items (lower(note));
  create table kinds.children (extra text) inherits (kinds.items);
  create table kinds.pairs (one text, two text);
  create table kinds.plain (one text, two text, three text, four text);
  create table kinds.cache (key text);
  create type kinds.size as (one text, two text);
  create table kinds.events (at date) partition by range (at);
  create table kinds.past partition of kinds.events for values from ('2020-01-01') to ('2021-01-01');
  create view kinds.notes as select id, note from kinds.items;
  create sequence kinds.numbers;
  create aggregate kinds.total (int) (sfunc = int4pl, stype = int);
  create function kinds.near(one text, other text) returns boolean immutable language sql return lower(one) = lower(other);
  create function kinds.to_pair(value int) returns kinds.pair immutable language sql return row('a', 'b')::kinds.pair;
  create statistics kinds.related (dependencies) on id, code from kinds.items;
  create text search configuration kinds.search (copy = pg_catalog.simple);
  create foreign data wrapper kinds_wrapper;
  create server kinds_server foreign data wrapper kinds_wrapper;
  create foreign table kinds.remote (id int) server kinds_server options (table_name 'remote');
  create publication kinds_rows for table only kinds.items;
  create publication kinds_rows_of_plain for table kinds.plain`;

/** Changes of all kinds, with the differences that they make. */
const CHANGES: readonly (readonly [sql: string, ...descriptions: string[]])[] = [
  [
    "alter table kinds.items set (fillfactor = 70, toast.autovacuum_enabled = false)",
    "option fillfactor of table kinds.items is not created by a migration",
    "option toast.autovacuum_enabled of table kinds.items is not created by a migration",
  ],
  ["alter table kinds.cache set unlogged", "the persistence of table kinds.cache is not created by a migration"],
  [
    "alter table kinds.children no inherit kinds.items",
    "the inheritance from kinds.items of table kinds.children is missing",
  ],
  ["alter table kinds.pairs of kinds.pair", "the type of table kinds.pairs is not created by a migration"],
  [
    "alter table kinds.events detach partition kinds.past; alter table kinds.events attach partition kinds.past default",
    "the partition bound of table kinds.past differs from the migrations",
  ],
  [
    "alter table kinds.plain alter one set compression pglz",
    "column one of table kinds.plain differs from the migrations: one text compression pglz instead of one text",
  ],
  [
    'alter table kinds.plain alter two type text collate "C"',
    'column two of table kinds.plain differs from the migrations: two text collate pg_catalog."C" instead of two text',
  ],
  [
    "alter table kinds.plain alter three set storage external",
    "the storage of column three of table kinds.plain is not created by a migration",
  ],
  [
    "alter table kinds.plain alter four set statistics 500",
    "the statistics of column four of table kinds.plain is not created by a migration",
  ],
  [
    "alter table kinds.items alter code set (n_distinct = 0.5)",
    "the options of column code of table kinds.items is not created by a migration",
  ],
  [
    "alter index kinds.items_lower alter column 1 set statistics 500",
    "the statistics of column 1 of index items_lower of table kinds.items is not created by a migration",
  ],
  [
    "alter index kinds.items_pkey set (fillfactor = 60)",
    "the options of index items_pkey of table kinds.items is not created by a migration",
  ],
  [
    "alter table kinds.items replica identity using index items_code",
    "the replica identity of table kinds.items is not created by a migration",
  ],
  [
    "alter table kinds.items cluster on items_code",
    "the clustering of table kinds.items is not created by a migration",
  ],
  [
    "create rule quiet as on delete to kinds.plain do instead nothing; alter table kinds.plain disable rule quiet",
    "rule quiet of table kinds.plain is not created by a migration",
  ],
  [
    "alter view kinds.notes alter note set default 'new'",
    "the default of column note of view kinds.notes is not created by a migration",
  ],
  [
    "alter sequence kinds.numbers minvalue 0 maxvalue 50 cache 5 cycle",
    "sequence kinds.numbers differs from the migrations",
  ],
  [
    "drop aggregate kinds.total (int); create aggregate kinds.total (int) (sfunc = int4pl, stype = int, initcond = '5')",
    "aggregate kinds.total(integer) differs from the migrations",
  ],
  [
    'alter type kinds.size drop attribute two, add attribute two text collate "C"',
    "type kinds.size differs from the migrations",
  ],
  [
    "drop type kinds.period; create type kinds.period as range (subtype = date, subtype_diff = kinds.days_between)",
    "type kinds.period differs from the migrations",
  ],
  [
    "create collation kinds.by_number (provider = icu, locale = 'en-u-kn-true')",
    "collation kinds.by_number is not created by a migration",
  ],
  [
    "create operator kinds.=~~ (function = kinds.near, leftarg = text, rightarg = text)",
    "operator kinds.=~~(text,text) is not created by a migration",
  ],
  [
    "create cast (int as kinds.pair) with function kinds.to_pair(int) as assignment",
    "cast (integer AS kinds.pair) is not created by a migration",
  ],
  [
    "create text search dictionary kinds.plain (template = pg_catalog.simple, stopwords = 'english')",
    "text search dictionary kinds.plain is not created by a migration",
  ],
  [
    "alter text search configuration kinds.search drop mapping for email",
    "text search configuration kinds.search differs from the migrations",
  ],
  [
    "drop statistics kinds.related; create statistics kinds.related (ndistinct) on id, code from kinds.items",
    "statistics kinds.related differs from the migrations",
  ],
  [
    "create server kinds_other foreign data wrapper kinds_wrapper options (host 'h')",
    "server kinds_other is not created by a migration",
  ],
  [
    "alter foreign table kinds.remote options (set table_name 'other')",
    "foreign table kinds.remote differs from the migrations",
  ],
  ["alter publication kinds_rows set (publish = 'insert')", "publication kinds_rows differs from the migrations"],
  [
    "alter publication kinds_rows_of_plain add table only kinds.children; alter publication kinds_rows_of_plain drop table kinds.plain",
    "publication kinds_rows_of_plain of table kinds.plain is missing",
    "publication kinds_rows_of_plain of table kinds.children is not created by a migration",
  ],
  ["create publication kinds_more for table kinds.plain", "publication kinds_more is not created by a migration"],
  [
    "grant usage on foreign server kinds_server to anon",
    "grant usage on foreign server kinds_server to anon is not created by a migration",
  ],
  [
    "alter default privileges for role service_role in schema kinds grant select on tables to anon with grant option",
    "alter default privileges for role service_role in schema kinds grant select on tables to anon with grant option is not created by a migration",
  ],
];

const changed = useDatabase({ template: "empty", sql: OBJECTS });
const made = useDatabase({ template: "empty", sql: OBJECTS });

test("a change of each kind is found, with SQL that reverts it, and SQL that keeps it", async () => {
  const run = async (url: string, statements: readonly string[]) => {
    await withClient(url, async (client) => {
      for (const statement of statements) await client.query(statement);
    });
  };
  const compare = async () =>
    compareSchemas(await readComparedSchema(changed.ownerUrl), await readComparedSchema(made.ownerUrl));
  const changes = CHANGES.map(([sql]) => sql);

  expect(await compare()).toEqual([]);
  await run(changed.ownerUrl, changes);
  const found = await compare();
  expect(found.map(({ description }) => description).toSorted()).toEqual(
    CHANGES.flatMap(([, ...descriptions]) => descriptions).toSorted(),
  );
  await run(
    changed.ownerUrl,
    found.map(({ undoSql }) => undoSql),
  );
  expect(await compare()).toEqual([]);

  await run(changed.ownerUrl, changes);
  await run(
    made.ownerUrl,
    found.map(({ keepSql }) => keepSql),
  );
  expect(await compare()).toEqual([]);
});
