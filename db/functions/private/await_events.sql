-- Whoever hands events on calls this first, and again before the time is over; several may. Where nobody did for a while,
-- what happened then was neither told nor numbered: a number is left out, so that all who count notice.
create or replace function private.await_events(
  seconds integer,
  out was_awaited boolean,
  out at double precision,
  out writers text[]
) as $$
declare
  v_now timestamptz;
begin
  -- One at a time, or the time could be set back.
  perform pg_advisory_xact_lock(hashtext('private.await_events'));
  v_now := clock_timestamp();
  was_awaited := coalesce(to_timestamp(pg_sequence_last_value('private.events_awaited_until')) >= v_now, false);
  at := extract(epoch from v_now);
  perform setval('private.events_awaited_until', ceil(at)::bigint + seconds);
  if not was_awaited then
    perform nextval('private.event_number');
  end if;
  select coalesce(array_agg(virtualtransaction), '{}') into writers
    from pg_locks
    where locktype = 'relation' and relation = 'private.events_awaited_until'::regclass and mode = 'RowExclusiveLock'
      and database = (select oid from pg_database where datname = current_database())
      and pid is distinct from pg_backend_pid();
end;
$$ language plpgsql security definer set search_path = '';
grant execute on function private.await_events to authenticator;
comment on function private.await_events is
  'Has events told for so many seconds. Answers whether they were until now, when that was, and which transactions have looked already.';
