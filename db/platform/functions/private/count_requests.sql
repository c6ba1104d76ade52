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
