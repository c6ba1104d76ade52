-- A task that is running but locked by no transaction has died with its process, or is about to begin; in the second case another attempt may start
-- too, and one of them does nothing. A due task without a job (of a restored backup, of a process that died, of an earlier version) gets one.
create or replace function private.maintain_tasks() returns void as $$
declare
  v_dead record;
begin
  for v_dead in
    select tasks.id, tasks.attempts from private.tasks
    where status = 'running' and finished_at is null and coalesce(started_at, created_at) < now() - interval '10 seconds'
    for update skip locked
  loop
    if v_dead.attempts < 5 then
      perform private.requeue_task(v_dead.id, '0 seconds');
    else
      perform private.fail_task(
        v_dead.id, '{"status": 500, "code": "XX000", "message": "The task was given up after several attempts."}'
      );
    end if;
  end loop;
  perform graphile_worker.add_job('perform_' || jobless.lane, '{}', max_attempts => 5)
    from (
      select name as lane, (
        select count(*) from (
          select from private.tasks where tasks.lane = name and status = 'queued' and run_at <= now() limit 10
        ) as due
      ) - (
        select count(*) from (
          select from graphile_worker.jobs
          where task_identifier = 'perform_' || name and locked_at is null and run_at <= now() and attempts < max_attempts limit 10
        ) as ready
      ) as missing
      from private.task_lanes
    ) as jobless, generate_series(1, jobless.missing);
  delete from private.tasks where tasks.id in (
    select expired.id from private.tasks as expired where expired.expires_at <= now()
    order by expired.expires_at limit 1000 for update skip locked
  );
end;
$$ language plpgsql set search_path = '';
comment on function private.maintain_tasks is
  'Requeues abandoned tasks, fails hopeless ones, adds missing jobs and deletes old tasks; called by the service as the owner.';
