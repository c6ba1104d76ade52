-- Limits the number of tasks per owner; the limit is approximate, because two calls may both be the last. A given id is that of a retry,
-- whose task may exist already.
create or replace function private.queue_task(
  given_id uuid, owner text, work text, caller jsonb, request jsonb, body bytea, out id uuid, out estimate integer
) as $$
declare
  v_waiting integer;
begin
  select count(*) into v_waiting from private.tasks
    where tasks.owner = queue_task.owner and tasks.finished_at is null;
  if v_waiting >= 1000 then
    raise exception 'A thousand tasks of yours are waiting already' using errcode = 'TOMNY';
  end if;
  id := coalesce(given_id, gen_random_uuid());
  insert into private.tasks (id, owner, work, caller, request, body)
    values (queue_task.id, queue_task.owner, queue_task.work, queue_task.caller, queue_task.request, queue_task.body)
    on conflict on constraint tasks_pkey do nothing;
  if found then
    perform graphile_worker.add_job(
      'perform', json_build_object('task', queue_task.id), job_key => queue_task.id::text, max_attempts => 5
    );
  end if;
  -- The duration of recent tasks of its kind, after those that the owner has queued before.
  select greatest(1, ceil((v_waiting + 1) * coalesce(avg(extract(epoch from finished_at - started_at)), 1)))
    into estimate
    from (
      select tasks.started_at, tasks.finished_at from private.tasks
      where tasks.work = queue_task.work and tasks.finished_at is not null
      order by tasks.finished_at desc limit 20
    ) as latest;
end;
$$ language plpgsql set search_path = '';
comment on function private.queue_task is
  'Queues a task and estimates how many seconds it will take; called by the service as the owner.';
