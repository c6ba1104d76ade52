-- No row for a task that was withdrawn, or finished by an attempt that died before it could report.
create or replace function private.begin_task(id uuid) returns table (caller jsonb, request jsonb, body bytea)
begin atomic
  update private.tasks set status = 'running', started_at = now()
    where tasks.id = begin_task.id and finished_at is null
    returning tasks.caller, tasks.request, tasks.body;
end;
comment on function private.begin_task is 'The task to run; called by the service as the owner.';
