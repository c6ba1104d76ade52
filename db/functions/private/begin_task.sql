-- Nothing comes back of a task that was withdrawn, or that an attempt has finished without living to say so.
create or replace function private.begin_task(id uuid) returns table (caller jsonb, request jsonb, body bytea)
begin atomic
  update private.tasks set status = 'running', started_at = now()
    where tasks.id = begin_task.id and finished_at is null
    returning tasks.caller, tasks.request, tasks.body;
end;
comment on function private.begin_task is 'What is to be done; for the engine, which asks as the owner.';
