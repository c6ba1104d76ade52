--! Previous: sha1:0a267c0f7ee8cb68ce618a21ab1ebcce2cf06cf1
--! Hash: sha1:6e63cc15b3b8d8e2f065ee19a50715da4e0c358f
--! Message: tasks

--! split: 0010-tasks.sql
-- What a client has asked to be done later (Prefer: respond-async). The queue, graphile_worker, only knows that there is
-- something to do; what it is and what has come of it is here, where no role of a request can look.
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

comment on table private.tasks is 'Work that clients have left here, until a day after it is finished.';
comment on column private.tasks.id is 'What the client is told. Who nobody can be told from others, it alone is the key to the task.';
comment on column private.tasks.owner is 'Whose it is: a user, or a role where it is nobody''s in particular.';
comment on column private.tasks.work is 'Method and address: what takes about as long each time.';
comment on column private.tasks.status is 'queued, running, done or failed.';
comment on column private.tasks.caller is 'As whom it is done.';
comment on column private.tasks.request is 'What was asked, without the credentials.';
comment on column private.tasks.body is 'The body that came with it.';
comment on column private.tasks.result is 'What would have been answered; null until it is done.';
comment on column private.tasks.error is 'What would have been refused; null unless it failed.';
comment on column private.tasks.created_at is 'When it was asked for.';
comment on column private.tasks.started_at is 'When the latest attempt began.';
comment on column private.tasks.finished_at is 'When it was done or had failed.';
comment on column private.tasks.expires_at is 'When it is forgotten.';

--! Included private/queue_task.sql
-- One owner's crowd must not keep everybody else waiting. Two at once may both be the last one: it is no exact science.
-- An id that is given is that of a retry, whose task may be here already.
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
  -- As long as the last ones of its kind took, after all that the owner has queued before.
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
  'Takes a task and guesses how many seconds it will take; for the engine, which asks as the owner.';
--! EndIncluded private/queue_task.sql
--! Included private/begin_task.sql
-- Nothing comes back of a task that was withdrawn, or that an attempt has finished without living to say so.
create or replace function private.begin_task(id uuid) returns table (caller jsonb, request jsonb, body bytea)
begin atomic
  update private.tasks set status = 'running', started_at = now()
    where tasks.id = begin_task.id and finished_at is null
    returning tasks.caller, tasks.request, tasks.body;
end;
comment on function private.begin_task is 'What is to be done; for the engine, which asks as the owner.';
--! EndIncluded private/begin_task.sql
--! Included private/hold_task.sql
-- Held by the transaction that does the work: should two attempts meet, one of them does nothing. Whoever dies lets go.
create or replace function private.hold_task(id text) returns boolean as $$
begin
  perform from private.tasks where tasks.id = hold_task.id::uuid and finished_at is null for update skip locked;
  if found then
    perform set_config('request.task', hold_task.id, true);
  end if;
  return found;
end;
$$ language plpgsql security definer set search_path = '';
grant execute on function private.hold_task to authenticator;
comment on function private.hold_task is 'Whether the rest of the transaction may do the task.';
--! EndIncluded private/hold_task.sql
--! Included private/finish_task.sql
-- Committed with what the task has done, or not at all.
create or replace function private.finish_task(id text, result text) returns void as $$
begin
  update private.tasks
    set status = 'done', result = finish_task.result::json, finished_at = clock_timestamp(),
      expires_at = clock_timestamp() + interval '1 day', request = '{}', body = ''
    where tasks.id = finish_task.id::uuid;
end;
$$ language plpgsql security definer set search_path = '';
grant execute on function private.finish_task to authenticator;
comment on function private.finish_task is 'Keeps the answer of the task that the transaction holds.';
--! EndIncluded private/finish_task.sql
--! Included private/fail_task.sql
create or replace function private.fail_task(id uuid, error jsonb) returns void
begin atomic
  update private.tasks
    set status = 'failed', error = fail_task.error, finished_at = now(), expires_at = now() + interval '1 day',
      request = '{}', body = ''
    where tasks.id = fail_task.id and finished_at is null;
end;
comment on function private.fail_task is 'Gives a task up; for the engine, which asks as the owner.';
--! EndIncluded private/fail_task.sql
--! Included private/task_progress.sql
-- Nobody sees what a transaction has written before it ends, but locks are seen at once, go with the transaction however
-- it ends, and cost nothing: each percentage that is reported is a shared lock which nobody waits for.
create or replace function private.task_progress(id uuid) returns integer
begin atomic
  select max(objid::integer) from pg_locks
  where locktype = 'advisory' and objsubid = 2 and mode = 'ShareLock'
    and database = (select oid from pg_database where datname = current_database())
    and classid::bigint = hashtext(id::text)::bigint & 4294967295;
end;
comment on function private.task_progress is 'How far a task says that it is, in percent.';
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
  'What has become of a task, for its owner; nothing for anybody else. For the engine, which asks as the owner.';
--! EndIncluded private/read_task.sql
--! Included private/withdraw_task.sql
-- What has begun is not stopped: half of it may be told to others already. What is finished is forgotten.
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
  'Takes a task back that has not begun, and forgets one that is finished; tells what it was, or null where there is none.';
--! EndIncluded private/withdraw_task.sql
--! Included private/tend_tasks.sql
-- A gateway that dies leaves its jobs locked, for four hours if nobody else looks. Whose task is running and held by no
-- transaction has died, or is just about to begin; then another one may begin it as well, and one of them does nothing.
create or replace function private.tend_tasks() returns void as $$
declare
  v_dead text[];
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
  perform private.fail_task(tasks.id, '{"code": "XX000", "message": "The task was given up after several attempts."}')
    from private.tasks
    where finished_at is null and created_at < now() - interval '10 seconds' and not exists (
      select from graphile_worker.jobs
      where jobs.key = tasks.id::text and (jobs.locked_at is not null or jobs.attempts < jobs.max_attempts)
    );
  delete from private.tasks where tasks.id in (
    select expired.id from private.tasks as expired where expired.expires_at <= now()
    order by expired.expires_at limit 1000 for update skip locked
  );
end;
$$ language plpgsql set search_path = '';
comment on function private.tend_tasks is
  'Gives abandoned tasks to others, gives up hopeless ones and forgets old ones; for the engine, which asks as the owner.';
--! EndIncluded private/tend_tasks.sql
--! Included api/report_progress.sql
-- Seen at once, though nothing else of the transaction is: see private.task_progress.
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
  'Tells how far a function is that was called with Prefer: respond-async; elsewhere it does nothing.';
--! EndIncluded api/report_progress.sql
