-- Names that GraphQL, core or another thing of this database has as well.
grant usage on schema public to anon, authenticated, service_role;

-- Of Postgres's own types
create table public.lines (id int primary key, name text, a line, b lseg);
create table public.line_segments (id int primary key);
create table public.points (id int primary key, at point, line_id int references public.lines);
create table public.boxes (id int primary key, box box);
create table public.circles (id int primary key, circle circle);
create table public.polygons (id int primary key, polygon polygon);
create table public.paths (id int primary key, path path);
create table public.intervals (id int primary key, interval interval);
create table public.dates (id int primary key, date date);
create table public.datetimes (id int primary key, at timestamptz);
create table public.local_date_times (id int primary key, at timestamp);
create table public.times (id int primary key, time time);
create table public.json (id int primary key, json json);
create table public.jsons (id int primary key, jsonb jsonb);
create table public.xml (id int primary key, xml xml);
create table public.bigints (id int primary key, bigint bigint);
create table public.big_ints (id int primary key);
create table public.uuids (id int primary key, uuid uuid);
create table public.uuid (id int primary key);
create table public.text (id int primary key, text text, texts text[]);
create table public.point (id int primary key, point point);
create table public.int_ranges (id int primary key, range int4range);
create table public.date_ranges (id int primary key, range daterange, period tstzrange);
create table public.ids (id int primary key);
create table public.strings (id int primary key);
create table public.booleans (id int primary key);

-- Of GraphQL and of what connections are made of
create table public.cursors (id int primary key, cursor text, node text, "nodeId" text, query text, "__typename" text, "clientMutationId" text);
create table public.nodes (id int primary key, node_id int references public.nodes);
create table public.queries (id int primary key);
create table public.mutations (id int primary key);
create table public.subscriptions (id int primary key);
create table public.page_infos (id int primary key);
create table public.results (id int primary key);
create table public.field_errors (id int primary key);
create table public.mutation_results (id int primary key);

-- Of what another table brings along
create table public.users (id int primary key, name text unique);
create table public.user_edges (id int primary key);
create table public.users_edges (id int primary key);
create table public.user_connections (id int primary key);
create table public."users_filter" (id int primary key);
create table public.user_inputs (id int primary key);
create table public.user_filter_inputs (id int primary key);
create table public.user_patches (id int primary key);
create table public.create_users (id int primary key, name text);
create table public.user_records (id int primary key);
create type public.users_edge as (id int);
create type public.create_user_input as enum ('a', 'b');
create domain public.user_filter_input as text;
create domain public.update_user_input as int;

-- Of another table
create table public.people (id int primary key, user_id int references public.users);
create table public.person (id int primary key, name text, user_id int references public.users);
create table public."Person" (id int primary key, user_id int references public.users);
create table public.news (id int primary key);
create table public.all_news (id int primary key);
create table public.person_records (id int primary key);

-- Enums, domains and composite types
create type public.date as enum ('today');
create type public."query" as enum ('q', '→', '←', '*');
create type public.node as (id int, line line);
create type public.interval_input as enum ('i');
create type public."2nd" as enum ('1', '2');
create domain public."*/*" as bytea;
create domain public."text/html" as text;
create domain public."**" as pg_catalog.xml;
create domain public.cursor as text;
create domain public.account as pg_catalog.uuid;
create domain public.account_id as pg_catalog.uuid;
create domain public.way as pg_catalog.path;
create domain public.way_input as text;
create type public.way_range as range (subtype = numeric);
create table public.account_ids (id public.account_id primary key);
create table public.typed (
  id int primary key, date public.date, query public."query", node public.node, interval_input public.interval_input,
  "1st" public."2nd", "*/*" public."*/*", html public."text/html", "*" public."**", cursor public.cursor,
  way public.way, way_input public.way_input, way_range public.way_range, edge public.users_edge, input public.create_user_input,
  filter public.user_filter_input, updating public.update_user_input
);
create table public.accounts (id public.account primary key, account_id public.account_id references public.account_ids);


