-- A museum, with one of everything that a client of the table interface can meet. Nothing here is the content service.
-- The roles anon, authenticated, service_role and authenticator exist in the cluster.

create schema api;
create schema other;
create schema private;
create schema tools;
comment on schema api is 'The museum';

-- Types -----------------------------------------------------------------------------------------------------------

create type api.mood as enum ('sad', 'calm', 'happy');
create domain api.positive as int check (value > 0);
create domain api.code as text check (value ~ '^[A-Z]{2}$');
create type api.address as (street text, number int, tags text[]);
create type tools.temperature as range (subtype = float8);

create table api.types (
  id int primary key,
  small smallint,
  whole int,
  big bigint,
  single real,
  double double precision,
  exact numeric,
  price numeric(10, 2),
  cash money,
  flag boolean,
  words text,
  short_words varchar(20),
  padded char(5),
  day date,
  clock time,
  clock_zone timetz,
  moment timestamp,
  moment_zone timestamptz,
  duration interval,
  plain json,
  document jsonb,
  key uuid,
  bytes bytea,
  bits bit(4),
  more_bits varbit,
  host inet,
  network cidr,
  place point,
  markup xml,
  search tsvector,
  wholes int[],
  texts text[],
  grid int[],
  moods api.mood[],
  span int4range,
  days daterange,
  exacts numrange,
  moments tstzrange,
  spans int4multirange,
  warmth tools.temperature,
  mood api.mood,
  positive api.positive,
  code api.code,
  address api.address,
  addresses api.address[]
);
insert into api.types values
  (1, -32768, -1, -9223372036854775808, -1.5, 1e-300, 0.10, 1.50, 1.50, true, 'one', 'first', 'a', '2020-02-29',
   '00:00:01', '10:00:00+02', '2020-02-29 12:00:00', '2020-02-29 12:00:00+00', '1 day', '{"a": 1,  "b": [1, 2]}',
   '{"a": 1, "b": [1, 2], "c": {"d": "e"}}', '00000000-0000-0000-0000-000000000001', '\x00ff', b'0001', b'1',
   '10.0.0.1', '10.0.0.0/8', '(1,2)', '<a>1</a>', 'cat:1 dog:2', '{1,2}', '{a,"b c"}', '{{1,2},{3,4}}', '{sad,happy}',
   '[1,5)', '[2020-01-01,2020-02-01)', '[0.5,1.5]', '[2020-01-01 00:00+00,2020-02-01 00:00+00)', '{[1,3),[7,9)}',
   '[36.5,38)', 'sad', 1, 'AA', row('Hill', 1, '{x,y}'), array[row('Hill', 1, '{x}')::api.address]),
  (2, 0, 0, 0, 0, 0, 12345678901234567890.123456789, 20.00, -3, false, 'two, "quoted" \ and (more)', 'second', 'bb',
   '2021-12-31', '12:30:00.5', '12:30:00+00', '2021-12-31 23:59:59.999', '2021-12-31 23:59:59.999+00', '-2 hours',
   '[1, "two", null]', '[1, "two", null, {"x": 1.10}]', '00000000-0000-0000-0000-000000000002', '', b'1010', b'1010101',
   '::1', '2001:db8::/32', '(0,0)', '<b/>', '', '{}', '{}', '{}', '{}', 'empty', 'empty', '(,)', '(,)', '{}', 'empty',
   'calm', 2, 'BB', row(null, null, null), '{}'),
  (3, 32767, 2147483647, 9223372036854775807, 3.25, 'Infinity', 'NaN', 99999999.99, 1234567.89, null, '', '*%_', 'ccccc',
   'infinity', '23:59:59.999999', '23:59:59-11', 'infinity', 'infinity', '1 year 2 mons 3 days 04:05:06', '"text"',
   '"text"', 'ffffffff-ffff-ffff-ffff-ffffffffffff', 'text', b'1111', b'', '192.168.0.0/16', '192.168.0.0/16', '(-1.5,1e3)',
   '<c d="1">é</c>', '''two words'':1A fish:2B', '{3,null}', '{null,"NULL","{}","a\"b"}', '{{5}}', '{calm,null}', '[5,10)',
   '[2020-01-15,)', '[2,3)', '[2021-01-01 00:00+00,)', '{[5,)}', '(40,)', 'happy', 3, 'CC',
   row('a "b", (c)', -1, '{}'), array[row('x', 1, null), null]::api.address[]),
  (4, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null,
   null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null, null,
   null, null, null, null, null);

-- A domain that reads and writes itself: #rrggbb outside, a number inside.
create domain api.shade as int;
create function tools.shade_from_text(text) returns api.shade language sql immutable
  return ('x' || lpad(substr($1, 2), 8, '0'))::bit(32)::int;
create function tools.shade_from_json(json) returns api.shade language sql immutable
  return tools.shade_from_text($1 #>> '{}');
create function tools.shade_to_json(api.shade) returns json language sql immutable
  return to_json('#' || lpad(to_hex($1::int), 6, '0'));
create cast (api.shade as json) with function tools.shade_to_json(api.shade) as implicit;
create cast (json as api.shade) with function tools.shade_from_json(json) as implicit;
create cast (text as api.shade) with function tools.shade_from_text(text) as implicit;

create table api.colours (id int primary key, name text not null, shade api.shade);
insert into api.colours values (1, 'red', 16711680), (2, 'green', 65280), (3, 'none', null);

-- Relations -------------------------------------------------------------------------------------------------------

create table api.countries (code char(2) primary key, name text not null);
insert into api.countries values ('FR', 'France'), ('NL', 'Netherlands'), ('JP', 'Japan'), ('XX', 'Nowhere');

create table api.artists (
  id int primary key,
  name text not null,
  born int,
  died int,
  country char(2) constraint artists_country_fkey references api.countries
);
insert into api.artists values
  (1, 'Claude', 1840, 1926, 'FR'), (2, 'Vincent', 1853, 1890, 'NL'), (3, 'Rembrandt', 1606, 1669, 'NL'),
  (4, 'Hokusai', 1760, 1849, 'JP'), (5, 'Anonymous', null, null, null);
comment on table api.artists is E'Artists\n\nWho made the works.';
comment on column api.artists.born is 'The year of birth';

create table api.works (
  id int generated by default as identity primary key,
  artist_id int constraint works_artist_id_fkey references api.artists,
  title text not null,
  year int,
  price numeric(10, 2),
  mood api.mood,
  on_show boolean not null default false,
  tags text[] not null default '{}',
  details jsonb
);
insert into api.works (id, artist_id, title, year, price, mood, on_show, tags, details) values
  (1, 1, 'Water Lilies', 1906, 80.50, 'calm', true, '{water,flowers}', '{"size": {"width": 90, "height": 93}, "media": ["oil"]}'),
  (2, 1, 'Impression, Sunrise', 1872, 99.00, 'calm', true, '{water,morning}', '{"size": {"width": 63, "height": 48}}'),
  (3, 2, 'The Starry Night', 1889, 100.00, 'happy', true, '{night}', '{"size": {"width": 92, "height": 73}, "media": ["oil", "canvas"]}'),
  (4, 2, 'Sunflowers', 1888, null, 'happy', false, '{flowers}', '{}'),
  (5, 3, 'The Night Watch', 1642, 500.00, null, true, '{night,people}', null),
  (6, 4, 'The Great Wave', 1831, 60.00, 'sad', true, '{water}', '{"media": ["ink", "paper"], "copies": 100}'),
  (7, null, 'Fragment', null, null, null, false, '{}', 'null');

-- One to one: the key is the reference.
create table api.labels (
  work_id int primary key constraint labels_work_id_fkey references api.works on delete cascade,
  body text not null
);
insert into api.labels values (1, 'Lilies in a pond'), (3, 'A night in June'), (6, 'A wave');

-- A reference to itself, and two to one table.
create table api.people (
  id int primary key,
  name text not null,
  boss_id int constraint people_boss_id_fkey references api.people,
  phone text
);
insert into api.people values
  (1, 'Ada', null, '1'), (2, 'Ben', 1, '2'), (3, 'Cyd', 1, null), (4, 'Dee', 2, '4'), (5, 'Eve', null, null);

create table api.exhibitions (
  id int primary key,
  title text not null,
  opens date,
  curator_id int constraint exhibitions_curator_fkey references api.people,
  deputy_id int constraint exhibitions_deputy_fkey references api.people
);
insert into api.exhibitions values
  (1, 'Water', '2024-01-01', 1, 2), (2, 'Night', '2024-06-01', 2, 3), (3, 'Nothing', null, null, null),
  (4, 'Everything', '2025-01-01', 1, null);

create table api.exhibits (
  exhibition_id int constraint exhibits_exhibition_fkey references api.exhibitions,
  work_id int constraint exhibits_work_fkey references api.works,
  place int,
  primary key (exhibition_id, work_id)
);
insert into api.exhibits values (1, 1, 1), (1, 2, 2), (1, 6, 3), (2, 3, 1), (2, 5, 2), (4, 1, 1), (4, 3, 2), (4, 6, 3);

-- Two ways from one table to another through junctions.
create table api.tours (id int primary key, name text not null);
insert into api.tours values (1, 'Short'), (2, 'Long');
create table api.guides (
  tour_id int constraint guides_tour_fkey references api.tours,
  person_id int constraint guides_person_fkey references api.people,
  primary key (tour_id, person_id)
);
insert into api.guides values (1, 2), (2, 2), (2, 3);
create table api.visitors (
  tour_id int constraint visitors_tour_fkey references api.tours,
  person_id int constraint visitors_person_fkey references api.people,
  primary key (tour_id, person_id)
);
insert into api.visitors values (1, 4), (2, 4), (2, 5);

-- Many to many with itself.
create table api.copies (
  original_id int constraint copies_original_fkey references api.works,
  copy_id int constraint copies_copy_fkey references api.works,
  primary key (original_id, copy_id)
);
insert into api.copies values (1, 7), (3, 7);

-- Keys of two columns.
create table api.rooms (
  floor int,
  number int,
  name text,
  primary key (floor, number)
);
insert into api.rooms values (0, 1, 'Hall'), (0, 2, 'Garden'), (1, 1, 'Gallery'), (1, 2, null);
create table api.placements (
  work_id int primary key constraint placements_work_fkey references api.works,
  room_floor int,
  room_number int,
  constraint placements_room_fkey foreign key (room_floor, room_number) references api.rooms
);
insert into api.placements values (1, 0, 2), (3, 1, 1), (5, 1, 1), (6, null, null);

create table api.visits (
  on_day date not null,
  person_id int constraint visits_person_fkey references api.people,
  rating int,
  primary key (on_day, person_id)
) partition by range (on_day);
create table api.visits_2024 partition of api.visits for values from ('2024-01-01') to ('2025-01-01');
create table api.visits_2025 partition of api.visits for values from ('2025-01-01') to ('2026-01-01');
insert into api.visits values ('2024-03-01', 1, 5), ('2024-04-01', 2, 3), ('2025-01-02', 1, 4), ('2025-02-02', 4, null);

-- Views -----------------------------------------------------------------------------------------------------------

create view api.work_list as select id as number, title as name, artist_id as maker, year from api.works;
create view api.artist_list as select id, name, country from api.artists;
create view api.long_list as select number, name, maker from api.work_list where number > 0;
create view api.exhibit_list as select exhibition_id as exhibition, work_id + 0 as work, place from api.exhibits;
create view api.guide_list as select tour_id as tour, person_id as person from api.guides;
create view api.works_with_artists as
  select w.id, w.title, w.artist_id, a.name as artist_name from api.works w left join api.artists a on a.id = w.artist_id;
create view api.yearly as select year / 100 + 1 as century, count(*) as works from api.works where year is not null group by 1;
create view api.union_list as select id, title from api.works union all select id, name from api.artists;
create view api.nothing_to_see as select id from api.works where false;
create materialized view api.shown as select id, title, artist_id from api.works where on_show;
create view api.free_rooms as select floor, number from api.rooms with check option;
create view api.sharp_rooms as select floor, number, name from api.rooms where floor > 0 with check option;

create view api.inbox as select 0 as id, ''::text as message;
create function private.tg__inbox() returns trigger language plpgsql as $$
begin
  if TG_OP = 'DELETE' then return OLD; end if;
  NEW.message := upper(NEW.message);
  return NEW;
end $$;
create trigger inbox_all instead of insert or update or delete on api.inbox
  for each row execute function private.tg__inbox();

-- Computed columns and relationships --------------------------------------------------------------------------------

create function api.age(api.artists) returns int language sql stable return $1.died - $1.born;
create function api.shouted(api.artists) returns text language sql immutable return upper($1.name);
create function api.shouted(api.works) returns text language sql immutable return upper($1.title);
create function api.facts(api.works) returns jsonb language sql stable
  return jsonb_build_object('year', $1.year, 'tags', $1.tags);
create function tools.initial(api.artists) returns text language sql immutable return left($1.name, 1);
create function api.masterpiece(api.artists) returns setof api.works rows 1 language sql stable
  begin atomic select * from api.works where artist_id = $1.id order by price desc nulls last, id limit 1; end;
create function api.shown_works(api.artists) returns setof api.works language sql stable
  begin atomic select * from api.works where artist_id = $1.id and on_show order by id; end;
create function api.maker(api.works) returns setof api.artists rows 1 language sql stable
  begin atomic select * from api.artists where id = $1.artist_id; end;
-- It stands in for the relationship that the foreign key gives.
create function api.labels(api.exhibitions) returns setof api.labels language sql stable
  begin atomic select l.* from api.labels l join api.exhibits e using (work_id) where e.exhibition_id = $1.id; end;

-- Tables for counting, filtering and ordering -----------------------------------------------------------------------

create table api.numbers (n int primary key, word text, even boolean, half numeric, part int);
insert into api.numbers
  select n, (array['zero', 'one', 'two', 'three', 'four'])[n % 5 + 1], n % 2 = 0, n / 2.0, nullif(n % 4, 0)
  from generate_series(1, 100) n;
create function api.square(api.numbers) returns int language sql immutable return $1.n * $1.n;
create function api.numbers_count_kind(api.numbers) returns text language sql immutable
  return case when $1.even then 'even' else 'odd' end;

create table api.documents (id int primary key, title text, body text, search tsvector, data jsonb, plain json);
insert into api.documents values
  (1, 'Fat cats', 'The fat cats ate the rats', to_tsvector('english', 'The fat cats ate the rats'),
   '{"a": {"b": [10, 20, {"c": "deep"}]}, "n": 1, "s": "x", "t": true, "z": null}', '{"a": {"b": [1]}, "s": "x"}'),
  (2, 'Chats', 'C''est un peu impossible', to_tsvector('french', 'C''est un peu impossible'),
   '{"a": {"b": []}, "n": 2.50, "s": "y z", "t": false, "odd key": 1, "with.dot": 2, "with-dash": 3, "3": "three"}', '{"s": "y"}'),
  (3, 'Fun', 'It is kind of fun to do the impossible', to_tsvector('english', 'It is kind of fun to do the impossible'),
   '[1, "two", {"x": [true]}, null]', '[1, 2]'),
  (4, null, null, null, null, null),
  (5, 'Art', 'also works as a plain text', to_tsvector('simple', 'also works as a plain text'), '"text"', '7');

create table api.nulls (id int primary key, a int, b int);
insert into api.nulls values (1, null, 1), (2, 2, null), (3, 1, 3), (4, null, null), (5, 3, 2);

create table api.empty (id int primary key, name text);

-- Names -------------------------------------------------------------------------------------------------------------

create table api."odd table" (
  "the key" int primary key,
  "a ""quoted"" column" text,
  "with,comma" text,
  "with.dot" text,
  "with(parens)" text,
  "with:colon" text,
  "with->arrow" text,
  "select" text,
  "order" text,
  "UPPER" text,
  "naïve ★" text
);
insert into api."odd table" values
  (1, 'q1', 'c1', 'd1', 'p1', 'l1', 'a1', 's1', 'o1', 'u1', 'n1'), (2, 'q2', 'c2', 'd2', 'p2', 'l2', 'a2', 's2', 'o2', 'u2', 'n2');
create table api."Straße ★" (id int primary key, "größe" int, parent int constraint "Straße parent" references api."Straße ★");
insert into api."Straße ★" values (1, 10, null), (2, 20, 1);
create table api."group" ("user" int primary key, "table" text);
insert into api."group" values (1, 'reserved');
create table api.dashed ("a-key" int primary key, "b-c-d" text);
insert into api.dashed values (1, 'x');

-- Tables to write to --------------------------------------------------------------------------------------------------

create table api.items (
  id int generated by default as identity primary key,
  name text not null,
  quantity int not null default 1 constraint items_quantity_check check (quantity >= 0),
  note text default 'none',
  added timestamptz not null default '2024-01-01 00:00+00',
  extra jsonb
);
insert into api.items (id, name, quantity, note, extra) values
  (1, 'brush', 10, 'soft', '{"a": 1}'), (2, 'canvas', 5, null, null), (3, 'frame', 0, 'gold', '[]');

create table api.stocks (
  shelf text,
  item_id int constraint stocks_item_fkey references api.items,
  quantity int not null default 7,
  code text constraint stocks_code_key unique,
  primary key (shelf, item_id)
);
insert into api.stocks values ('a', 1, 3, 'A1'), ('a', 2, 4, 'A2'), ('b', 1, 5, null);

create table api.keyed (code text primary key, name text constraint keyed_name_key unique, n int default 7);
insert into api.keyed values ('one', 'One', 1), ('two', 'Two', 2), ('with space', 'Space', 3), ('a&b=c', 'Odd', 4);

create table api.keyless (a int, b text);
insert into api.keyless values (1, 'x'), (2, 'y'), (2, 'y');

create table api.ledger (
  id bigint generated always as identity primary key,
  amount int not null check (amount <> 0),
  doubled int generated always as (amount * 2) stored,
  kind text not null default 'in' check (kind in ('in', 'out'))
);
insert into api.ledger (amount) values (5), (-3);

create table api.defaults (
  id int generated by default as identity primary key,
  a int default 1 + 1,
  b text default lower('B'),
  c api.mood default 'calm',
  d api.positive default 3,
  e text
);
create table api.only_key (id int generated by default as identity primary key);

create table api.watched (id int primary key, name text);
insert into api.watched values (1, 'ONE');
create function private.tg_watched__upper() returns trigger language plpgsql as $$
begin
  case NEW.name
    when 'refuse' then raise exception 'refused by a trigger' using errcode = 'PT402', hint = 'Pay', detail = 'Not paid';
    when 'skip' then return null;
    when 'teapot' then raise sqlstate 'PGRST' using
      message = '{"code": "TEA", "message": "short and stout", "details": "a teapot", "hint": "tip me over"}',
      detail = '{"status": 418, "headers": {"X-Tea": "green"}}';
    else
      NEW.name := upper(NEW.name);
      if NEW.name = 'TOLD' then
        perform set_config('response.headers', '[{"X-Fixture": "told"}]', true), set_config('response.status', '299', true);
      end if;
  end case;
  return NEW;
end $$;
create trigger watched_upper before insert or update on api.watched
  for each row execute function private.tg_watched__upper();

create table api.deferred (id int primary key, n int constraint deferred_n_key unique deferrable initially deferred);
insert into api.deferred values (1, 1), (2, 2);

create table api.scratch (id int primary key, note text);
create table api.measurements (
  at date not null,
  n int not null,
  value int,
  primary key (at, n)
) partition by range (at);
create table api.measurements_2024 partition of api.measurements for values from ('2024-01-01') to ('2025-01-01');

-- Who may what ------------------------------------------------------------------------------------------------------

create table api.notes (
  id int generated by default as identity primary key,
  owner text not null default (current_setting('request.jwt.claims', true)::jsonb ->> 'sub'),
  body text not null,
  published boolean not null default false
);
insert into api.notes (id, owner, body, published) values
  (1, 'ada', 'hers', false), (2, 'ada', 'hers, for all', true), (3, 'ben', 'his', false), (4, 'ben', 'his, for all', true);
alter table api.notes enable row level security;
create policy read_published on api.notes for select using (published);
create policy own on api.notes to authenticated
  using (owner = (select current_setting('request.jwt.claims', true)::jsonb ->> 'sub'));

create table api.closed (id int primary key, secret text);
insert into api.closed values (1, 'secret');
create table api.half_open (id int primary key, name text, secret text);
insert into api.half_open values (1, 'visible', 'hidden');
create table api.append_only (id int primary key, entry text);
create table private.vault (id int primary key, gold int);
-- Related by a junction that is not served; their names are like those of others.
create table api.worlds (id int primary key, name text);
create table api.roams (id int primary key, name text);
create table private.world_roams (world_id int references api.worlds, roam_id int references api.roams, primary key (world_id, roam_id));
insert into private.vault values (1, 1000);
create view api.vault_view as select id from private.vault;
create view api.invoker_view with (security_invoker = true) as select id, secret from api.closed;

-- Functions ---------------------------------------------------------------------------------------------------------

create function api.add(a int, b int) returns int language sql immutable return a + b;
create function api.always_true() returns boolean language sql immutable return true;
create function api.greet() returns text language sql immutable return 'hello';
create function api.greet(name text) returns text language sql immutable return 'hello ' || name;
create function api.greet(name text, times int) returns text language sql immutable return repeat('hello ' || name, times);
create function api.clash(a int) returns text language sql immutable return 'int';
create function api.clash(a text) returns text language sql immutable return 'text';
create function api.defaults(a int default 1, b text default 'x', c boolean default null) returns jsonb
  language sql stable return jsonb_build_object('a', a, 'b', b, 'c', c);
create function api.required(a int, b int default 10) returns int language sql stable return a * b;
create function api.join_words(variadic words text[] default '{}') returns text language sql immutable
  return array_to_string(words, '+');
create function api.prefix_words(prefix text, variadic words text[]) returns text language sql immutable
  return prefix || array_to_string(words, '+');
create function api.sum_all(variadic ns int[]) returns int language sql immutable return (select sum(n) from unnest(ns) n);
create function api.count_list(list int[]) returns int language sql immutable return cardinality(list);
create function api.echo_json(json) returns json language sql immutable return $1;
create function api.echo_jsonb(jsonb) returns jsonb language sql immutable return $1;
create function api.echo_text(text) returns text language sql immutable return $1;
create function api.echo_bytes(bytea) returns bytea language sql immutable return $1;
create function api.echo_xml(xml) returns xml language sql immutable return $1;
create function api.either(doc text) returns text language sql immutable return 'named';
create function api.either(json) returns text language sql immutable return 'unnamed';
create function api.named_json(doc json) returns json language sql immutable return doc;
create function api.named_document(doc jsonb) returns jsonb language sql immutable return doc;
create function api.nap() returns void language sql return null;
create function api.naps() returns setof void language sql as $$ select api.nap() from generate_series(1, 2) $$;
create type api.void as (depth int);
create function api.abyss() returns api.void language sql stable return row(7)::api.void;
create function api.null_text() returns text language sql stable return null::text;
create function api.null_work() returns api.works language sql stable return null::api.works;
create function api.null_json() returns json language sql stable return null::json;
create function api.one_work(id int) returns api.works language sql stable
  begin atomic select * from api.works w where w.id = one_work.id; end;
create function api.works_by(artist int) returns setof api.works language sql stable
  begin atomic select * from api.works where artist_id = artist order by id; end;
create function api.all_works() returns setof api.works language sql stable
  begin atomic select * from api.works order by id; end;
create function api.list_works() returns setof api.work_list language sql stable
  begin atomic select * from api.work_list order by number; end;
create function api.plain_records() returns setof record language sql stable as $$ select 1, 'a'::text $$;
create function api.word_table(up_to int) returns table (n int, word text) language sql stable
  begin atomic select x.n, x.word from api.numbers x where x.n <= up_to order by x.n; end;
create function api.series(up_to int) returns setof int language sql immutable return generate_series(1, up_to);
create function api.words() returns setof text language sql immutable
  begin atomic select unnest(array['a', null, 'c']); end;
create function api.divide(in n int, in d int, out quotient int, out remainder int) language sql immutable
  begin atomic select n / d, n % d; end;
create function api.next_one(inout n int) language sql immutable return n + 1;
create function api.pair(inout a int, inout b int default 5) language sql immutable begin atomic select a + 1, b + 1; end;
create function api.address_of(street text) returns api.address language sql immutable
  return row(street, 1, array['t'])::api.address;
create function api.addresses() returns setof api.address language sql immutable
  begin atomic select 'A'::text, 1, null::text[] union all select 'B', 2, '{}'; end;
create function api.street_of(place api.address) returns text language sql immutable return (place).street;
create function api.mood_of(feeling api.mood) returns api.mood language sql immutable return feeling;
create function api.shade_of(shade api.shade) returns api.shade language sql immutable return shade;
create function api.tomorrow(day date) returns date language sql immutable return day + 1;
create function api.padded(word char(5)) returns text language sql immutable return '[' || word::text || ']';
create function api."odd function"("odd arg" int) returns int language sql immutable return "odd arg";
create function api."select"("from" int) returns int language sql immutable return "from";
create function api.unnamed_pair(int, int) returns int language sql immutable return $1 + $2;
create procedure api.procedure() language sql as $$ select 1 $$;

create function api.write_item(name text) returns api.items language sql volatile
  begin atomic insert into api.items (name) values (write_item.name) returning *; end;
create function api.write_items(names text[]) returns setof api.items language sql volatile
  begin atomic insert into api.items (name) select unnest(names) returning *; end;
create function api.stable_write() returns int language plpgsql stable as $$
begin insert into api.empty values (1); return 1; end $$;
create function api.remove_items() returns setof api.items language sql volatile
  begin atomic delete from api.items returning *; end;

create function api.raise(state text, message text default 'raised', hint text default null, detail text default null)
returns int language plpgsql volatile as $$
begin
  raise exception using errcode = state, message = raise.message, hint = coalesce(raise.hint, ''), detail = coalesce(raise.detail, '');
end $$;
create function api.fail() returns int language plpgsql as $$ begin raise exception 'failed'; end $$;
create function api.zero_division() returns int language sql volatile as $$ select 1 / 0 $$;
create function api.missing_table() returns int language plpgsql as $$ begin perform 1 from nowhere.nothing; return 1; end $$;
create function api.missing_function() returns int language plpgsql as $$ begin perform private.nothing(); return 1; end $$;
create function api.too_many() returns int language plpgsql as $$ begin return (select n from api.numbers); end $$;
create function api.endless() returns int language sql as $$ select api.endless() $$;

create function api.told(status text default null, headers text default null) returns text language sql volatile
  begin atomic
    select set_config('response.status', told.status, true) where told.status is not null;
    select set_config('response.headers', told.headers, true) where told.headers is not null;
    select 'told'::text;
  end;
create function api.settings() returns json language sql stable
  return json_build_object(
    'user', current_user,
    'role', current_setting('role'),
    'claims', current_setting('request.jwt.claims', true)::json,
    'method', current_setting('request.method', true),
    'search_path', current_setting('search_path'),
    'cookies', current_setting('request.cookies', true)::json,
    'read only', current_setting('transaction_read_only'),
    'isolation', current_setting('transaction_isolation'));
create function api.request_path() returns text language sql stable return current_setting('request.path', true);
create function api.request_header(name text) returns text language sql stable
  return current_setting('request.headers', true)::json ->> name;
-- A setting that was once used on a connection is empty afterwards, not null.
create function api.setting(name text) returns text language sql stable return nullif(current_setting(name, true), '');
create function api.time_zone() returns text language sql stable return current_setting('timezone');
create function api.slow(seconds float8) returns void language sql volatile as $$ select pg_sleep(seconds) $$;
create function api.hurried() returns void language sql volatile set statement_timeout = '50ms' as $$ select pg_sleep(5) $$;
create function api.patient() returns text language sql stable set statement_timeout = '7s'
  as $$ select current_setting('statement_timeout') $$;
create function api.serial() returns text language sql stable set default_transaction_isolation = 'serializable'
  as $$ select current_setting('transaction_isolation') $$;
create function api.strict_time() returns text language sql stable set timezone = 'Asia/Tokyo'
  as $$ select '2024-01-01 00:00+00'::timestamptz::text $$;
create function api.from_tools() returns text language plpgsql stable as $$ begin return only_in_tools(); end $$;
create function tools.only_in_tools() returns text language sql immutable return 'found';
create function api.closed_function() returns int language sql immutable return 1;
create function api.definer() returns bigint language sql stable security definer set search_path = ''
  as $$ select count(*) from private.vault $$;
create function private.hidden_function() returns int language sql immutable return 1;

create function api.root() returns json language sql stable return '{"root": true}'::json;
create function private.before_request() returns void language plpgsql as $$
declare
  v_headers json := current_setting('request.headers', true)::json;
begin
  if v_headers ->> 'x-refuse' is not null then
    raise exception 'refused before' using errcode = v_headers ->> 'x-refuse', hint = 'h', detail = 'd';
  end if;
  if v_headers ->> 'x-say' is not null then
    perform set_config('response.headers', json_build_array(json_build_object('X-Fixture', v_headers ->> 'x-say'))::text, true);
  end if;
  if v_headers ->> 'x-role' is not null then
    perform set_config('role', v_headers ->> 'x-role', true);
  end if;
  if v_headers ->> 'x-setting' is not null then
    perform set_config('museum.setting', v_headers ->> 'x-setting', true);
  end if;
end $$;

-- Media types -------------------------------------------------------------------------------------------------------

create domain api."text/html" as text;
create domain api."text/plain" as text;
create domain api."application/vnd.museum.label" as text;
create domain api."image/png" as bytea;
create domain api."*/*" as bytea;

create function api.page() returns api."text/html" language sql stable return '<h1>Museum</h1>';
create function api.picture() returns api."image/png" language sql stable return '\x89504e470d0a1a0a'::bytea;
create function api.anything(kind text default 'application/x-thing') returns api."*/*" language plpgsql stable as $$
begin
  perform set_config('response.headers', json_build_array(json_build_object('Content-Type', kind))::text, true);
  return 'anything'::bytea;
end $$;
create function api.anything_plain() returns api."*/*" language sql stable return 'plain'::bytea;
create function private.label_step(state api."application/vnd.museum.label", work api.works)
  returns api."application/vnd.museum.label" language sql immutable return state || work.title || ';';
create aggregate api.works_label(api.works) (
  sfunc = private.label_step, stype = api."application/vnd.museum.label", initcond = 'labels:'
);
create function private.plain_step(state api."text/plain", thing anyelement) returns api."text/plain"
  language sql immutable as $$ select state || thing::text || E'\n' $$;
create aggregate api.as_plain(anyelement) (sfunc = private.plain_step, stype = api."text/plain", initcond = '');

-- Another schema ----------------------------------------------------------------------------------------------------

create table other.works (id int primary key, name text);
insert into other.works values (1, 'other one'), (2, 'other two');
create table other.loans (id int primary key, work_id int constraint loans_work_fkey references api.works, to_whom text);
insert into other.loans values (1, 1, 'Paris'), (2, 3, 'Berlin');
create table other.terms (id int primary key, loan_id int constraint terms_loan_fkey references other.loans, days int);
insert into other.terms values (1, 1, 30), (2, 1, 60);
create function other.add(a int, b int) returns int language sql immutable return a * b;
create function other.only_other() returns text language sql immutable return 'other';

-- Grants ------------------------------------------------------------------------------------------------------------

-- A role with settings of its own. Roles belong to the cluster: another copy of this museum may have made it.
do $$ begin
  create role museum_guard;
exception when duplicate_object or unique_violation then null;
end $$;
do $$ begin
  alter role museum_guard set timezone = 'Asia/Tokyo';
  alter role museum_guard set default_transaction_isolation = 'repeatable read';
  alter role museum_guard set statement_timeout = '9s';
  grant museum_guard to authenticator;
exception when internal_error or unique_violation then null; -- both at once: the other one did it
end $$;

grant usage on schema private to anon, authenticated, service_role, museum_guard;
grant usage on schema api, other, tools to anon, authenticated, service_role, museum_guard;
grant all on all tables in schema api, other to anon, authenticated, service_role;
grant all on all sequences in schema api, other to anon, authenticated, service_role;
revoke all on api.closed, api.half_open, api.append_only, api.notes from anon, authenticated;
grant select (id, name), insert (id, name), update (name), delete on api.half_open to anon;
grant insert on api.append_only to anon;
grant select on api.notes to anon;
grant select, insert, update, delete on api.notes to authenticated;
grant select on api.closed to authenticated;
revoke execute on function api.closed_function() from public;
grant execute on function api.closed_function() to authenticated;

-- Two programs ask the same questions of one database: each finds the sequences as the other found them, and no
-- background work changes the order in which a table is read.
create function private.rewind() returns void language sql as $$
  select setval(seqrelid, 1000, false) from pg_sequence
$$;
do $$
declare
  v_table regclass;
begin
  for v_table in select oid from pg_class where relkind in ('r', 'm') and relnamespace in ('api'::regnamespace, 'other'::regnamespace)
  loop
    execute format('alter table %s set (autovacuum_enabled = off)', v_table);
  end loop;
end $$;
select private.rewind();
analyze;
