--! Previous: sha1:38712c6706a1564a0ac42fa16007dea2137cd4c4
--! Hash: sha1:7b85b96ad1c109858e6e697895bbfd20111932a7
--! Message: requeue restored tasks

--! Included private/maintain_tasks.sql
-- A process that dies leaves its jobs locked for four hours. A task that is running but locked by no transaction has died, or is about to
-- begin; in the second case another attempt may start too, and one of them does nothing.
create or replace function private.maintain_tasks() returns void as $$
declare
  v_dead text[];
  v_hopeless integer;
begin
  with abandoned as (
    select jobs.locked_by from graphile_worker.jobs join private.tasks on tasks.id::text = jobs.key
    where jobs.locked_at < now() - interval '10 seconds' and tasks.finished_at is null
    for update of tasks skip locked
  )
  select array_agg(distinct locked_by) into v_dead from abandoned;
  if v_dead is not null then
    perform graphile_worker.force_unlock_workers(v_dead);
  end if;
  -- A restored backup has the tasks, but not the jobs.
  perform graphile_worker.add_job(
    'perform', json_build_object('task', jobless.id), run_at => jobless.run_at, job_key => jobless.id::text, max_attempts => 5
  )
  from (
    select tasks.id, tasks.run_at from private.tasks
    where status = 'queued' and finished_at is null and not exists (
      select from graphile_worker.jobs where jobs.key = tasks.id::text
    )
    limit 1000 for update skip locked
  ) as jobless;
  with hopeless as (
    select tasks.id from private.tasks
    where finished_at is null and created_at < now() - interval '10 seconds' and not exists (
      select from graphile_worker.jobs
      where jobs.key = tasks.id::text and (jobs.locked_at is not null or jobs.attempts < jobs.max_attempts)
    )
    for update skip locked
  )
  select count(private.fail_task(
    id, '{"status": 500, "code": "XX000", "message": "The task was given up after several attempts."}'
  )) into v_hopeless from hopeless;
  delete from private.tasks where tasks.id in (
    select expired.id from private.tasks as expired where expired.expires_at <= now()
    order by expired.expires_at limit 1000 for update skip locked
  );
end;
$$ language plpgsql set search_path = '';
comment on function private.maintain_tasks is
  'Requeues abandoned tasks and those of a restored backup, fails hopeless ones and deletes old ones; called by the service as the owner.';
--! EndIncluded private/maintain_tasks.sql
