-- Faults that may pass, such as a full disk, end the transaction, and the minute is processed again. Others are those of the schedule.
create or replace function private.start_schedule_run(schedule text, planned_at timestamptz) returns text as $$
declare
  v_schedule api.schedules;
  v_message text;
  v_hint text;
begin
  -- A transaction that is starting a run is not waited for: it may be open for long.
  if not pg_try_advisory_xact_lock(hashtextextended('start_schedule_run ' || schedule, 0)) then
    insert into api.schedule_runs (schedule, planned_at, status)
      values (start_schedule_run.schedule, start_schedule_run.planned_at, 'skipped')
      on conflict on constraint schedule_runs_pkey do nothing;
    return case when found then 'skipped' end;
  end if;
  update api.schedule_runs as run
    set status = 'failed', finished_at = now(), error = '{"code": "XX000", "message": "The task is gone."}'
    where run.schedule = start_schedule_run.schedule and run.status in ('queued', 'running')
      and not exists (select from private.tasks where tasks.id = run.task and tasks.finished_at is null);
  insert into api.schedule_runs (schedule, planned_at, status)
    select start_schedule_run.schedule, start_schedule_run.planned_at, case when exists (
      select from api.schedule_runs as run
      where run.schedule = start_schedule_run.schedule and run.status in ('queued', 'running')
    ) then 'skipped' else 'queued' end
    on conflict on constraint schedule_runs_pkey do nothing;
  if not found then
    return null;
  end if;
  select * into v_schedule from api.schedules where schedules.name = start_schedule_run.schedule;
  begin
    update api.schedule_runs as run
      set task = private.queue_call(
        v_schedule.role, v_schedule.claims || jsonb_build_object('role', v_schedule.role),
        v_schedule.function, v_schedule.arguments, time_limit => v_schedule.time_limit,
        lane => 'system', caller_key => 'schedule ' || v_schedule.name
      )
      where run.schedule = start_schedule_run.schedule and run.planned_at = start_schedule_run.planned_at and run.status = 'queued';
    return case when found then 'queued' else 'skipped' end;
  exception when others then
    if sqlstate ~ '^(08|40|53|55|57|58|XX)' then
      raise;
    end if;
    get stacked diagnostics v_message = message_text, v_hint = pg_exception_hint;
    update api.schedule_runs as run
      set status = 'failed', finished_at = now(),
        error = jsonb_build_object('code', sqlstate, 'message', v_message, 'hint', nullif(v_hint, ''))
      where run.schedule = start_schedule_run.schedule and run.planned_at = start_schedule_run.planned_at;
    return 'failed';
  end;
end;
$$ language plpgsql set search_path = '';
comment on function private.start_schedule_run is
  'Queues a run, unless the previous one is unfinished or this time was run before; returns the status of the run.';
