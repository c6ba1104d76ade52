--! Previous: sha1:e4a2a3e11c688de78c4e84d24dc180fa565a94a6
--! Hash: sha1:38712c6706a1564a0ac42fa16007dea2137cd4c4
--! Message: tasks in SQL

create index if not exists tasks_failed on private.tasks (finished_at) where status = 'failed';
--! Included private/sees_task.sql
create or replace function private.sees_task(owner text) returns boolean
language sql stable
return auth.is_admin() or sees_task.owner = private.task_owner(auth.role(), auth.jwt());
comment on function private.sees_task is 'Whether a task is the caller''s own; administrators see all.';
--! EndIncluded private/sees_task.sql
--! Included api/enqueue_as.sql
-- Granted to nobody: security definer functions of the owner call it, such as triggers, and the owner in psql. Without claims the task
-- belongs to the role, so that the user whose request queued it neither sees nor cancels it.
create or replace function api.enqueue_as(
  role text, function text, arguments jsonb default '{}', run_at timestamptz default now(), key text default null,
  claims jsonb default null
) returns uuid
begin atomic
  select private.queue_call(role, claims, function, arguments, run_at, key);
end;
comment on function api.enqueue_as is
  'Queues a call of a function as a role of the owner''s choice. For triggers with the rights of the owner, and for the owner.';
--! EndIncluded api/enqueue_as.sql
--! Included api/read_task.sql
create or replace function api.read_task(id uuid)
returns table (
  work text, status text, progress integer, result json, error jsonb,
  run_at timestamptz, created_at timestamptz, started_at timestamptz, finished_at timestamptz
) as $$
  select task.work, state.status, state.progress, state.result, state.error,
    task.run_at, state.created_at, state.started_at, state.finished_at
  from private.tasks as task
  cross join private.read_task(task.id, task.owner) as state
  where task.id = read_task.id and private.sees_task(task.owner);
$$ language sql stable security definer set search_path = '';
grant execute on function api.read_task to authenticated, service_role;
comment on function api.read_task is 'The state and the result of a task of the caller''s; no row for a task of others.';
--! EndIncluded api/read_task.sql
--! Included api/list_tasks.sql
-- Callers without a user share their tasks with all others of their role, who find them by their random ids only.
create or replace function api.list_tasks()
returns table (id uuid, work text, status text, key text, run_at timestamptz, created_at timestamptz) as $$
  select task.id, task.work, task.status, task.key, task.run_at, task.created_at
  from private.tasks as task
  where task.finished_at is null and (
    (select auth.is_admin()) or task.owner = (select private.task_owner(auth.role(), auth.jwt())) and (
      task.owner like 'user %' or (select rolbypassrls from pg_roles where rolname = auth.role())
    )
  )
  order by task.run_at, task.id;
$$ language sql stable security definer set search_path = '';
grant execute on function api.list_tasks to authenticated, service_role;
comment on function api.list_tasks is 'The tasks of the calling user that wait or run, those that are due first.';
--! EndIncluded api/list_tasks.sql
--! Included api/cancel_task.sql
create or replace function api.cancel_task(id uuid) returns boolean as $$
declare
  v_is_cancelled boolean;
begin
  delete from private.tasks as task
    where task.id = cancel_task.id and task.status = 'queued' and private.sees_task(task.owner);
  v_is_cancelled := found;
  if v_is_cancelled then
    perform graphile_worker.remove_job(cancel_task.id::text);
  end if;
  return v_is_cancelled;
end;
$$ language plpgsql security definer set search_path = '';
grant execute on function api.cancel_task to authenticated, service_role;
comment on function api.cancel_task is 'Cancels a task of the caller''s that waits; false if it has begun or does not exist.';
--! EndIncluded api/cancel_task.sql
