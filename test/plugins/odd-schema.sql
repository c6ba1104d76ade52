-- What databases out there hold, and what a generator may stumble over.
grant usage on schema public to anon, authenticated, service_role;

create type public.mood as enum ('very happy', 'so-so', 'so so', '', 'true', '1st', '%', 'größe', '__x');
comment on type public.mood is e'@deprecatedValue 1st Use %.\nHow it is.';
create domain public.positive as integer check (value > 0);
create domain public.label as text not null default 'none';
create domain public.account_ref as uuid;
create type public.address as (street text, "zip code" text);
create type public.money_range as range (subtype = numeric);

-- Keys and references
create table public.accounts (
  id        uuid primary key default gen_random_uuid(),
  name      text not null,
  parent_id uuid references public.accounts
);
create table public.transfers (
  id              bigint generated always as identity primary key,
  from_account_id uuid not null references public.accounts,
  to_account_id   uuid not null references public.accounts,
  amount          numeric(12, 2) not null check (amount > 0),
  doubled         numeric generated always as (amount * 2) stored,
  at              timestamptz not null default now(),
  ends            timestamptz not null default 'infinity',
  spans           tstzrange,
  days            date[]
);
create table public.memberships (tenant integer, member integer, role public.label, primary key (tenant, member));
create table public.badges (
  id     serial primary key,
  tenant integer,
  member integer,
  words  text[] not null default '{}',
  levels public.positive[],
  foreign key (tenant, member) references public.memberships
);
create table public.profiles (id uuid primary key references public.accounts, bio text);
create table public.likes (
  account  uuid references public.accounts,
  transfer bigint references public.transfers,
  primary key (account, transfer)
);
create table public.countries (code text primary key, name text);
create table public.cities (id int primary key, country_code text not null references public.countries, owner public.account_ref);

-- Names
create table public.news (id int primary key, title text);
create table public."Odd Names" ("the id" int primary key, "größe" text, "a-b" int, "1st" text, "class" text, "first" text, "after" text);
create index on public."Odd Names" ("first");
create index on public."Odd Names" ("after");
create table public.subscriptions (id int primary key, plan text);
create table public.queries (id int primary key, sql text);
create table public.report_2026 (id int primary key);
create table public.paid (id int primary key, paid uuid references public.accounts, author text, author_id uuid references public.accounts);

create type public.part as enum ('constructor', 'toString', '__proto__');
create table public.constructor (id int primary key, "toString" public.part);
create table public.marked (id int primary key, "__v" int references public.constructor, "constructor" text);

-- Types
create table public.moods (
  id int primary key, mood public.mood not null default 'so-so', place public.address, places public.address[],
  price public.money_range, own public.positive, extra jsonb, raw bytea, doc tsvector, ip inet, took interval,
  span int4range, bits bit(3), local timestamp, day date, clock time, moments timestamptz[], big bigint, flag boolean
);

create table public.shifts (id int primary key, ends time, others time[], drift interval, drifts interval[]);

-- Without a key, without columns, without grants, with some
create table public.logs (message text, level int, extra jsonb);
create table public.empty_table ();
create table public.only_json (data json);
create table public.secrets (id int primary key, shown text, hidden text);
create table public.nothing_granted (id int primary key);
create table public.servers_only (id int primary key);
create table public.write_only (id int generated always as identity primary key, message text not null);
-- Of types that GraphQL and PostGraphile have no word for
create table public.backups (
  id integer primary key, at pg_lsn not null unique, pages int4multirange, parts int8multirange[], words tsvector
);
create table public.unique_only (code text not null unique, note text unique);

-- Partitions, inheritance
create table public.events (id int, at timestamptz not null, what text, primary key (id, at)) partition by range (at);
create table public.events_2026 partition of public.events for values from ('2026-01-01') to ('2027-01-01');
create table public.base (id int primary key, a text);
create table public.derived (b text) inherits (public.base);

-- Views
create view public.account_names with (security_invoker = true) as select id, name from public.accounts;
create view public.totals with (security_invoker = true) as
  select from_account_id, sum(amount) as total from public.transfers group by 1;
create materialized view public.counts as select count(*) as n from public.accounts;
create view public.keyed with (security_invoker = true) as select id, name from public.accounts;
comment on view public.keyed is e'@primaryKey id\n@order name desc';

-- Functions
create function public.add(a int, b int default 5) returns int language sql immutable as 'select a + b';
create function public.overloaded(a int) returns int language sql as 'select 1';
create function public.overloaded(a text) returns int language sql as 'select 1';
create function public.unnamed(int, text) returns text language sql stable as 'select $1 || $2';
create function public.unnamed_change(int, text) returns text language sql as 'select $1 || $2';
create function public.no_result(a int) returns void language sql as 'select';
create function public.many() returns setof int language sql stable as 'select generate_series(1, 3)';
create function public.many_changes() returns setof public.accounts language sql
  as 'select * from public.accounts order by name';
