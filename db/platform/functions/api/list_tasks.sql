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
