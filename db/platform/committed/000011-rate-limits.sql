--! Previous: sha1:657a6f7252c550cfbf756869e7de5cbcdfc2e65b
--! Hash: sha1:2d322ea22c1954ca7eaa521aa46c0a180a59824c
--! Message: rate limits

-- Requests of each caller in the current window, which begins with the first request and ends at expire (milliseconds since 1970).
-- All processes count here. The columns are those of rate-limiter-flexible, which keeps the stricter limits in the same table.
-- Unlogged: a crash loses one minute of counts.
create unlogged table private.rate_limits (
  key    text primary key,
  points integer not null,
  expire bigint
);
create index on private.rate_limits (expire);
alter table private.rate_limits enable row level security;

comment on table private.rate_limits is 'Requests of each caller in the current window.';
comment on column private.rate_limits.key is 'What is limited, and the user, key or address that is counted.';
comment on column private.rate_limits.points is 'The count.';
comment on column private.rate_limits.expire is 'When the window ends, in milliseconds since 1970.';

--! Included private/count_requests.sql
-- In the order of the keys, so that processes that count the same callers do not deadlock.
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
  'Adds the requests counted by a process and returns the totals; called by the service as the owner.';
--! EndIncluded private/count_requests.sql