create function public.columns(out a int, out b text) language sql stable as $$ select 1, 'x' $$;
create function public.tabled() returns table (id int, name text) language sql stable as $$ select 1, 'x' $$;
create function public.any_one(a anyelement) returns anyelement language sql stable as 'select $1';
create function public.vary(variadic a int[]) returns int language sql stable as 'select 1';
create function public.give_json() returns jsonb language sql stable as $$ select '{"a": 1}'::jsonb $$;
create function public.accounts_transfers(account public.accounts) returns int language sql stable as 'select 42';
create function public.accounts_head(account public.accounts) returns public.accounts language sql stable
  as 'select * from public.accounts where id = account.parent_id';
create function public.news(id int) returns text language sql stable as $$ select 'from a function' $$;
create function public.create_news(title text, id int default null) returns public.news language sql
  as 'insert into public.news values (coalesce(id, 1), title) returning *';
create function public.address_of(a public.address) returns text language sql stable as 'select (a).street';
create function public.make_address(street text) returns public.address language sql stable as $$ select street, 'A 1' $$;
create function public.make_addresses(streets text[]) returns public.address[] language sql stable
  as $$ select array(select (street, 'A 1')::public.address from unnest(streets) as street) $$;
create function public.many_moods(m public.mood[], d public.mood default 'so so') returns setof public.mood language sql stable
  as 'select unnest(m || d)';
create function public.act(account public.accounts) returns public.accounts language sql as 'select account';
create function public.maybe(owner_id bigint default null) returns bigint language sql stable as 'select coalesce(owner_id, -1)';
create procedure public.proceed() language sql as 'select 1';
create function public.later(t timestamptz default now(), x text default 'it''s', y numeric default -1.5, z boolean default true)
  returns text language sql stable as $$ select x || y || z $$;
create function public.unwritten(o jsonb default '{}', i interval default '1 day', f float8 default 'NaN', n int default 1.7)
  returns text language sql stable as $$ select concat_ws(' ', o, i, f, n) $$;
create function public.strictly(a int default 3) returns int language sql stable strict as 'select a';
comment on function public.add is e'@deprecated Count yourself.\n@deprecatedArgument b Add once more.\nAdds.';
comment on column public.news.title is e'@deprecated Read the text.\nThe headline.';
comment on function public.no_result is '@deprecated It does nothing.';

grant select, insert, update, delete on
  public.accounts, public.transfers, public.memberships, public.badges, public.profiles, public.likes, public.countries,
  public.cities, public.news, public."Odd Names", public.subscriptions, public.queries, public.report_2026, public.paid,
  public.moods, public.logs, public.events, public.base, public.derived, public.account_names, public.totals, public.keyed,
  public.empty_table, public.only_json, public.unique_only,
  public.backups, public.shifts, public.constructor, public.marked
  to authenticated;
grant usage on all sequences in schema public to authenticated;
grant select on public.counts to authenticated;
grant select (id, shown), update (shown) on public.secrets to authenticated;
grant select, insert on public.servers_only to service_role;
grant insert (message) on public.write_only to authenticated;
grant execute on all functions in schema public to authenticated;

insert into public.accounts (id, name) values
  ('00000000-0000-4000-8000-000000000001', 'one'), ('00000000-0000-4000-8000-000000000002', 'two');
update public.accounts set parent_id = '00000000-0000-4000-8000-000000000001' where name = 'two';
insert into public.transfers (from_account_id, to_account_id, amount, spans, days) values
  ('00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000002', 12.50, '[2026-01-01Z,2026-02-01Z)', '{2026-01-01,infinity}');
insert into public.profiles values ('00000000-0000-4000-8000-000000000001', 'First.');
insert into public.likes values ('00000000-0000-4000-8000-000000000002', 1);
insert into public.memberships values (1, 2, 'member');
insert into public.badges (tenant, member, words, levels) values (1, 2, '{a,null}', '{1,2}');
insert into public.news values (7, 'Seven');
insert into public."Odd Names" values (1, 'groß', 2, 'x', 'y', 'f', 'a');
insert into public.moods values (
  1, 'very happy', row('Street "1", \ here', null), array[row('A', 'b c'), row(null, null)]::public.address[], '[1.5,3)', 3,
  '{"a": [1, null]}', '\x00ff', 'a b', '10.0.0.1', '1 year 2 hours', '[1,5)', '101', '2026-01-02 03:04:05.6', '2026-01-02',
  '03:04:05', '{2026-01-01Z,infinity,null}', 9007199254740993, true
);
insert into public.shifts values (1, '24:00', '{24:00,12:30:00.5,null}', '-2 days -00:00:01.25', '{-0.5s,1.000001s,null}');
insert into public.logs values ('b', 2, '{}'), ('a', 1, '{}'), ('c', 3, '{}'), ('a', 1, null);
insert into public.secrets values (1, 'shown', 'hidden');
insert into public.events values (1, '2026-05-01Z', 'May');
insert into public.countries values ('DE', 'Germany');
insert into public.cities values (1, 'DE', '00000000-0000-4000-8000-000000000001');
insert into public.unique_only values ('b', null), ('a', 'x');
refresh materialized view public.counts;
