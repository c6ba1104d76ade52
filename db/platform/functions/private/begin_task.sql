-- No row for a task that was withdrawn, is due later, or was finished by an attempt that died before it could report.
create or replace function private.begin_task(id uuid)
returns table (
  caller jsonb, request jsonb, body bytea, function text, arguments jsonb, call_statement text, time_limit interval
)
begin atomic
  update private.tasks set status = 'running', started_at = now()
    where tasks.id = begin_task.id and finished_at is null and run_at <= now()
    returning tasks.caller, tasks.request, tasks.body, tasks.function, tasks.arguments,
      private.call_statement(tasks.function, tasks.arguments), tasks.time_limit;
end;
comment on function private.begin_task is 'The task to run; called by the service as the owner.';
