create schema if not exists shop;
comment on schema shop is 'Orders, and ''quotes''.';
create schema "Odd schema";
create role "backup Reader" nologin;
create role backup_clerk login noinherit connection limit 3;
comment on role backup_clerk is 'Enters orders.';
grant "backup Reader" to backup_clerk;
create extension if not exists fuzzystrmatch with schema public;
create extension if not exists citext with schema shop;

create type shop.status as enum ('new', 'paid', 'it''s sent');
alter type shop.status add value 'held' before 'paid';
create function shop.is_zip(value text) returns boolean immutable language sql return value ~ '^\d{4,5}$';
create domain shop.zip as text collate "C" default '0000' not null constraint zip_digits check (shop.is_zip(value));
comment on domain shop.zip is 'Digits.';
comment on constraint zip_digits on domain shop.zip is 'Four or five.';
create type shop.address as (street text collate "C", "No." integer, zip shop.zip);
create function shop.days_between(one date, other date) returns float8 immutable language sql return one - other;
create type shop.period as range (subtype = date, subtype_diff = shop.days_between, multirange_type_name = shop.periods);
create collation shop.numeric_order (provider = icu, locale = 'en-u-kn-true', deterministic = false);

create sequence shop.numbers as integer increment by -3 minvalue -900 maxvalue 100 start 90 cache 5 cycle;
select nextval('shop.numbers');
create table shop.customers (
  id bigint generated always as identity (start with 1000 increment by 7) primary key,
  number integer not null default nextval('shop.numbers'),
  tag serial,
  name text collate shop.numeric_order not null,
  mail shop.citext unique,
  home shop.address,
  homes shop.address[],
  active shop.period,
  state shop.status default 'new',
  name_length integer generated always as (length(name)) stored,
  "Odd column" jsonb,
  gone text,
  constraint customers_name_present check (name <> '') no inherit
) with (fillfactor = 70, toast.autovacuum_enabled = false);
alter table shop.customers drop column gone;
alter table shop.customers alter column name set statistics 500, alter column "Odd column" set storage external,
  alter column mail set (n_distinct = 0.5);
comment on table shop.customers is 'Who buys.';
comment on column shop.customers."Odd column" is 'Anything.';
create index customers_name on shop.customers using gin (to_tsvector('simple', name)) where name_length > 2;
comment on index shop.customers_name is 'For search.';
create unique index customers_number on shop.customers (number desc nulls last) include (name);
create table shop.orders (
  customer bigint not null, placed date not null, amount numeric(12, 2),
  constraint orders_of_customers foreign key (customer) references shop.customers on delete cascade deferrable initially deferred,
  primary key (customer, placed)
) partition by range (placed);
create table shop.orders_2025 partition of shop.orders for values from ('2025-01-01') to ('2026-01-01');
create table shop.orders_other (amount numeric(12, 2), placed date not null, customer bigint not null);
alter table shop.orders attach partition shop.orders_other default;
create index orders_amount on shop.orders (amount);
create table shop.parents (id integer primary key, note text default 'none', constraint short check (length(note) < 100));
create table shop.children (extra text) inherits (shop.parents);
alter table shop.parents add column later integer default 5;
alter table shop.children alter column note set default 'child';
create unlogged table "Odd schema"."Odd ""table""" ("select" integer, "MiXed" text[]);
create table "Odd schema".empty ();
create table shop.unchecked (id integer);
insert into shop.unchecked values (-1);
alter table shop.unchecked add constraint positive check (id > 0) not valid;
alter table shop.unchecked replica identity full;
create table shop.references_to (relation regclass, routine regprocedure);

insert into shop.customers (name, mail, home, homes, active, "Odd column") values
  ('Ann', 'Ann@Example.com', row('High "Street"', 4, '12345'), array[row('a,b', null, '4444')::shop.address], '[2025-01-01,2025-02-01)', '{"a": [1e40, null]}'),
  (e'tab\t(newline\n)', null, null, '{}', 'empty', 'null');
insert into shop.orders select id, date '2025-06-01' + 300 * n::integer, n * 1.10 from shop.customers, generate_series(0, 1) as n;
insert into shop.parents (id) values (1);
insert into shop.children (id, extra, later) values (2, 'x', 9);
insert into "Odd schema"."Odd ""table""" values (1, '{NULL,"NULL",","}');
insert into "Odd schema".empty default values;

create view shop.totals as
  select c.id, c.name, sum(o.amount) as total from shop.customers as c join shop.orders as o on o.customer = c.id group by c.id;
do $$ begin
  if current_setting('server_version_num')::integer >= 150000 then
    alter view shop.totals set (security_invoker = true);
  end if;
