--! Previous: sha1:01a3729de790efded353089508b29026a24a51ec
--! Hash: sha1:db6e15623bc346f572fff5728583eb604c38186b

-- Requests with "Prefer: respond-async", and function calls that SQL has queued. The queue, graphile_worker, only knows that a task
-- exists; the task and its result are here, where no role of a request can read them.
create table content_service.tasks (
  id          uuid primary key default gen_random_uuid(),
  owner       text not null,
  work        text not null,
  status      text not null default 'queued' check (status in ('queued', 'running', 'done', 'failed')),
  caller      jsonb not null,
  request     jsonb not null,
  body        bytea not null,
  result      json,
  error       jsonb,
  created_at  timestamptz not null default now(),
  started_at  timestamptz,
  finished_at timestamptz,
  expires_at  timestamptz,
  function    text,
  arguments   jsonb not null default '{}',
  run_at      timestamptz not null default now(),
  key         text,
  time_limit  interval,
  lane        text not null default 'caller' check (lane in ('system', 'caller', 'anonymous')),
  caller_key  text not null default '',
  turn        bigint,
  attempts    integer not null default 0,
  bytes       bigint not null default 0
);
create index on content_service.tasks (owner) where finished_at is null;
create index on content_service.tasks (work, finished_at);
create index on content_service.tasks (expires_at);
create index tasks_failed on content_service.tasks (finished_at) where status = 'failed';
create unique index tasks_waiting_key on content_service.tasks (owner, key) where status = 'queued' and attempts = 0;
create index tasks_of_caller on content_service.tasks (caller_key) include (bytes);
create index tasks_by_turn on content_service.tasks (lane, turn, run_at) where status = 'queued';
-- Beginning a task took longer the more tasks waited: with 30,000 of one caller, 0.1 s under the lock of the lane.
create index tasks_of_caller_by_turn on content_service.tasks (lane, caller_key, turn) where status = 'queued' and turn is not null;
create index tasks_running on content_service.tasks (lane, caller_key) where status = 'running';
alter table content_service.tasks enable row level security;
comment on table content_service.tasks is 'Requests and function calls to be run later, kept until a day after they are finished.';
comment on column content_service.tasks.id is 'Sent to the client. For callers without an identity it is the only key to the task.';
comment on column content_service.tasks.owner is 'The user whose task it is, or the role where there is no user.';
comment on column content_service.tasks.work is 'Method and address, or the function; tasks with the same value take about the same time.';
comment on column content_service.tasks.status is 'queued, running, done or failed.';
comment on column content_service.tasks.caller is 'Role and claims in which it runs.';
comment on column content_service.tasks.request is 'The request without its credentials; empty for a function call.';
comment on column content_service.tasks.body is 'The request''s body.';
comment on column content_service.tasks.result is 'The response; null until it is done.';
comment on column content_service.tasks.error is 'The error response; null unless it failed.';
comment on column content_service.tasks.created_at is 'When the request was received.';
comment on column content_service.tasks.started_at is 'When the latest attempt began.';
comment on column content_service.tasks.finished_at is 'When it was done or had failed.';
comment on column content_service.tasks.expires_at is 'When it is deleted.';
comment on column content_service.tasks.function is 'Name and parameter types of the function; null for a request.';
comment on column content_service.tasks.arguments is 'The arguments of the function by their names.';
comment on column content_service.tasks.run_at is 'When it is due.';
comment on column content_service.tasks.key is 'Of the tasks of an owner with the same key at most one waits.';
comment on column content_service.tasks.time_limit is 'How long it may run; null for the limit of the service.';
comment on column content_service.tasks.lane is 'Which tasks it takes turns with.';
comment on column content_service.tasks.caller_key is 'The user, API key, address or schedule; tasks with the same value share bounds and take one turn.';
comment on column content_service.tasks.turn is 'The place among the tasks of its lane; null until it is due.';
comment on column content_service.tasks.attempts is 'How often it was begun.';
comment on column content_service.tasks.bytes is 'The approximate size of the request or of the result.';

-- The turns of each lane. Lanes have threads of their own, so that none waits for another.
create table content_service.task_lanes (
  name text primary key check (name in ('system', 'caller', 'anonymous')),
  turn bigint not null default 0
);
alter table content_service.task_lanes enable row level security;
comment on table content_service.task_lanes is 'Tasks that take turns: those of the service, of callers, and of anonymous callers.';
comment on column content_service.task_lanes.name is 'system: schedules and api.enqueue_as; caller; anonymous: callers without an account, and anonymous accounts.';
comment on column content_service.task_lanes.turn is 'The turn of the task that began last.';
insert into content_service.task_lanes (name) values ('system'), ('caller'), ('anonymous');

