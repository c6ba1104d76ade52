/**
 * `items` and `events` have more rows than count as many, the other tables few. All have a column that an application may update at any
 * time.
 */
export const TRANSACTION_SCHEMA = `
  create table teams (id int primary key, name text, touched int);
  create table people (id int primary key, team int references teams, name text, age int, touched int);
  create table items (id int primary key, owner int references people, v int, t text not null, n int, touched int) with (fillfactor = 50);
  create index items_v on items (v);
  create unique index items_n on items (n);
  create table events (id int primary key, item int references items, note text, at int, touched int) with (fillfactor = 50);
  create table settings (key text primary key, value text, touched int);
  create table notes (id int primary key, body text, touched int);
  create table log (id bigint generated always as identity, item int, note text, touched int);
  create table queue (id int, touched int);
  create table archive (id int, touched int);
  create table parts (id int, k int, touched int) partition by range (id);
  create table parts_1 partition of parts for values from (1) to (1000);
  create table parts_2 partition of parts for values from (1000) to (2000);
  create table groups (id int primary key, name text, touched int);
  create table members (id int primary key, "group" int references groups on update cascade on delete cascade, touched int);
  create table "Odd Name" (id int primary key, touched int);
  create table base (id int, touched int);
  create table derived () inherits (base);
  create view item_view as select id, v, t from items;
  create materialized view totals as select owner, count(*) as items from items group by owner;

  create function lock_items(low int, high int) returns bigint language sql
    as 'select count(*) from (select from items where id between low and high for update) as locked';
  create function lock_all_items() returns void language plpgsql as 'begin perform 1 from items for update; end';
  create function lock_indirectly() returns void language plpgsql as 'begin perform lock_all_items(); end';
  create function share_people() returns void language plpgsql as 'begin perform 1 from people for share; end';
  create function touch_team(team int) returns void language sql as 'update teams set name = name where id = team';
  create function touch_teams() returns void language sql begin atomic update teams set name = name; end;
  create function rename_items(name text) returns void language plpgsql as 'begin update items set t = name; end';
  create function rename_dynamic(kind regclass) returns void language plpgsql
    as $$ begin execute format('update %s set touched = 1', kind); end $$;
  create function count_items() returns bigint language sql as 'select count(*) from items';
  create function name_of(person int) returns text language sql stable as 'select name from people where id = person';
  create function guarded() returns void language plpgsql
    as $$ begin update settings set value = 'x' where key = 'a'; exception when others then null; end $$;
  create function taken_back() returns void language plpgsql
    as $$ begin update settings set value = 'x'; raise exception 'no'; exception when others then null; end $$;
  create procedure age_people() language plpgsql as 'begin update people set age = age + 1; end';
  create procedure age_each() language plpgsql
    as 'declare person record; begin for person in select id from people loop update people set age = 1 where id = person.id; end loop; end';

  create operator === (leftarg = int, rightarg = int, function = int4eq);
  create function lock_team(team int) returns boolean language sql as 'select true from teams where id = team for update';
  create table checked (id int, is_locked boolean default lock_team(1), touched int);
  create view group_view as select id, name from groups;
  create function rename_group() returns trigger language plpgsql
    as 'begin update groups set name = new.name where id = new.id; return new; end';
  create trigger group_renamed instead of update on group_view for each row execute function rename_group();
  create rule member_added as on insert to members where new.id > 500 do also update settings set value = 'added' where key = 'b';
  create function keep() returns trigger language plpgsql as 'begin return null; end';
  create function count_log() returns trigger language plpgsql
    as $$ begin update settings set value = new.note where key = 'logged'; return null; end $$;
  create function hold_items() returns trigger language plpgsql
    as 'begin perform 1 from items where id <= 50 for update; return null; end';
  create trigger notes_kept before update on notes for each row execute function keep();
  create trigger log_counted after insert on log for each row execute function count_log();
  create constraint trigger queue_held after insert on queue deferrable initially deferred for each row execute function hold_items();
`;

