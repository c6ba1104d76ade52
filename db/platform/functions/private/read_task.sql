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
