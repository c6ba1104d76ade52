--! Previous: sha1:4a5c0c3850cba66c4c85a42df2f50fcf3c8f7690
--! Hash: sha1:cb112058b3ae8788319e8343867cd23a1c690049
--! Message: queue-drain

-- Beginning a task took longer the more tasks waited: with 30,000 of one caller, 0.1 s under the lock of the lane.
create index tasks_of_caller_by_turn on private.tasks (lane, caller_key, turn) where status = 'queued' and turn is not null;

-- A job says that there is work; which task it runs is chosen here. Callers take turns (start-time fair queueing): a task is placed one turn after the caller's
-- previous waiting one, and not before the turn that the lane has reached. So hundreds of tasks of one caller are one turn of another caller away from it. The
-- lock on the lane makes attempts to begin wait for one another, for the time of this statement; locked tasks are skipped, because a transaction that changes
-- one, of a caller too, may take long. A portion is placed each time, so that a million tasks that become due at once hold no other back.
create or replace function private.begin_task(lane text)
returns table (id uuid, caller jsonb, request jsonb, body bytea, function text, arguments jsonb, call_statement text, time_limit interval, attempts integer) as $$
#variable_conflict use_column
declare
  v_turn bigint;
  v_next bigint;
  v_limit bigint := private.bound(case begin_task.lane
    when 'anonymous' then 'running tasks of an anonymous caller' when 'caller' then 'running tasks of a caller'
  end);
  v_id uuid;
  v_from bigint;
begin
  -- A task whose beginning is lost by a crash is begun again.
  perform set_config('synchronous_commit', 'off', true);
  select task_lanes.turn into v_turn from private.task_lanes where name = begin_task.lane for update;
  with due as materialized (
    select tasks.id, tasks.caller_key, tasks.run_at, tasks.created_at from private.tasks
    where tasks.lane = begin_task.lane and tasks.status = 'queued' and tasks.turn is null and tasks.run_at <= clock_timestamp()
    order by tasks.run_at limit 1000
    for update skip locked
  ), latest as materialized (
    -- One look into the index per caller, however many of its tasks wait.
    select callers.caller_key, (
      select max(waiting.turn) from private.tasks as waiting
      where waiting.lane = begin_task.lane and waiting.caller_key = callers.caller_key and waiting.status = 'queued'
        and waiting.turn is not null
    ) as turn
    from (select distinct due.caller_key from due) as callers
  ), placed as (
    select due.id, greatest(v_turn, latest.turn)
      + row_number() over (partition by due.caller_key order by due.run_at, due.created_at, due.id) as turn
    from due
    left join latest using (caller_key)
  )
  update private.tasks set turn = placed.turn from placed where tasks.id = placed.id;

  -- Without a limit those before the turn of the lane have begun: their dead rows are not read again. One that was locked then is left.
  foreach v_from in array case when v_limit is null then array[v_turn, 0] else array[0] end loop
    select waiting.id, waiting.turn into v_id, v_next from private.tasks as waiting
      where waiting.lane = begin_task.lane and waiting.status = 'queued' and waiting.turn >= v_from and (
        v_limit is null
        or v_limit > (
          select count(*) from private.tasks as running
          where running.lane = waiting.lane and running.caller_key = waiting.caller_key and running.status = 'running'
        )
        or exists (select from pg_roles where rolname = waiting.caller ->> 'role' and rolbypassrls)
      )
      order by waiting.turn, waiting.run_at limit 1 for update skip locked;
    exit when found;
  end loop;
  if v_id is null then
    return;
  end if;
  update private.task_lanes set turn = greatest(turn, v_next) where name = begin_task.lane;
  return query
    update private.tasks set status = 'running', started_at = clock_timestamp(), attempts = tasks.attempts + 1
      where tasks.id = v_id
      returning tasks.id, tasks.caller, tasks.request, tasks.body, tasks.function, tasks.arguments,
        private.call_statement(tasks.function, tasks.arguments),
        tasks.time_limit, tasks.attempts;
end;
$$ language plpgsql set search_path = '';
comment on function private.begin_task is 'Chooses the task of a lane that is to run next, if one is due; called by the service as the owner.';

-- One job runs several tasks, so that those tasks' own jobs have nothing to do any more. Found by their keys, since looking for them
-- among all jobs takes longer the more jobs wait. One that is left, because the process died, finds nothing to do.
create function private.remove_jobs_of(tasks uuid[]) returns void as $$
begin
  perform graphile_worker.complete_jobs(array(
    select job.id from graphile_worker.jobs as job
    where job.key = any (remove_jobs_of.tasks::text[]) and job.locked_at is null
  ));
end;
$$ language plpgsql set search_path = '';
comment on function private.remove_jobs_of is 'Removes the jobs of tasks that have ended; called by the service as the owner.';
drop function private.remove_spent_jobs(text);
