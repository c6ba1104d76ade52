-- The clock is the database's, so that a gateway whose clock is ahead runs nothing early. A gateway plans a minute by its own clock: one that
-- the database reaches within half a minute counts as reached. When the database's clock was set back, the times are counted anew from there.
create or replace function private.begin_schedule_minutes(
  planned_at timestamptz, out processed timestamptz, out until timestamptz, out was_set_back boolean
) as $$
declare
  v_now timestamptz;
begin
  select schedule_clock.processed into begin_schedule_minutes.processed from private.schedule_clock for update;
  v_now := clock_timestamp();
  until := date_trunc('minute', greatest(v_now, least(planned_at, v_now + interval '30 seconds')));
  was_set_back := until < processed - interval '1 minute';
  if was_set_back then
    update api.schedules set changed_at = until, next_run_at = null where next_run_at > until;
    processed := until;
  end if;
  until := greatest(until, processed);
end;
$$ language plpgsql set search_path = '';
comment on function private.begin_schedule_minutes is
  'Locks the clock until the end of the transaction, and returns how far the schedules are to be processed; called by the service as the owner.';
