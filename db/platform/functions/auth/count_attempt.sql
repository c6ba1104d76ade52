-- Whoever fails for a user from many networks does not lock out the user, who has signed in from this network before: there, the limits of the
-- network hold alone. All attempts count.
create or replace function auth.count_attempt(name text, address inet, is_known_network boolean default false) returns integer as $$
declare
  v_window constant interval := '15 minutes';
  v_now constant timestamptz := clock_timestamp();
  v_wait integer;
begin
  -- From here on each counter is locked, whether or not it existed.
  insert into auth.login_throttle as counter (scope, key, failures, window_started_at)
    select scope, key, 0, v_now from auth.login_counters(name, address)
    on conflict on constraint login_throttle_pkey do update set
      failures = case when counter.window_started_at > v_now - v_window then counter.failures else 0 end,
      pending = case when counter.window_started_at > v_now - v_window then counter.pending else 0 end,
      window_started_at =
        case when counter.window_started_at > v_now - v_window then counter.window_started_at else v_now end;

  -- Attempts in progress may succeed: where they alone fill the counter, retrying soon is worthwhile.
  select max(case
    when counter.failures - counter.pending < counters.most then 1
    else greatest(1, ceil(extract(epoch from counter.window_started_at + v_window - v_now))::integer)
  end) into v_wait
    from auth.login_throttle as counter join auth.login_counters(name, address) as counters using (scope, key)
    where counter.failures >= counters.most and not (counters.scope = 'user' and is_known_network);

  if v_wait is null then
    update auth.login_throttle as counter set failures = failures + 1, pending = pending + 1
      from auth.login_counters(name, address) as counters
      where counter.scope = counters.scope and counter.key = counters.key;
  else
    delete from auth.login_throttle as counter using auth.login_counters(name, address) as counters
      where counter.scope = counters.scope and counter.key = counters.key and counter.failures = 0;
  end if;
  delete from auth.login_throttle where (scope, key) in (
    select scope, key from auth.login_throttle where window_started_at < v_now - v_window
    order by window_started_at limit 10 for update skip locked
  );
  return coalesce(v_wait, 0);
end;
$$ language plpgsql set search_path = '';
comment on function auth.count_attempt is
  'Counts an attempt before it is made; returns 0, or the seconds until the next one is allowed.';