create function content_service.task_owner(role text, claims jsonb) returns text
language sql immutable parallel safe
return coalesce('user ' || case jsonb_typeof(claims -> 'sub') when 'string' then nullif(claims ->> 'sub', '') end, 'role ' || role);
comment on function content_service.task_owner is 'Whose a task is: the user''s with any credential, or the role''s where there is no user.';

-- Anonymous accounts cost nothing, so what they queue waits with that of callers without an account.
create function content_service.task_lane(role text, claims jsonb) returns text
language sql immutable parallel safe
return case when task_lane.role = 'anon' or coalesce(claims -> 'is_anonymous' = 'true', false) then 'anonymous' else 'caller' end;
comment on function content_service.task_lane is 'Which tasks a task takes turns with, if it is not one of the service''s own.';

-- The bounds are approximate: two calls may both be the last. Roles that bypass policies are servers of the operator.
create function content_service.check_task_bounds(lane text, caller_key text, role text) returns void as $$
declare
  v_is_anonymous boolean := lane = 'anonymous';
  v_waiting bigint := content_service.bound(case when v_is_anonymous then 'tasks of an anonymous caller' else 'tasks of a caller' end);
  v_kept bigint := content_service.bound(case when v_is_anonymous then 'kept tasks of an anonymous caller' else 'kept tasks of a caller' end);
  v_bytes bigint := content_service.bound('bytes of tasks of a caller');
  v_all bigint := content_service.bound('tasks of all anonymous callers');
begin
  if (
    select count(*) >= v_waiting from (
      select from content_service.tasks
      where tasks.caller_key = check_task_bounds.caller_key and tasks.finished_at is null limit v_waiting
    ) as unfinished
  ) then
    raise exception '% tasks of yours are waiting already', v_waiting using errcode = 'TOMNY';
  end if;
  if exists (select from pg_roles where rolname = role and rolbypassrls) then
    return;
  end if;
  if (
    select count(*) >= v_kept or sum(bytes) >= v_bytes from (
      select tasks.bytes from content_service.tasks where tasks.caller_key = check_task_bounds.caller_key limit v_kept
    ) as kept
  ) then
    raise exception 'Too many tasks of yours are kept' using errcode = 'TOMNY',
      hint = 'Delete finished tasks, or wait: they are deleted a day after their end.';
  end if;
  if v_is_anonymous and (
    select count(*) >= v_all from (
      select from content_service.tasks where tasks.lane = 'anonymous' and tasks.finished_at is null limit v_all
    ) as unfinished
  ) then
    raise exception 'Too many tasks of anonymous callers are waiting' using errcode = 'TOMNY', hint = 'Sign in, or try again later.';
  end if;
end;
$$ language plpgsql stable set search_path = '';
comment on function content_service.check_task_bounds is 'Refuses one more task of a caller who has too many.';

-- A given id is that of a retry, whose task may exist already. The key of the caller is the user, the API key, or the address of
-- anonymous callers; those who share it share its bounds and take one turn.
create function content_service.queue_task(
  given_id uuid, owner text, work text, caller jsonb, request jsonb, body bytea,
  caller_key text default null, lane text default 'caller', out id uuid, out estimate integer
) as $$
#variable_conflict use_variable
declare
  v_waiting integer;
begin
  caller_key := coalesce(caller_key, owner);
  select count(*) into v_waiting from content_service.tasks
    where tasks.caller_key = queue_task.caller_key and tasks.finished_at is null;
  if not exists (select from content_service.tasks where tasks.id = given_id) then
    perform content_service.check_task_bounds(lane, caller_key, caller ->> 'role');
  end if;
  id := coalesce(given_id, gen_random_uuid());
  insert into content_service.tasks (id, owner, work, caller, request, body, caller_key, lane, bytes)
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
      select tasks.started_at, tasks.finished_at from content_service.tasks
      where tasks.work = queue_task.work and tasks.finished_at is not null
      order by tasks.finished_at desc limit 20
    ) as latest;
end;
$$ language plpgsql set search_path = '';
comment on function content_service.queue_task is 'Queues a task and estimates how many seconds it will take; called by the service as the owner.';

-- Each job runs tasks until none is due, and a million of them that become due at once hold no other back.