export const TRANSACTION_ROWS = `
  insert into teams select i, 'team' from generate_series(1, 20) as i;
  insert into people select i, 1 + i % 20, 'person', i % 80 from generate_series(1, 300) as i;
  insert into items select i, 1 + i % 300, i % 100, 't', i from generate_series(1, 12000) as i;
  insert into events select i, i, 'event', i from generate_series(1, 12000) as i;
  insert into settings values ('a', '1'), ('b', '2'), ('logged', '0');
  insert into notes select i, 'note' from generate_series(1, 200) as i;
  insert into parts select i, i % 10 from generate_series(600, 1400) as i;
  insert into groups select i, 'group' from generate_series(1, 10) as i;
  insert into members select i, 1 + i % 10 from generate_series(1, 100) as i;
  insert into "Odd Name" select i from generate_series(1, 10) as i;
  insert into base select i from generate_series(1, 10) as i;
  insert into derived select i from generate_series(1, 10) as i;
  refresh materialized view totals;
`;

/** The tables that an application updates, and the views that it reads beside them. */
export const UPDATED_TABLES = [
  ..."teams people items events settings notes log queue archive parts_1 parts_2 groups members base derived checked".split(
    " ",
  ),
  '"Odd Name"',
];
export const READ_VIEWS = ["item_view", "totals", "parts"];

/** A migration: its statements. Those that begin with a star work on more than ten thousand rows, also together with those before them. */
type Script = readonly string[];

const BLOCKS: readonly Script[] = [
  ["* do $$ begin perform 1 from items for update; end $$"],
  ["* do $$ begin perform 1 from items for no key update; end $$"],
  ["* do $$ begin perform 1 from items for share; end $$"],
  ["do $$ begin perform 1 from items for key share; end $$"],
  ["do $$ begin perform 1 from settings for update; end $$"],
  ["do $$ begin update people set age = 0 where id = 5; end $$"],
  ["do $$ begin delete from notes where id < 5; end $$", "comment on table items is 'x'"],
  ["* do 'begin update items set t = ''x''; end'"],
  ["* do 'begin delete from events; end'"],
  [
    "* do $$ declare item record; begin for item in select id from items loop update items set t = 'y' where id = item.id; end loop; end $$",
  ],
  ["* do $$ declare item record; begin for item in select id from items for update loop null; end loop; end $$"],
  [
    "do $$ declare s record; begin for s in select key from settings loop update settings set value = 'z' where key = s.key; end loop; end $$",
  ],
  [
    "do $$ begin if exists (select from settings where key = 'a') then update teams set name = 'x' where id = 1; end if; end $$",
  ],
  [
    "do $$ begin if not exists (select from settings where key = 'none') then insert into settings values ('none', '0'); end if; end $$",
  ],
  ["do $$ begin execute 'select 1 from people for update'; end $$"],
  [
    "do $$ declare name text; begin foreach name in array array['teams', 'settings'] loop execute format('update %I set touched = 1', name); end loop; end $$",
  ],
  [
    "do $$ begin create table made (id int); insert into made select generate_series(1, 100); update made set id = 0; end $$",
  ],
  ["* do $$ begin create table made as select * from items; lock table settings; end $$"],
  ["do $$ begin update settings set value = 'x' where key = 'a'; exception when others then null; end $$"],
  ["do $$ begin update settings set value = 'x'; raise exception 'no'; exception when others then null; end $$"],
  ["do $$ begin perform count(*) from items; end $$", "create table made (id int)"],
  ["do $$ declare held cursor for select * from people for update; begin open held; move forward 5 in held; end $$"],
  [
    "* do $$ begin merge into items using events on events.item = items.id when matched then update set t = 'm'; end $$",
  ],
  [
    "do $$ begin insert into teams values (1, 'again') on conflict (id) do update set name = 'again' where false; end $$",
  ],
];

const CONFLICTS: readonly Script[] = [
  ["insert into settings values ('new', '1'), ('a', '2') on conflict (key) do update set value = 'x' where false"],
  [
    "insert into settings values ('new', '1'), ('a', '2') on conflict (key) do update set value = 'x' where false",
    "* create table made as select * from items",
  ],
  ["insert into settings values ('new', '1'), ('a', '2') on conflict (key) do nothing", "select count(*) from items"],
];