-- Names that begin with digits, or have no letters
create table public."日本語" (id int primary key, "名前" text, "1st" text);
create table public."日本語 " (id int primary key);
create table public."*" (id int primary key, "*" text, "/" text, "_" text, "a b" text, a_b text, "aB" text);
create table public."/" (id int primary key, input text);
create table public."1st" (id int primary key);
create table public."2" (id int primary key);
create table public.s (id int primary key);
create table public."table name" (id int primary key);
create table public.table_name (input int primary key, value text);
create table public."tableName" (id int primary key, "table name" int references public."table name", table_name int references public.table_name);

-- In another schema
create schema shop;
grant usage on schema shop to authenticated;
create table public.things (id int primary key);
create table public.shop_things (id int primary key, thing_id int references public.things);
create table shop.things (id int primary key, thing_id int references public.things);
create table shop.lines (id int primary key);
create type shop.date as enum ('tomorrow');
create table shop.typed (id int primary key, date shop.date);
create function public.shop_count() returns int language sql stable as 'select 1';
create function shop.count() returns int language sql stable as 'select 2';

-- Functions
create function public.query() returns int language sql stable as 'select 1';
create function public.node(id int) returns int language sql stable as 'select id';
create function public.cursor() returns setof int language sql stable as 'select 1';
create function public.person_edge() returns setof int language sql stable as 'select 1';
create function public."user"() returns setof int language sql stable as 'select 1';
create function public.thing(a int) returns int language sql as 'select a';
create function public.user_filter(a int) returns int language sql as 'select a';
create function public.create_user(name text) returns public.users language sql
  as 'insert into public.users values (77, create_user.name) returning *';
create function public.update_person(id int, "ID" int) returns int language sql as 'select "ID"';
create function public.delete_thing("ID" int) returns int language sql as 'select "ID"';
create function public.line() returns table (id int, name text) language sql stable as $$ select 1, 'x' $$;
create function public."Line"(out a int, out b int) language sql stable as $$ select 1, 2 $$;
create function public.do_it(a int) returns int language sql as 'select 1';
create function public."doIt"(a int) returns int language sql as 'select 2';
create function public.read_it("a b" int, a_b int, "*" int, "/" int, query int, node int, "first" int, "日本" int) returns int
  language sql stable as 'select $1 * 1000000 + $2 * 100000 + $3 * 10000 + $4 * 1000 + $5 * 100 + $6 * 10 + $7 + $8';
create function public."*"() returns int language sql stable as 'select 1';
create function public."日本"() returns int language sql stable as 'select 3';
create function public."1st"() returns int language sql stable as 'select 4';
create function public.users_total(u public.users) returns int language sql stable as 'select 1';
create function public.total(u public.users) returns int language sql stable as 'select 2';
create function public."users_*"(u public.users) returns int language sql stable as 'select 3';

-- PostgREST's handlers of media types
create function public.any_image() returns public."*/*" language sql stable as $$ select 'x'::public."*/*" $$;
create function public.lines_as_html(state public."text/html", next public.lines) returns public."text/html" language sql
  as $$ select (state || next.name)::public."text/html" $$;
create aggregate public.lines_page (public.lines) (initcond = '<p>', stype = public."text/html", sfunc = public.lines_as_html);

grant select, insert, update, delete on all tables in schema public, shop to authenticated;
grant execute on all functions in schema public, shop to authenticated;

insert into public.lines values (1, 'one', '{1,2,3}', '[(0,0),(1,1)]');
insert into public.points values (1, '(1,2)', 1);
insert into public.users values (1, 'Alice');
insert into public.s values (1);
insert into public.person values (1, 'Ann', 1);

-- Columns of the names that a relation could have
create table public.homes (id int primary key, number int unique);
create table public.guests (
  id int primary key, home_id int references public.homes references public.homes references public.homes (number),
  home text, home_by_home_id text
);
grant select, insert on public.homes, public.guests to authenticated;
insert into public.homes values (1, 1);
insert into public.guests values (1, 1, 'a', 'b');