end $$;
comment on view shop.totals is 'Sums.';
create view shop.good with (security_barrier) as select * from shop.totals where total > 1;
create materialized view shop.report as select name, total from shop.totals order by name;
create unique index report_name on shop.report (name);
create materialized view shop.a_report_of_reports as select count(*) from shop.report;
create materialized view shop.never as select 1 as one with no data;
create rule keep as on delete to shop.references_to do instead nothing;
alter table shop.references_to enable always rule keep;

create function shop.total_of(customer shop.customers) returns numeric stable begin atomic
  select total from shop.totals where id = customer.id;
end;
comment on function shop.total_of is 'A computed field.';
create procedure shop.nothing(in one integer default 3, inout other text default 'x') language plpgsql as $$ begin perform one; end $$;
create function shop.touch() returns trigger language plpgsql security definer set search_path to 'shop', pg_temp as $$ begin return new; end $$;
create trigger touch before insert or update of name on shop.customers for each row when (new.name <> 'x') execute function shop.touch();
comment on trigger touch on shop.customers is 'Nothing yet.';
create constraint trigger late after insert on shop.orders deferrable initially deferred for each row execute function shop.touch();
alter table shop.customers disable trigger touch;
create aggregate shop.product(numeric) (sfunc = numeric_mul, stype = numeric, initcond = '1', parallel = safe);
create function shop.near(one text, other text) returns boolean immutable language sql return lower(one) = lower(other);
create operator shop.=~~ (function = shop.near, leftarg = text, rightarg = text, commutator = operator(shop.=~~), restrict = eqsel);
comment on operator shop.=~~ (text, text) is 'Without regard to case.';
create function shop.to_status(value integer) returns shop.status immutable language sql return 'new'::shop.status;
create cast (integer as shop.status) with function shop.to_status(integer) as assignment;
create text search dictionary shop.plain (template = pg_catalog.simple, stopwords = 'english');
create text search configuration shop.search (copy = pg_catalog.simple);
alter text search configuration shop.search alter mapping for word with shop.plain, simple;
create statistics shop.related (dependencies) on name, number from shop.customers;
insert into shop.references_to values ('shop.report', 'shop.touch()');

create foreign data wrapper backup_wrapper options (debug 'true');
create server backup_server type 'x' foreign data wrapper backup_wrapper options (host 'h''1');
create user mapping for backup_clerk server backup_server options (password 's''ecret');
create foreign table shop.remote (id integer options (column_name 'ID') not null, note text) server backup_server options (table_name 'Remote');

alter table shop.customers enable row level security;
alter table shop.customers force row level security;
alter table shop.customers no force row level security;
create policy own on shop.customers as restrictive for select to backup_clerk, "backup Reader" using (name = current_user);
create policy all_rows on shop.customers using (true) with check (length(name) > 0);
comment on policy own on shop.customers is 'One''s own.';
grant usage on schema shop to backup_clerk, "backup Reader";
grant select (name, mail), update (name) on shop.customers to backup_clerk;
grant insert, select on shop.orders to backup_clerk with grant option;
set role backup_clerk;
grant select on shop.orders to "backup Reader";
reset role;
grant usage on sequence shop.numbers to "backup Reader";
grant usage on type shop.status to "backup Reader";
revoke all on type shop.address from public;
revoke execute on function shop.touch() from public;
grant execute on function shop.total_of to backup_clerk;
revoke insert on shop.unchecked from current_user;
revoke execute on function public.soundex(text) from public;
alter default privileges in schema shop grant select on tables to "backup Reader";
alter default privileges revoke execute on functions from public;
alter default privileges for role backup_clerk grant usage on sequences to "backup Reader" with grant option;
create table "Odd schema".of_clerk (id integer generated by default as identity);
alter table "Odd schema".of_clerk owner to backup_clerk;
create publication backup_rows for table shop.customers, shop.parents with (publish = 'insert, delete', publish_via_partition_root = true);
comment on publication backup_rows is 'Some.';
select lo_from_bytea(424242, decode(repeat('00ff10', 70000), 'hex'));
select lo_from_bytea(424243, '');
comment on large object 424242 is 'Bytes.';
grant select on large object 424242 to backup_clerk;
create function shop.watch() returns event_trigger language plpgsql as $$ begin end $$;
create event trigger backup_watch on ddl_command_end when tag in ('CREATE TABLE', 'ALTER TABLE') execute function shop.watch();
alter event trigger backup_watch enable always;
comment on event trigger backup_watch is 'Watches.';
do $$ begin
  execute format('alter database %I set statement_timeout to ''77s''', current_database());
  execute format('alter role backup_clerk in database %I set search_path to shop, "Odd schema"', current_database());
  execute format('comment on database %I is ''All of it.''', current_database());
  execute format('grant create on database %I to backup_clerk', current_database());
end $$;
alter role backup_clerk set work_mem to '9MB';