const FUNCTIONS: readonly Script[] = [
  ["* select lock_all_items()"],
  ["* select lock_indirectly()", "comment on table teams is 'x'"],
  ["select lock_items(1, 10)"],
  ["* select lock_items(1, 12000)"],
  ["select share_people()", "* create table made as select * from items"],
  ["select touch_team(3)", "* select count(*) from events"],
  ["select touch_teams()", "select count(*) from teams"],
  ["* select rename_items('x')"],
  ["select rename_dynamic('teams')"],
  ["* select rename_dynamic('items')"],
  ["select rename_dynamic('log')"],
  ["select count_items()"],
  ["create table made as select id, name_of(owner) as name from items where id < 50"],
  ["select guarded()", "* create table made as select i from generate_series(1, 20000) as i"],
  ["select taken_back()", "create table made as select i from generate_series(1, 20000) as i"],
  ["call age_people()"],
  ["call age_each()", "* create materialized view made as select * from items"],
  ["create table made as select lock_items(5, 6) as locked"],
  ["select name_of(1)"],
  ["insert into log (item, note) select 1, 'x' from (select touch_team(2)) as touched"],
  ["with touched as (select touch_team(4)) select count(*) from touched"],
  ["create function made() returns void language sql as 'update items set t = t'", "* select made()"],
  ["create function made() returns void language sql as 'update items set t = t'"],
  ["alter table log add column kind text default name_of(1)"],
  ["insert into log (item, note) values (1, 'x')", "* create table made as select * from events", "select 1"],
  ["insert into log (item, note) select i, 'x' from generate_series(1, 30) as i"],
  ["insert into queue values (1)"],
  ["create table made as select * from items where id < 100", "insert into queue values (1)"],
  ["update notes set body = 'kept'"],
  [
    "update notes set body = 'kept' where id = 3",
    "* create table made as select i from generate_series(1, 20000) as i",
  ],
  [
    "create trigger made before update on settings for each row execute function keep()",
    "update settings set value = 'x'",
  ],
];

const WRITES: readonly Script[] = [
  ["* insert into archive select id from items for update"],
  ["* insert into archive select id from items for share"],
  ["insert into archive select id from items for key share"],
  ["* create table made as select * from items for update"],
  ["* create table made as select * from items for share"],
  ["create table made as select * from settings for update"],
  ["create table made as select * from items for key share"],
  ["create materialized view made as select * from people"],
  ["* insert into items select * from items on conflict (id) do update set t = excluded.t where false"],
  ["* insert into items select * from items on conflict (id) do update set t = 'x'"],
  ["insert into items select * from items on conflict (id) do nothing"],
  ["insert into settings values ('a', '3') on conflict (key) do update set value = excluded.value"],
  ["insert into settings values ('a', '3') on conflict (key) do update set value = excluded.value where false"],
  ["insert into settings values ('new', '3') on conflict (key) do nothing", "create table made (id int)"],
  ["* update items set t = 'x' where owner <= 225"],
  [
    "* update items set t = 'x' where owner <= 225",
    "comment on table items is 'x'",
    "* create table made as select * from events",
  ],
  ["update items set t = 'x' where id <= 500", "comment on table items is 'x'"],
  ["update items set t = 'x' where id = 5"],
  [
    "update items set t = 'x' where id = 5",
    "* create table made as select * from events",
    "create table more (id int)",
  ],
  ["update items set t = 'x' where id = -1", "create table made as select * from events"],
  ["delete from events where id between 5 and 9", "* select count(*) from items"],
  ["* with gone as (delete from events returning *) select count(*) from gone"],
  ["with gone as (delete from settings returning key) insert into log (note) select key from gone"],
  ["merge into teams using people on people.id = teams.id when matched then update set name = 'm'"],
  [
    "merge into settings using (values ('new')) as given (key) on given.key = settings.key when not matched then insert values (given.key)",
  ],
  ["update parts set k = 0 where id < 700", "* create table made as select * from items"],
  ["delete from parts where id > 1390"],
  ["select * from item_view where id = 7 for update"],
  ["update item_view set v = 1 where id = 7"],
  ["delete from people where id = -1"],
  ["declare rows cursor for select * from people for update", "fetch 5 from rows", "fetch all from rows"],
  ["declare rows cursor for select * from items", "fetch 5 from rows"],
  ["select * from settings where key = 'a' for no key update", "select * from teams for share"],
  ["select * from teams for key share", "create table made as select * from items"],
  [
    "update settings set value = 'x' where key = 'a'",
    "savepoint one",
    "update teams set name = 'x'",
    "rollback to savepoint one",
  ],
];

