import { describe, expect, test } from "vitest";
import { dumpSchema } from "../../migrate/dump-schema.ts";
import { useClient, useDatabase } from "../database.ts";

const SCHEMA = `
  create schema shop;
  grant usage on schema shop to anon;
  create type shop.mood as enum ('good', 'bad');
  create type shop.size as (width int, height numeric(5, 2));
  create type shop.span as range (subtype = date);
  create domain shop.price as numeric(9, 2) default 0 not null constraint price_positive check (value >= 0);
  create sequence shop.ticket start 100;
  create table shop."Odd Table" (
    id bigint generated always as identity primary key,
    "Name" text collate "C" not null default 'it''s' constraint name_present check ("Name" <> ''),
    mood shop.mood,
    doubled int generated always as (1 + 1) stored,
    parent bigint constraint parent_fkey references shop."Odd Table" on delete set null
  );
  create index odd_parent on shop."Odd Table" (parent) where parent is not null;
  create function shop.touch() returns trigger language plpgsql set search_path = '' as $$ begin return NEW; end $$;
  create trigger touch before update on shop."Odd Table" for each row execute function shop.touch();
  alter table shop."Odd Table" enable row level security;
  create policy read on shop."Odd Table" for select to anon, authenticated using (true);
  create policy never on shop."Odd Table" as restrictive for delete using (false);
  grant select, insert ("Name", mood) on shop."Odd Table" to anon, authenticated;
  grant update on shop."Odd Table" to service_role with grant option;
  comment on table shop."Odd Table" is 'It''s odd.';
  comment on column shop."Odd Table"."Name" is 'A name.';
  comment on constraint name_present on shop."Odd Table" is 'Give a name.';
  comment on policy read on shop."Odd Table" is 'Everybody.';
  comment on trigger touch on shop."Odd Table" is 'Nothing.';
  comment on index shop.odd_parent is 'Children.';
  create table shop.events (at date) partition by range (at);
  create table shop.events_2026 partition of shop.events for values from ('2026-01-01') to ('2027-01-01');
  create view shop.names with (security_invoker = true) as select "Name" from shop."Odd Table";
  create materialized view shop.counts as select count(*) from shop."Odd Table";
  create procedure shop.act() language sql set search_path = '' as 'select 1';
  create aggregate shop.total (int) (sfunc = int4pl, stype = int);
  alter default privileges revoke execute on functions from public;
  alter default privileges in schema shop grant select on tables to anon;
  create function shop.on_ddl() returns event_trigger language plpgsql set search_path = '' as $$ begin end $$;
  create event trigger on_ddl on ddl_command_end when tag in ('CREATE TABLE') execute function shop.on_ddl();
  create extension citext with schema shop;
`;

const database = useDatabase({ template: "empty", sql: SCHEMA });
const client = useClient(database.ownerUrl);

test("a table is shown with all that belongs to it", async () => {
  const block = (await dumpSchema(client)).split("\n\n").find((text) => text.startsWith('-- table shop."Odd Table"'));
  expect(block).toBe(`-- table shop."Odd Table"
create table shop."Odd Table" (
  id bigint generated always as identity not null,
  "Name" text collate pg_catalog."C" default 'it''s'::text not null,
  mood shop.mood,
  doubled integer generated always as ((1 + 1)) stored,
  parent bigint,
  constraint "Odd Table_pkey" PRIMARY KEY (id),
  constraint name_present CHECK (("Name" <> ''::text)),
  constraint parent_fkey FOREIGN KEY (parent) REFERENCES shop."Odd Table"(id) ON DELETE SET NULL
);
CREATE INDEX odd_parent ON shop."Odd Table" USING btree (parent) WHERE (parent IS NOT NULL);
CREATE TRIGGER touch BEFORE UPDATE ON shop."Odd Table" FOR EACH ROW EXECUTE FUNCTION shop.touch();
alter table shop."Odd Table" enable row level security;
create policy never on shop."Odd Table" as restrictive for delete to public using (false);
create policy read on shop."Odd Table" for select to anon, authenticated using (true);
grant insert ("Name", mood), select on shop."Odd Table" to anon, authenticated;
grant update on shop."Odd Table" to service_role with grant option;
comment on column shop."Odd Table"."Name" is 'A name.';
comment on constraint name_present on shop."Odd Table" is 'Give a name.';
comment on index shop.odd_parent is 'Children.';
comment on policy read on shop."Odd Table" is 'Everybody.';
comment on table shop."Odd Table" is 'It''s odd.';
comment on trigger touch on shop."Odd Table" is 'Nothing.';`);
});

