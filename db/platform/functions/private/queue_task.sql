-- A given id is that of a retry, whose task may exist already. The key of the caller is the user, the API key, or the address of
-- anonymous callers; those who share it share its bounds and take one turn.
create or replace function private.queue_task(
  given_id uuid, owner text, work text, caller jsonb, request jsonb, body bytea,
  caller_key text default null, lane text default 'caller', out id uuid, out estimate integer
) as $$
#variable_conflict use_variable
declare
  v_waiting integer;
begin
  caller_key := coalesce(caller_key, owner);
  select count(*) into v_waiting from private.tasks
    where tasks.caller_key = queue_task.caller_key and tasks.finished_at is null;
  if not exists (select from private.tasks where tasks.id = given_id) then
    perform private.check_task_bounds(lane, caller_key, caller ->> 'role');
  end if;
  id := coalesce(given_id, gen_random_uuid());
  insert into private.tasks (id, owner, work, caller, request, body, caller_key, lane, bytes)
    values (
      queue_task.id, queue_task.owner, queue_task.work, queue_task.caller, queue_task.request, queue_task.body,
      queue_task.caller_key, queue_task.lane,
      octet_length(body) + octet_length(request::text) + octet_length(caller::text)
    )
    on conflict on constraint tasks_pkey do nothing;
  if found then
    perform graphile_worker.add_job(
      'perform_' || lane, json_build_object('task', queue_task.id), job_key => queue_task.id::text, max_attempts => 5
    );
  end if;
  -- The duration of recent tasks of its kind, after those that the caller has queued before.
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