const NEW_TABLES: readonly Script[] = [
  ["create table made as select * from items", "alter table settings add column z int", "* create index on made (id)"],
  [
    "create table made as select * from items",
    "alter table items add column z int",
    "* alter table made alter v type text",
  ],
  ["create table made as select * from items", "alter table items add column z int", "* select count(*) from made"],
  ["create table made as select * from items", "alter table items add column z int", "select count(*) from settings"],
  ["alter table teams add column z int", "* create table made as select i from generate_series(1, 20000) as i"],
  ["alter table teams add column z int", "create table made (id int)", "* insert into made select id from items"],
  ["alter table teams add column z int", "create table made (id int)", "insert into made select id from people"],
  ["alter table teams add column z int", "create table made as select * from people", "create index on made (id)"],
  [
    "create table made as select * from items",
    "update settings set value = 'x' where key = 'a'",
    "* create index on made (id)",
  ],
  ["create table made as select * from items", "select lock_items(1, 3)", "* alter table made add primary key (id)"],
  ["create table made as select * from items", "create index on made (id)", "alter table made alter v type text"],
  [
    "create table made as select * from items",
    "create trigger made after insert on people for each row execute function keep()",
    "* update made set v = 0",
  ],
  [
    "create table made as select * from items",
    "* alter table made add foreign key (owner) references people",
    "* delete from made",
  ],
  [
    "create table made as select * from items",
    "lock table people in share mode",
    "* alter table made add check (id > 0)",
  ],
  ["create temp table made as select * from items", "lock table people", "* select max(v) from made"],
  [
    "create temp table made as select * from events",
    "update teams set name = 'x' where id = 2",
    "* select count(*) from made",
  ],
  [
    "create table made (id int primary key)",
    "insert into made select i from generate_series(1, 15000) as i",
    "drop table queue",
    "* update made set id = -id",
  ],
  [
    "create table made (id int)",
    "alter table log add column kind int",
    "insert into made select i from generate_series(1, 6000) as i",
    "* insert into made select i from generate_series(1, 6000) as i",
  ],
  [
    "update teams set name = 'x' where id = 1",
    "create table made as select i from generate_series(1, 4000) as i",
    "create table more as select i from generate_series(1, 4000) as i",
    "* create table most as select i from generate_series(1, 4000) as i",
  ],
  [
    "create materialized view made as select * from items",
    "alter table people add column z int",
    "* refresh materialized view made",
  ],
  ["alter table people rename column age to years", "* refresh materialized view totals"],
  ["alter table people add column z int", "alter table teams add column z int", "create table made (id int)"],
  ["create index on settings (value)", "* create table made as select * from items"],
  ["create policy made on people using (true)", "* create table made as select * from items where v >= 0"],
  ["comment on table people is 'x'", "create table made as select * from items", "create index on made (v)"],
  ["truncate queue", "* create table made as select * from items"],
  ["truncate settings", "select 1"],
  ["drop view item_view", "create view item_view as select id, v, t, n from items"],
  ["alter table people add constraint made check (age >= 0) not valid", "alter table people validate constraint made"],
  ["drop function count_items()", "create table made as select * from events", "create unique index on made (id)"],
];

const HARMLESS: readonly Script[] = [
  [
    "create table made (id int primary key)",
    "insert into made select i from generate_series(1, 20000) as i",
    "create index on made (id)",
  ],
  ["insert into items (id, t) select i, 'new' from generate_series(20001, 40000) as i"],
  ["insert into events (id, item) select i, i - 20000 from generate_series(20001, 32000) as i"],
  ["insert into people (id, team, name) values (1001, 1, 'new')", "create table made as select * from items"],
  [
    "insert into settings values ('new', '1')",
    "update settings set value = '2' where key = 'new'",
    "create table made as select * from events",
  ],
  [
    "insert into teams values (101, 'new')",
    "insert into people (id, team) values (1001, 101)",
    "select count(*) from items",
  ],
  ["create view made as select * from items", "grant select on made to public"],
  ["create table made (like items including all)", "insert into made select * from items"],
  ["create type made as enum ('a')", "create table uses_made (kind made)", "insert into uses_made values ('a')"],
  ["select count(*) from items", "select count(*) from events", "select max(id) from items"],
  ["create schema made", "create table made.items (id int)", "update made.items set id = 1"],
  ["alter table events validate constraint events_item_fkey", "create table made as select * from events"],
  [
    "create materialized view made as select * from items",
    "create unique index on made (id)",
    "refresh materialized view concurrently made",
  ],
  [
    "create function made() returns int language sql as 'select 1'",
    "select made()",
    "create table more as select made() from items",
  ],
  ["create temp table made as select * from items", "update made set v = 0", "delete from made"],
  ["analyze items", "create statistics made on v, n from items"],
];

