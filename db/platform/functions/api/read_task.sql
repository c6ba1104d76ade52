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
