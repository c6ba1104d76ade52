--! Previous: sha1:6ed5956c01abde862614122e11d11236f08d2314
--! Hash: sha1:f1ac0d4e9ecb2dfcc4f384216189f0fa0b719177
--! Message: rate_limits

--! split: 0010-rate_limits.sql
-- What callers have asked for in their window of time, which is when the first of their requests came until it expires.
-- All gateways count here. The columns are those of the library that keeps the stricter limits in the same table;
-- expire is in milliseconds since 1970. What a crash of the server would lose is a minute's worth.
create unlogged table private.rate_limits (
  key    text primary key,
  points integer not null,
  expire bigint
);
create index on private.rate_limits (expire);
alter table private.rate_limits enable row level security;

comment on table private.rate_limits is 'How much was asked for, by each caller, in the window that is open.';
comment on column private.rate_limits.key is 'Whose count it is: what is limited, and the user, key or address.';
comment on column private.rate_limits.points is 'How much was counted.';
comment on column private.rate_limits.expire is 'When the window closes, in milliseconds since 1970.';

--! Included private/count_requests.sql
-- In the order of the keys, so that two gateways that count the same callers wait for each other and do not deadlock.
create or replace function private.count_requests(callers text[], counts integer[], seconds integer)
returns table (key text, points integer, milliseconds double precision) as $$
declare
  v_now bigint := extract(epoch from clock_timestamp()) * 1000;
begin
  delete from private.rate_limits where rate_limits.key in (
    select expired.key from private.rate_limits as expired where expired.expire <= v_now and expired.key <> all (callers)
    order by expired.expire limit 100 for update skip locked
  );
  return query
    insert into private.rate_limits as counted (key, points, expire)
    select told.caller, told.count, v_now + seconds * 1000
    from unnest(callers, counts) as told (caller, count)
    order by told.caller
    on conflict on constraint rate_limits_pkey do update set
      points = case when counted.expire <= v_now then 0 else counted.points end + excluded.points,
      expire = case when counted.expire <= v_now then excluded.expire else counted.expire end
    returning counted.key, counted.points, (counted.expire - v_now)::double precision;
end;
$$ language plpgsql set search_path = '';
comment on function private.count_requests is
  'Adds the requests that a gateway has counted, and tells what all of them have; for the engine, which asks as the owner.';
--! EndIncluded private/count_requests.sql