-- For a user whose sessions have ended since the task was queued.
create function content_service.outlives_session(id uuid) returns boolean
begin atomic
  select exists (
    select from content_service.tasks as task
    join auth.users as account on account.user_id = coalesce(
      substring(task.caller -> 'claims' ->> 'sub' from '^[1-9][0-9]{0,17}$'),
      substring(task.caller -> 'claims' ->> 'user_id' from '^[1-9][0-9]{0,17}$')
    )::bigint
    left join auth.user_roles on user_roles.user_id = account.user_id
    where task.id = outlives_session.id and account.password_changed_at <= task.created_at
      and task.caller ->> 'role' = coalesce(user_roles.role, 'authenticated')
  );
end;
comment on function content_service.outlives_session is 'Whether the user of a task has kept the password and the role since it was queued; called by the service as the owner.';

-- A job says that there is work; which task it runs is chosen here. Callers take turns (start-time fair queueing): a task is placed one turn after the caller's
-- previous waiting one, and not before the turn that the lane has reached. So hundreds of tasks of one caller are one turn of another caller away from it. The
-- lock on the lane makes attempts to begin wait for one another, for the time of this statement; locked tasks are skipped, because a transaction that changes
-- one, of a caller too, may take long. A portion is placed each time, so that a million tasks that become due at once hold no other back.
create function content_service.begin_task(lane text)
returns table (id uuid, caller jsonb, request jsonb, body bytea, function text, arguments jsonb, call_statement text, time_limit interval, attempts integer) as $$
#variable_conflict use_column
declare
  v_turn bigint;
  v_next bigint;
  v_limit bigint := content_service.bound(case begin_task.lane
    when 'anonymous' then 'running tasks of an anonymous caller' when 'caller' then 'running tasks of a caller'
  end);
  v_id uuid;
  v_from bigint;