const INDIRECT: readonly Script[] = [
  ["delete from groups where id = 2", "* create table made as select * from items"],
  ["update groups set id = 99 where id = 2"],
  ["delete from members where id = 2", "select count(*) from groups"],
  ["insert into members values (200, 3)", "create table made as select * from items"],
  ["insert into members values (501, 3)", "* create table made as select * from items"],
  ["update group_view set name = 'x' where id = 4"],
  ["insert into checked (id) values (1)"],
  ['update "Odd Name" set id = id + 100', "* create table made as select * from items"],
  ['do $$ begin perform 1 from "Odd Name" for share; end $$'],
  ["update base set id = 0 where id < 3"],
  ["update only base set id = 0"],
  ["delete from derived where id = 1", "* select count(*) from events"],
  ["select * from base for update"],
  ["select * from people where id in (select id from teams) for update of people"],
  ["select * from people join teams on teams.id = people.team for update of teams nowait"],
  ["select * from settings limit 1 for update skip locked", "* create table made as select * from items"],
  ["select * from parts where id = 700 for update"],
  ["select * from people where ctid = '(0,1)' for update"],
  ["insert into people values (2000, 1, 'x')", "select * from teams where ctid = '(0,1)' for update"],
  ["update teams set name = 'x' where ctid = '(0,2)'", "* create table made as select * from items"],
  ["prepare touch as update teams set name = 'x' where id = 3", "execute touch"],
  ["prepare look as select * from teams for share", "execute look", "* create table made as select * from items"],
  [
    "declare teams_cursor cursor for select * from teams for update",
    "fetch 1 from teams_cursor",
    "update teams set name = 'x' where current of teams_cursor",
  ],
  ["lock table items in row share mode", "create table made as select * from items"],
  ["lock table items in row exclusive mode", "create table made as select * from events"],
  ["lock table items in share update exclusive mode", "create table made as select * from events"],
  ["lock table items in exclusive mode", "* create table made as select * from events"],
  [
    "lock table settings in share row exclusive mode",
    "* do $$ begin create table made as select * from events; end $$",
  ],
  ["set constraints all immediate", "insert into queue values (1)", "* create table made as select * from items"],
  ["with locked as (select id from teams for update) insert into archive select id from locked"],
  [
    "with moved as (update teams set name = 'm' where id = 1 returning id) select count(*) from moved",
    "* select count(*) from events",
  ],
  ["update people set name = teams.name from teams where teams.id = people.team and people.id < 20"],
  [
    "do $$ begin begin update teams set name = 'x' where id = 1; exception when others then null; end; update teams set name = 'y' where id = 1; end $$",
  ],
  [
    "select * from teams for share",
    "do $$ begin update teams set name = 'y' where id = 1; exception when others then null; end $$",
  ],
  ["explain (analyze) update teams set name = 'x' where id = 5"],
  ["explain update teams set name = 'x' where id = 5", "create table made as select * from items"],
  ["select setval(pg_get_serial_sequence('log', 'id'), 5)", "create table made as select * from items"],
  ["alter table archive add column z float default random()", "* create table made as select * from items"],
  ['alter table "Odd Name" rename to odd', "create table made (id int)"],
  ["alter index items_v rename to items_by_v", "create table made as select * from items"],
];

export const TRANSACTION_CORPUS: readonly Script[] = [
  ...INDIRECT,
  ...CONFLICTS,
  ...BLOCKS,
  ...FUNCTIONS,
  ...WRITES,
  ...NEW_TABLES,
  ...HARMLESS,
];
