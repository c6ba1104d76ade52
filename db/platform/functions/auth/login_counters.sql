-- Trying many users meets the counter of the address, trying from many addresses that of the user. An IPv6 address counts as its /64
-- network, and as its /48 network, of which a provider gives all /64 networks to one site.
create or replace function auth.login_counters(name text, address inet)
returns table (scope text, key text, most integer)
language sql immutable parallel safe
begin atomic
  select counters.scope, counters.key, counters.most
  from coalesce(host(auth.network_of(login_counters.address)), 'unknown') as place
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
