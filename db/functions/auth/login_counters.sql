-- A spray over many users meets the counter of its address, one from many addresses that of its user. Whoever has one
-- address of IPv6 has the 2^64 of its network.
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
    ('user', lower(login_counters.name), 100)
  ) as counters (scope, key, most)
  order by counters.scope;
end;

comment on function auth.login_counters is
  'Where a sign-in counts, and how many failures each counter bears in 15 minutes; in the order in which they are locked.';
