-- Tables and functions beside the museum's, for the tests of plans.

create table api.hammers (id int primary key, name text not null unique, maker text unique, price int, secret int);
create unique index on api.hammers (price) where price > 0;
create table api.shelves (place text not null, number int not null, unique (place, number));
create table api.scraps (body text);
create view api.hammer_names as select id, name from api.hammers;
create view api.makers as select maker, count(*) as hammers from api.hammers group by maker;
create function api.cheap_hammers() returns setof api.hammers stable language sql as 'select * from api.hammers';
create function api.from_cursor(cursor text, size int default 1) returns setof api.hammers stable language sql
  as 'select * from api.hammers';
grant select on api.hammers, api.shelves, api.scraps, api.hammer_names, api.makers to anon;

create role page_clerk;
grant usage on schema api to page_clerk;
grant select (name, price) on api.hammers to page_clerk;
grant select (place) on api.shelves to page_clerk;

create table api.secret_things (id int primary key, work_id int references api.works);
create table api.secret_links (
  artist_id int references api.artists, exhibition_id int references api.exhibitions, primary key (artist_id, exhibition_id)
);
create table api.open_links (
  artist_id int references api.artists, exhibition_id int references api.exhibitions, primary key (artist_id, exhibition_id)
);
grant select on api.open_links to anon;
grant select on api.secret_things, api.secret_links, api.open_links to authenticated;

create function api.volatile_works() returns setof api.works volatile language sql as 'select * from api.works';

-- The login of the recorded catalogue. Tests that run at the same time grant roles to authenticator.
create role planning_login noinherit;
grant anon, authenticated, service_role, museum_guard, page_clerk to planning_login;