test.each([
  "create type shop.mood as enum ('good', 'bad')",
  "create type shop.size as (\n  width integer,\n  height numeric(5,2)\n)",
  "create type shop.span as range (subtype = date, multirange_type_name = shop.span_multirange, subtype_opclass = pg_catalog.date_ops)",
  "create domain shop.price as numeric(9,2) default 0 not null\n  constraint price_positive CHECK ((VALUE >= (0)::numeric))",
  "create sequence shop.ticket as bigint start with 100 increment by 1 minvalue 1 maxvalue 9223372036854775807 cache 1",
  "create table shop.events (\n  at date\n) partition by RANGE (at)",
  "create table shop.events_2026 (\n  at date\n);\nalter table only shop.events attach partition shop.events_2026 FOR VALUES FROM ('2026-01-01') TO ('2027-01-01')",
  "create view shop.names with (security_invoker=true) as\n",
  "create materialized view shop.counts as\n",
  "CREATE OR REPLACE PROCEDURE shop.act()",
  "-- aggregate shop.total(integer)\ncreate aggregate shop.total(integer) (sfunc = int4pl, stype = integer)",
  "alter default privileges revoke execute on functions from public",
  "alter default privileges in schema shop grant select on tables to anon",
  "create event trigger on_ddl on ddl_command_end when tag in ('CREATE TABLE') execute function shop.on_ddl()",
  "create extension citext with schema shop",
])("shows %j", async (text) => {
  expect(await dumpSchema(client)).toContain(text);
});

test("omits the objects of extensions", async () => {
  expect(await dumpSchema(client)).not.toMatch(/shop\.citext/);
});

test("rows, statistics and the order of creation do not show", async () => {
  const before = await dumpSchema(client);
  await client.query(`insert into shop."Odd Table" ("Name", parent) values ('x', 1)`);
  await client.query("select nextval('shop.ticket'); analyze");
  await client.query('drop policy read on shop."Odd Table"');
  await client.query('create policy read on shop."Odd Table" for select to authenticated, anon using (true)');
  await client.query(`comment on policy read on shop."Odd Table" is 'Everybody.'`);
  expect(await dumpSchema(client)).toBe(before);
});

// Each change is made on top of the ones before.
describe("a change shows", () => {
  test.each([
    'alter table shop."Odd Table" alter parent set not null',
    'alter table shop."Odd Table" alter "Name" set default \'x\'',
    'alter table shop."Odd Table" alter mood type text',
    'alter table shop."Odd Table" alter id set generated by default',
    'alter table shop."Odd Table" drop constraint name_present',
    'alter table shop."Odd Table" disable row level security',
    'alter table shop."Odd Table" force row level security',
    'alter table shop."Odd Table" replica identity full',
    'alter table shop."Odd Table" disable trigger touch',
    'alter policy read on shop."Odd Table" to anon',
    'alter policy read on shop."Odd Table" using (id > 0)',
    'drop policy never on shop."Odd Table"',
    'revoke insert (mood) on shop."Odd Table" from anon',
    'grant update ("Name") on shop."Odd Table" to anon',
    "grant execute on function shop.touch to anon",
    "grant usage on sequence shop.ticket to anon",
    "revoke usage on schema shop from anon",
    "grant usage on type shop.mood to anon",
    "drop index shop.odd_parent",
    "create unique index on shop.events (at)",
    "alter type shop.mood add value 'so so'",
    "alter type shop.size add attribute depth int",
    "alter domain shop.price drop not null",
    "alter sequence shop.ticket increment 2",
    "alter view shop.names set (security_invoker = false)",
    "alter function shop.touch security definer",
    "alter function shop.touch reset search_path",
    "create or replace function shop.touch() returns trigger language plpgsql set search_path = '' as $$ begin return null; end $$",
    "alter default privileges in schema shop revoke select on tables from anon",
    "comment on function shop.touch is 'Touches.'",
    "comment on type shop.mood is 'How one feels.'",
    "comment on column shop.size.width is 'Across.'",
    "comment on schema shop is 'A shop.'",
    "comment on event trigger on_ddl is 'Watches.'",
    "alter event trigger on_ddl disable",
    "drop event trigger on_ddl",
  ])("%s", async (statement) => {
    const before = await dumpSchema(client);
    await client.query(statement);
    expect(await dumpSchema(client)).not.toBe(before);
  });
});
