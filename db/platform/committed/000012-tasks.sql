--! Previous: sha1:2d322ea22c1954ca7eaa521aa46c0a180a59824c
--! Hash: sha1:f5cab86b2f337687c148546f47ffab444ace65e5
--! Message: tasks

-- Requests with "Prefer: respond-async". The queue, graphile_worker, only knows that a task exists; the request and its result are
-- here, where no role of a request can read them.
create table private.tasks (
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
  expires_at  timestamptz
);
create index on private.tasks (owner) where finished_at is null;
create index on private.tasks (work, finished_at);
create index on private.tasks (expires_at);
alter table private.tasks enable row level security;

comment on table private.tasks is 'Requests to be run later, kept until a day after they are finished.';
comment on column private.tasks.id is 'Sent to the client. For callers without an identity it is the only key to the task.';
comment on column private.tasks.owner is 'The user whose task it is, or the role where there is no user.';
comment on column private.tasks.work is 'Method and address; tasks with the same value take about the same time.';
comment on column private.tasks.status is 'queued, running, done or failed.';
comment on column private.tasks.caller is 'Role and claims in which it runs.';
comment on column private.tasks.request is 'The request without its credentials.';
comment on column private.tasks.body is 'The request''s body.';
comment on column private.tasks.result is 'The response; null until it is done.';
comment on column private.tasks.error is 'The error response; null unless it failed.';
comment on column private.tasks.created_at is 'When the request was received.';
comment on column private.tasks.started_at is 'When the latest attempt began.';
comment on column private.tasks.finished_at is 'When it was done or had failed.';
comment on column private.tasks.expires_at is 'When it is deleted.';

--! Included private/queue_task.sql
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
--! EndIncluded private/queue_task.sql
--! Included private/begin_task.sql
-- No row for a task that was withdrawn, or finished by an attempt that died before it could report.
create or replace function private.begin_task(id uuid) returns table (caller jsonb, request jsonb, body bytea)
begin atomic
  update private.tasks set status = 'running', started_at = now()
    where tasks.id = begin_task.id and finished_at is null
    returning tasks.caller, tasks.request, tasks.body;
end;
comment on function private.begin_task is 'The task to run; called by the service as the owner.';
--! EndIncluded private/begin_task.sql
--! Included private/lock_task.sql
-- Locked by the transaction that runs the task: of two attempts one does nothing. A process that dies releases the lock.
create or replace function private.lock_task(id text) returns boolean as $$
begin
  perform from private.tasks where tasks.id = lock_task.id::uuid and finished_at is null for update skip locked;
  if found then
    perform set_config('request.task', lock_task.id, true);
  end if;
  return found;
end;
$$ language plpgsql security definer set search_path = '';
grant execute on function private.lock_task to authenticator;
comment on function private.lock_task is 'Whether this transaction may run the task.';
--! EndIncluded private/lock_task.sql
--! Included private/finish_task.sql
-- Committed together with the changes of the task.
create or replace function private.finish_task(id text, result text) returns void as $$
begin
  update private.tasks
    set status = 'done', result = finish_task.result::json, finished_at = clock_timestamp(),
      expires_at = clock_timestamp() + interval '1 day', request = '{}', body = ''
    where tasks.id = finish_task.id::uuid;
end;
$$ language plpgsql security definer set search_path = '';
grant execute on function private.finish_task to authenticator;
comment on function private.finish_task is 'Stores the response of the task that this transaction runs.';
--! EndIncluded private/finish_task.sql
--! Included private/fail_task.sql
create or replace function private.fail_task(id uuid, error jsonb) returns void
begin atomic
  update private.tasks
    set status = 'failed', error = fail_task.error, finished_at = now(), expires_at = now() + interval '1 day',
      request = '{}', body = ''
    where tasks.id = fail_task.id and finished_at is null;
end;
comment on function private.fail_task is 'Marks a task as failed; called by the service as the owner.';
--! EndIncluded private/fail_task.sql
--! Included private/task_progress.sql
-- Uncommitted rows are invisible to others, but locks are visible at once, end with the transaction and cost nothing: each reported
-- percentage is a shared lock that nobody waits for.
create or replace function private.task_progress(id uuid) returns integer
begin atomic
  select max(objid::integer) from pg_locks
  where locktype = 'advisory' and objsubid = 2 and mode = 'ShareLock'
    and database = (select oid from pg_database where datname = current_database())
    and classid::bigint = hashtext(id::text)::bigint & 4294967295;
end;
comment on function private.task_progress is 'The progress that a task has reported, in percent.';
--! EndIncluded private/task_progress.sql
--! Included private/read_task.sql
create or replace function private.read_task(id uuid, owner text)
returns table (
  status text, progress integer, result json, error jsonb,
  created_at timestamptz, started_at timestamptz, finished_at timestamptz
)
begin atomic
  select tasks.status,
    case tasks.status when 'queued' then 0 when 'done' then 100 when 'running' then private.task_progress(tasks.id) end,
    tasks.result, tasks.error, tasks.created_at, tasks.started_at, tasks.finished_at
  from private.tasks
  where tasks.id = read_task.id and tasks.owner = read_task.owner
    and (tasks.expires_at is null or tasks.expires_at > now());
end;
comment on function private.read_task is
  'The state of a task, for its owner only. Called by the service as the owner of the database.';
--! EndIncluded private/read_task.sql
--! Included private/withdraw_task.sql
-- A task that has begun is not stopped: its effects may be visible already. A finished one is deleted.
create or replace function private.withdraw_task(id uuid, owner text) returns text as $$
declare
  v_status text;
begin
  select status into v_status from private.tasks
    where tasks.id = withdraw_task.id and tasks.owner = withdraw_task.owner for update skip locked;
  if not found then
    return (
      select 'running' from private.tasks where tasks.id = withdraw_task.id and tasks.owner = withdraw_task.owner
    );
  end if;
  if v_status <> 'running' then
    delete from private.tasks where tasks.id = withdraw_task.id;
    perform graphile_worker.remove_job(withdraw_task.id::text);
  end if;
  return v_status;
end;
$$ language plpgsql set search_path = '';
comment on function private.withdraw_task is
  'Withdraws a task that has not begun, and deletes a finished one; returns its status, or null when there is none.';
--! EndIncluded private/withdraw_task.sql
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
  'Requeues abandoned tasks, fails hopeless ones and deletes old ones; called by the service as the owner.';
--! EndIncluded private/maintain_tasks.sql
--! Included api/report_progress.sql
-- Visible at once, before the transaction ends: see private.task_progress.
create or replace function api.report_progress(percent integer) returns void as $$
declare
  v_task text := nullif(current_setting('request.task', true), '');
begin
  if v_task is not null then
    perform pg_advisory_xact_lock_shared(hashtext(v_task), least(greatest(percent, 0), 100));
  end if;
end;
$$ language plpgsql set search_path = '';
grant execute on function api.report_progress to anon, authenticated, service_role;
comment on function api.report_progress is
  'Reports the progress of a function called with Prefer: respond-async; has no effect elsewhere.';
--! EndIncluded api/report_progress.sql