begin
  -- A task whose beginning is lost by a crash is begun again.
  perform set_config('synchronous_commit', 'off', true);
  select task_lanes.turn into v_turn from content_service.task_lanes where name = begin_task.lane for update;
  with due as materialized (
    select tasks.id, tasks.caller_key, tasks.run_at, tasks.created_at from content_service.tasks
    where tasks.lane = begin_task.lane and tasks.status = 'queued' and tasks.turn is null and tasks.run_at <= clock_timestamp()
    order by tasks.run_at limit 1000
    for update skip locked
  ), latest as materialized (
    -- One look into the index per caller, however many of its tasks wait.
    select callers.caller_key, (
      select max(waiting.turn) from content_service.tasks as waiting
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
  update content_service.tasks set turn = placed.turn from placed where tasks.id = placed.id;

  -- Without a limit those before the turn of the lane have begun: their dead rows are not read again. One that was locked then is left.
  foreach v_from in array case when v_limit is null then array[v_turn, 0] else array[0] end loop
    select waiting.id, waiting.turn into v_id, v_next from content_service.tasks as waiting
      where waiting.lane = begin_task.lane and waiting.status = 'queued' and waiting.turn >= v_from and (
        v_limit is null
        or v_limit > (
          select count(*) from content_service.tasks as running
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
  update content_service.task_lanes set turn = greatest(turn, v_next) where name = begin_task.lane;
  return query
    update content_service.tasks set status = 'running', started_at = clock_timestamp(), attempts = tasks.attempts + 1
      where tasks.id = v_id
      returning tasks.id, tasks.caller, tasks.request, tasks.body, tasks.function, tasks.arguments,
        content_service.call_statement(tasks.function, tasks.arguments),
        tasks.time_limit, tasks.attempts;
end;
$$ language plpgsql set search_path = '';
comment on function content_service.begin_task is 'Chooses the task of a lane that is to run next, if one is due; called by the service as the owner.';

-- The job of a task that could not begin, because its caller was running enough, is gone.
create function content_service.wake_lane(lane text, caller_key text) returns void as $$
declare
  v_limit bigint := content_service.bound(case wake_lane.lane
    when 'anonymous' then 'running tasks of an anonymous caller' when 'caller' then 'running tasks of a caller'
  end);
begin
  if v_limit is null then
    return;
  end if;
  -- The task that has ended does not count any more.
  if v_limit - 1 <= (
    select count(*) from content_service.tasks
    where tasks.lane = wake_lane.lane and tasks.caller_key = wake_lane.caller_key and tasks.status = 'running'
  ) and exists (
    select from content_service.tasks
    where tasks.lane = wake_lane.lane and tasks.caller_key = wake_lane.caller_key and tasks.status = 'queued'
      and tasks.turn is not null
  ) then
    perform graphile_worker.add_job('perform_' || lane, '{}', max_attempts => 5);
  end if;
end;
$$ language plpgsql set search_path = '';
comment on function content_service.wake_lane is 'Lets the next task of a caller begin when one has ended.';

-- Locked by the transaction that runs the task: of two attempts one does nothing. A process that dies releases the lock.
create function content_service.lock_task(id text) returns boolean as $$
begin
  perform from content_service.tasks where tasks.id = lock_task.id::uuid and finished_at is null for update skip locked;
  if found then
    perform set_config('request.task', lock_task.id, true);
  end if;
  return found;
end;
$$ language plpgsql security definer set search_path = '';
grant execute on function content_service.lock_task to authenticator;
comment on function content_service.lock_task is 'Whether this transaction may run the task.';

-- Committed together with the changes of the task. A result beyond the quota of the caller is not kept, rather than undoing what was done.
create function content_service.finish_task(id text, result text) returns void as $$
declare
  v_task content_service.tasks;
  v_bytes bigint := content_service.bound('bytes of tasks of a caller');
  v_is_kept boolean;
begin
  select * into v_task from content_service.tasks where tasks.id = finish_task.id::uuid;
  v_is_kept := v_task.lane = 'system'
    or exists (select from pg_roles where rolname = v_task.caller ->> 'role' and rolbypassrls)
    or octet_length(result) + coalesce((
      select sum(tasks.bytes) from content_service.tasks where tasks.caller_key = v_task.caller_key and tasks.id <> v_task.id
    ), 0) <= v_bytes;
  update content_service.tasks
    set status = 'done', result = case when v_is_kept then finish_task.result::json else 'null' end,
      error = case when not v_is_kept then jsonb_build_object(
        'status', 507, 'code', 'RESULT_NOT_KEPT',
        'message', 'The task is done. Its result is not kept, because the results of your tasks take too much space.',
        'hint', 'Delete finished tasks, or wait: they are deleted a day after their end.'
      ) end,
      finished_at = clock_timestamp(), expires_at = clock_timestamp() + interval '1 day',
      request = '{}', body = '', arguments = '{}', bytes = case when v_is_kept then octet_length(finish_task.result) else 0 end
    where tasks.id = v_task.id;
  perform content_service.wake_lane(v_task.lane, v_task.caller_key);
end;
$$ language plpgsql security definer set search_path = '';
grant execute on function content_service.finish_task to authenticator;
comment on function content_service.finish_task is 'Stores the response of the task that this transaction runs.';

create function content_service.fail_task(id uuid, error jsonb) returns void as $$
declare
  v_lane text;
  v_caller_key text;
begin
  update content_service.tasks
    set status = 'failed', error = fail_task.error, finished_at = now(), expires_at = now() + interval '1 day',
      request = '{}', body = '', arguments = '{}', bytes = octet_length(fail_task.error::text)
    where tasks.id = fail_task.id and finished_at is null
    returning lane, caller_key into v_lane, v_caller_key;
  if found then
    perform content_service.wake_lane(v_lane, v_caller_key);
  end if;
end;
$$ language plpgsql set search_path = '';
comment on function content_service.fail_task is 'Marks a task as failed; called by the service as the owner.';

create function content_service.requeue_task(id uuid, after interval) returns void as $$
declare
  v_lane text;
begin
  update content_service.tasks set status = 'queued', run_at = clock_timestamp() + requeue_task.after, turn = null
    where tasks.id = requeue_task.id and status = 'running'
    returning lane into v_lane;
  if found then
    perform graphile_worker.add_job('perform_' || v_lane, '{}', run_at => clock_timestamp() + requeue_task.after, max_attempts => 5);
  end if;
end;
$$ language plpgsql set search_path = '';
comment on function content_service.requeue_task is 'Leaves a task whose attempt failed to another attempt; called by the service as the owner.';

-- Uncommitted rows are invisible to others, but locks are visible at once, end with the transaction and cost nothing: each reported
-- percentage is a shared lock that nobody waits for.
create function content_service.task_progress(id uuid) returns integer
begin atomic
  select max(objid::integer) from pg_locks
  where locktype = 'advisory' and objsubid = 2 and mode = 'ShareLock'
    and database = (select oid from pg_database where datname = current_database())
    and classid::bigint = hashtext(id::text)::bigint & 4294967295;
end;
comment on function content_service.task_progress is 'The progress that a task has reported, in percent.';

create function content_service.read_task(id uuid, owner text)
returns table (status text, progress integer, result json, error jsonb, created_at timestamptz, started_at timestamptz, finished_at timestamptz)
begin atomic
  select tasks.status,
    case tasks.status when 'queued' then 0 when 'done' then 100 when 'running' then content_service.task_progress(tasks.id) end,
    tasks.result, tasks.error, tasks.created_at, tasks.started_at, tasks.finished_at
  from content_service.tasks
  where tasks.id = read_task.id and tasks.owner = read_task.owner
    and (tasks.expires_at is null or tasks.expires_at > now());
end;
comment on function content_service.read_task is 'The state of a task, for its owner only. Called by the service as the owner of the database.';

-- A task that has begun is not stopped: its effects may be visible already. A finished one is deleted.
create function content_service.withdraw_task(id uuid, owner text) returns text as $$
declare
  v_status text;
begin
  select status into v_status from content_service.tasks
    where tasks.id = withdraw_task.id and tasks.owner = withdraw_task.owner for update skip locked;
  if not found then
    return (
      select 'running' from content_service.tasks where tasks.id = withdraw_task.id and tasks.owner = withdraw_task.owner
    );
  end if;
  if v_status <> 'running' then
    delete from content_service.tasks where tasks.id = withdraw_task.id;
    perform graphile_worker.remove_job(withdraw_task.id::text);
  end if;
  return v_status;
end;
$$ language plpgsql set search_path = '';
comment on function content_service.withdraw_task is 'Withdraws a task that has not begun, and deletes a finished one; returns its status, or null when there is none.';

-- A task that is running but locked by no transaction has died with its process, or is about to begin; in the second case another attempt may start
-- too, and one of them does nothing. A due task without a job (of a restored backup, of a process that died, of an earlier version) gets one.
create function content_service.maintain_tasks() returns void as $$
declare
  v_dead record;
begin
  for v_dead in
    select tasks.id, tasks.attempts from content_service.tasks
    where status = 'running' and finished_at is null and coalesce(started_at, created_at) < now() - interval '10 seconds'
    for update skip locked
  loop
    if v_dead.attempts < 5 then
      perform content_service.requeue_task(v_dead.id, '0 seconds');
    else
      perform content_service.fail_task(
        v_dead.id, '{"status": 500, "code": "XX000", "message": "The task was given up after several attempts."}'
      );
    end if;
  end loop;
  perform graphile_worker.add_job('perform_' || jobless.lane, '{}', max_attempts => 5)
    from (
      select name as lane, (
        select count(*) from (
          select from content_service.tasks where tasks.lane = name and status = 'queued' and run_at <= now() limit 10
        ) as due
      ) - (
        select count(*) from (
          select from graphile_worker.jobs
          where task_identifier = 'perform_' || name and locked_at is null and run_at <= now() and attempts < max_attempts limit 10
        ) as ready
      ) as missing
      from content_service.task_lanes
    ) as jobless, generate_series(1, jobless.missing);
  delete from content_service.tasks where tasks.id in (
    select expired.id from content_service.tasks as expired where expired.expires_at <= now()
    order by expired.expires_at limit 1000 for update skip locked
  );
end;
$$ language plpgsql set search_path = '';
comment on function content_service.maintain_tasks is 'Requeues abandoned tasks, fails hopeless ones, adds missing jobs and deletes old tasks; called by the service as the owner.';

-- One job runs several tasks, so that those tasks' own jobs have nothing to do any more. Found by their keys, since looking for them
-- among all jobs takes longer the more jobs wait. One that is left, because the process died, finds nothing to do.
create function content_service.remove_jobs_of(tasks uuid[]) returns void as $$
begin
  perform graphile_worker.complete_jobs(array(
    select job.id from graphile_worker.jobs as job
    where job.key = any (remove_jobs_of.tasks::text[]) and job.locked_at is null
  ));
end;
$$ language plpgsql set search_path = '';
comment on function content_service.remove_jobs_of is 'Removes the jobs of tasks that have ended; called by the service as the owner.';

-- Visible at once, before the transaction ends: see content_service.task_progress.
create function api.report_progress(percent integer) returns void as $$
declare
  v_task text := nullif(current_setting('request.task', true), '');
begin
  if v_task is not null then
    perform pg_advisory_xact_lock_shared(hashtext(v_task), least(greatest(percent, 0), 100));
  end if;
end;
$$ language plpgsql set search_path = '';
grant execute on function api.report_progress to anon, authenticated, service_role;
comment on function api.report_progress is 'Reports the progress of a function called with Prefer: respond-async; has no effect elsewhere.';
