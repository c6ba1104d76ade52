create or replace function private.record_schedule_minutes(until timestamptz, outcomes jsonb)
returns table (schedule text, status text, runs bigint) as $$
begin
  return query
    with outcome as (
      select * from jsonb_to_recordset(outcomes) as outcome (
        name text, due timestamptz, missed timestamptz[], next timestamptz
      )
    ), missed_run as (
      insert into api.schedule_runs (schedule, planned_at, status)
        select outcome.name, missed.planned_at, 'missed' from outcome, unnest(outcome.missed) as missed (planned_at)
        on conflict on constraint schedule_runs_pkey do nothing
        returning schedule_runs.schedule, schedule_runs.status
    ), due_run as (
      select outcome.name as schedule, private.start_schedule_run(outcome.name, outcome.due) as status
      from outcome where outcome.due is not null order by outcome.name
    ), processed as (
      update api.schedules set next_run_at = outcome.next from outcome where schedules.name = outcome.name
    )
    select run.schedule, run.status, count(*)
    from (table missed_run union all table due_run) as run
    where run.status is not null group by 1, 2 order by 1, 2;
  delete from api.schedule_runs as run using (
    select outcome.name as schedule, (
      select latest.planned_at from api.schedule_runs as latest
      where latest.schedule = outcome.name order by latest.planned_at desc offset 99 limit 1
    ) as planned_at
    from jsonb_to_recordset(outcomes) as outcome (name text)
  ) as oldest
    where run.schedule = oldest.schedule and run.planned_at < least(oldest.planned_at, record_schedule_minutes.until - interval '7 days')
      and oldest.planned_at is not null and run.status not in ('queued', 'running');
  update private.schedule_clock set processed = record_schedule_minutes.until;
end;
$$ language plpgsql set search_path = '';
comment on function private.record_schedule_minutes is
  'Queues what is due, records what was missed, and deletes old runs; called by the service as the owner, after begin_schedule_minutes.';
