--! Previous: sha1:4be4e296ca2b00eb9290d8dcb1aa3ac2f73aab6d
--! Hash: sha1:90afbbe4ed848556c30ec46b7996a9bcffc634d5
--! Message: count sign-ins by IPv6 site

alter table auth.login_throttle drop constraint login_throttle_scope_check;
alter table auth.login_throttle add constraint login_throttle_scope_check check (scope in ('pair', 'address', 'site', 'user')) not valid;
comment on column auth.login_throttle.key is 'User name and address, address, site (IPv6 /48), or user name; names in lower case.';
--! Included auth/login_counters.sql
-- Trying many users meets the counter of the address, trying from many addresses that of the user. An IPv6 address counts as its /64
-- network, and as its /48 network, of which a provider gives all /64 networks to one site.
create or replace function auth.login_counters(name text, address inet)
returns table (scope text, key text, most integer)
language sql immutable parallel safe
begin atomic
  select counters.scope, counters.key, counters.most
  from coalesce(
    host(network(set_masklen(login_counters.address, case family(login_counters.address) when 4 then 32 else 64 end))),
    'unknown'
  ) as place
  cross join lateral (values
    ('address', place, 50),
    ('pair', lower(login_counters.name) || ' ' || place, 5),
    ('site', case family(login_counters.address) when 6 then host(network(set_masklen(login_counters.address, 48))) end, 200),
    ('user', lower(login_counters.name), 100)
  ) as counters (scope, key, most)
  where counters.key is not null
  order by counters.scope;
end;

comment on function auth.login_counters is
  'The counters of a sign-in and their limits in 15 minutes, in the order in which they are locked.';
--! EndIncluded auth/login_counters.sql
