-- A listener calls this first, and again before the time is over; several may. Events of a time without listeners are neither sent nor
-- numbered: one number is skipped, so that listeners notice the gap.
create or replace function private.await_events(
  seconds integer,
  out was_awaited boolean,
  out at double precision,
  out writers text[]
) as $$
declare
  v_now timestamptz;
begin
  -- Serialized: otherwise the time could be set back.
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
  'Emits events for so many seconds. Returns whether they were emitted until now, when that was, and which transactions had checked already.';
